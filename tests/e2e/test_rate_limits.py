"""A call outlives the rate limits of two providers: Gemini Live, then OpenAI Realtime, then the local cascade.

The questions are spoken, and each provider is used by its own SDK, with a simulator behind it.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from antiphon.protocol import server_messages as s
from tests.e2e.questions import PERCENT, PRODUCT, TOKYO, Question
from tests.e2e.test_live_models import Clips, ask_aloud, described, enter_at_once
from tests.e2e.voices import RMS, SLT, Person, VoiceServer, calling, make_clips, serve
from tests.fakes.spoken import error_rate
from tests.wire.simulators import RunningSimulator, run_simulator

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(180)]

GEMINI: Final = "gemini-live:gemini-3.8-live"
OPENAI: Final = "openai-realtime:gpt-realtime-2"
RECALL: Final = "What did I ask you before?"
WITHIN_S: Final = 3.0
"""How soon the local voice must answer after the user has spoken."""
TOO_MANY: Final = {"refuse": {"status": 429}}


@dataclass(frozen=True)
class Providers:
    gemini: RunningSimulator
    openai: RunningSimulator


@pytest.fixture(scope="module")
def clips(models_dir: Path) -> Clips:
    return make_clips(models_dir, [(SLT, TOKYO.text), (RMS, PERCENT.text), (SLT, PRODUCT.text), (RMS, RECALL)])


@pytest.fixture(scope="module")
def providers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Providers]:
    folders = [tmp_path_factory.mktemp("simulated") for _ in range(2)]
    with ExitStack() as stack:
        gemini, openai = enter_at_once(
            stack,
            run_simulator("gemini-live", "--tls-dir", "tls", folder=folders[0]),
            run_simulator("openai-realtime", folder=folders[1]),
        )
        yield Providers(gemini, openai)


@pytest.fixture
def server(providers: Providers, tmp_path: Path, models_dir: Path) -> Iterator[VoiceServer]:
    """A server of its own for each test: a model that was rate-limited cools down for a minute."""
    for each in (providers.gemini, providers.openai):
        each.disarm()
    certificate = re.search(r"SSL_CERT_FILE=(\S+)", providers.gemini.announced)
    assert certificate is not None
    (tmp_path / "antiphon.toml").write_text(
        "[ladder.voice]\n"
        f'3 = "gemini-live:https://localhost:{providers.gemini.port}#gemini-3.8-live"\n'
        f'2 = "openai-realtime:{providers.openai.url}/v1#gpt-realtime-2"\n'
        '1 = "cascade"\n'
    )
    keys = {"GEMINI_API_KEY": "any", "OPENAI_API_KEY": "any", "SSL_CERT_FILE": certificate[1]}
    with serve(tmp_path, models_dir, **keys) as served:
        yield served


def energy_path(person: Person) -> list[tuple[int, int, str | None]]:
    return [(each.previous, each.level, each.model) for each in person.told if isinstance(each, s.Energy)]


async def test_a_call_goes_from_gemini_to_openai_to_the_cascade_which_knows_what_was_said_before(
    server: VoiceServer, providers: Providers, clips: Clips
) -> None:
    gemini, openai = providers.gemini, providers.openai
    async with calling(server.url) as person:
        first = await ask_aloud(person, clips[SLT, TOKYO.text])
        assert TOKYO.is_answered_by(first), described(GEMINI, TOKYO, first)

        gemini.arm({"audio_chunk": 1}, "quota")
        second = await ask_aloud(person, clips[RMS, PERCENT.text])
        assert PERCENT.is_answered_by(second), described(OPENAI, PERCENT, second)
        assert energy_path(person) == [(3, 2, OPENAI)]

        openai.arm({"audio_chunk": 1}, "reset")
        openai.add("connect", TOO_MANY)
        third = await ask_aloud(person, clips[SLT, PRODUCT.text])
        assert PRODUCT.is_answered_by(third), described("cascade", PRODUCT, third)
        [_, (previous, level, model)] = energy_path(person)
        assert (previous, level) == (2, 1)
        assert model is not None
        assert model.startswith("cascade")

        recalled = await person.say(clips[RMS, RECALL])
        told = described("cascade", Question(RECALL, "", lambda data, answer: True), recalled)
        print(told)
        assert error_rate([(RECALL, recalled.transcript)]) < 0.3, told
        assert re.search(r"you asked .*(17|seventeen) times (6|six)", recalled.response, re.IGNORECASE), told
        assert recalled.first_audio_s is not None
        assert recalled.first_audio_s < WITHIN_S, told

    turns = server.said(person.conversation_id)
    assert [role for role, _, _ in turns] == ["user", "assistant"] * 4, "nothing is lost, or said twice"
    [call] = server.get("/api/calls")["calls"]
    assert call["energy_path"] == [3, 2, 1]


async def test_a_question_about_the_call_is_answered_by_the_cascade_after_both_rate_limits_in_one_sentence(
    server: VoiceServer, providers: Providers, clips: Clips
) -> None:
    gemini, openai = providers.gemini, providers.openai
    async with calling(server.url) as person:
        await ask_aloud(person, clips[SLT, TOKYO.text])
        gemini.arm({"audio_chunk": 1}, "quota")
        openai.arm("connect", TOO_MANY)
        second = await ask_aloud(person, clips[RMS, PERCENT.text])
        assert PERCENT.is_answered_by(second), described("cascade", PERCENT, second)
        assert [level for _, level, _ in energy_path(person)] == [2, 1]
        recalled = await person.say(clips[RMS, RECALL])
        print(recalled.response, recalled.first_audio_s)
        assert re.search(r"you asked .*(15|fifteen)( percent|%) of (80|eighty)", recalled.response, re.IGNORECASE)
        assert "Tokyo" in recalled.response
        assert recalled.first_audio_s is not None
        assert recalled.first_audio_s < WITHIN_S

"""The whole server with each live provider behind it: the provider's own SDK talks to its simulator.

A spoken question goes over `/ws` to the simulated provider, which calls a tool of the server; the answer is spoken, and
what is heard of it is what was written.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.speech.spoken import speakable
from tests.e2e.questions import PRODUCT, ROOT
from tests.e2e.voices import JOE, VoiceServer, calling, engines, make_clips, serve
from tests.fakes.spoken import error_rate, for_ears
from tests.wire.simulators import RunningSimulator, run_simulator

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(180)]

Clips = Mapping[tuple[str, str], bytes]


@dataclass(frozen=True)
class Provider:
    simulator: RunningSimulator
    server: VoiceServer


@pytest.fixture(scope="module")
def clips(models_dir: Path) -> Clips:
    return make_clips(models_dir, [(JOE, PRODUCT.text), (JOE, ROOT.text)])


@pytest.fixture(scope="module")
def openai_simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSimulator]:
    with run_simulator("openai-realtime", folder=tmp_path_factory.mktemp("openai")) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def gemini_simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSimulator]:
    with run_simulator("gemini-live", "--tls-dir", "tls", folder=tmp_path_factory.mktemp("gemini")) as simulator:
        yield simulator


@pytest.fixture(scope="module", params=["gemini-live", "openai-realtime", "azure-realtime"])
def provider(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, models_dir: Path
) -> Iterator[Provider]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "gemini-live":
        simulator = request.getfixturevalue("gemini_simulator")
        found = re.search(r"SSL_CERT_FILE=(\S+)", simulator.announced)
        assert found is not None
        variables = {"GEMINI_API_KEY": "any", "SSL_CERT_FILE": found[1]}
        voice = f"gemini-live:https://localhost:{simulator.port}#gemini-3.8-live"
    else:
        simulator = request.getfixturevalue("openai_simulator")
        is_azure = request.param == "azure-realtime"
        variables = {"AZURE_OPENAI_API_KEY" if is_azure else "OPENAI_API_KEY": "any"}
        voice = (
            f"azure-realtime:{simulator.url}#mine" if is_azure else f"openai-realtime:{simulator.url}/v1#gpt-realtime-2"
        )
    with serving(folder, models_dir, voice, variables) as server:
        yield Provider(simulator, server)


@contextmanager
def serving(folder: Path, models_dir: Path, voice: str, variables: Mapping[str, str]) -> Iterator[VoiceServer]:
    (folder / "antiphon.toml").write_text(f'[model]\nvoice = "{voice}"\n')
    with serve(folder, models_dir, **variables) as server:
        yield server


async def test_a_spoken_question_is_answered_with_a_tool_and_the_answer_can_be_heard(
    provider: Provider, clips: Clips, models_dir: Path
) -> None:
    provider.simulator.disarm()
    async with calling(provider.server.url) as person:
        exchange = await person.say(clips[JOE, PRODUCT.text])
    assert PRODUCT.is_answered_by(exchange), (exchange.transcript, exchange.response, exchange.tools)
    async with engines(models_dir) as (_, moonshine):
        heard = await moonshine.recognize(for_ears(exchange.pcm, SPEECH_HZ))
    assert error_rate([(speakable(exchange.response), heard)]) < 0.4, heard


async def test_the_session_survives_an_answer_that_breaks_off(provider: Provider, clips: Clips) -> None:
    provider.simulator.arm({"audio_chunk": 1}, "reset")
    async with calling(provider.server.url) as person:
        await person.say(clips[JOE, PRODUCT.text], patient=True)
        assert any(isinstance(each, s.Error) for each in person.told)
        if [each.state for each in person.told if isinstance(each, s.StateChanged)][-1] is not s.State.LISTENING:
            await person.session.send(c.StartListening())
            await person.until_state(s.State.LISTENING)
        assert ROOT.is_answered_by(await person.say(clips[JOE, ROOT.text]))

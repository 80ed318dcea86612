"""The whole server with each live model behind it: the local voice, and each provider's own SDK with its simulator.

Spoken questions go over `/ws` to the model, which calls a tool of the server; the answer is spoken, and what is heard
of it is what was written. The voices that ask are not the one that answers.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import pytest

from antiphon.client import Mode, connect
from antiphon.client.speaking import FRAME_BYTES, Exchange
from antiphon.config import Assistant
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.speech.spoken import speakable
from tests.e2e.questions import PERCENT, PRODUCT, ROOT, TOKYO, Question
from tests.e2e.test_voice import LONG, onset
from tests.e2e.voices import RMS, SLT, Person, VoiceServer, calling, engines, make_clips, serve
from tests.fakes.spoken import error_rate, for_ears
from tests.wire.simulators import RunningSimulator, run_simulator

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(180)]

CASCADE: Final = "cascade"
GEMINI: Final = "gemini-live"
OPENAI: Final = "openai-realtime"
AZURE: Final = "azure-realtime"
PROVIDERS: Final = (GEMINI, OPENAI, AZURE)
SAID: Final = ((SLT, TOKYO), (RMS, PERCENT))
AT_ONCE: Final = 2
"""How many calls are made at the same time: what is heard in them and said is computed on this machine."""
SPOKEN_OVER: Final = 25 * FRAME_BYTES
"""Half a second of speech, which interrupts an answer."""

Clips = Mapping[tuple[str, str], bytes]
SpokenAnswers = Mapping[str, Sequence[Exchange] | BaseException]
"""The answers of each model, or why there are none."""
Entered = TypeVar("Entered")


@dataclass(frozen=True)
class LiveServer:
    name: str
    server: VoiceServer
    simulator: RunningSimulator | None = None


@pytest.fixture(scope="module")
def clips(models_dir: Path) -> Clips:
    asked = [*SAID, (RMS, TOKYO), (SLT, PRODUCT), (RMS, ROOT)]
    return make_clips(models_dir, [(voice, question.text) for voice, question in asked])


@pytest.fixture(scope="module")
def live_servers(
    voice_server: VoiceServer, tmp_path_factory: pytest.TempPathFactory, models_dir: Path
) -> Iterator[Mapping[str, LiveServer]]:
    """A server for each model. OpenAI's simulator is Azure's too."""

    def simulate(name: str, *options: str) -> AbstractContextManager[RunningSimulator]:
        return run_simulator(name, *options, folder=tmp_path_factory.mktemp("simulated"))

    def serve_model(settings: Mapping[str, str], **variables: str) -> AbstractContextManager[VoiceServer]:
        folder = tmp_path_factory.mktemp("served")
        lines = [f'{name} = "{value}"' for name, value in settings.items()]
        (folder / "antiphon.toml").write_text("\n".join(["[model]", *lines]))
        return serve(folder, models_dir, **variables)

    with ExitStack() as stack:
        gemini, openai = enter_at_once(stack, simulate(GEMINI, "--tls-dir", "tls"), simulate(OPENAI))
        certificate = re.search(r"SSL_CERT_FILE=(\S+)", gemini.announced)
        assert certificate is not None
        servers = enter_at_once(
            stack,
            serve_model(
                {"voice": f"gemini-live:https://localhost:{gemini.port}#gemini-3.8-live"},
                GEMINI_API_KEY="any",
                SSL_CERT_FILE=certificate[1],
            ),
            serve_model({"voice": f"openai-realtime:{openai.url}/v1#gpt-realtime-2"}, OPENAI_API_KEY="any"),
            serve_model(
                {"voice": f"azure-realtime:{openai.url}#mine", "transcription": "my-transcribe"},
                AZURE_OPENAI_API_KEY="any",
            ),
        )
        found = [
            LiveServer(name, server, simulator)
            for name, server, simulator in zip(PROVIDERS, servers, (gemini, openai, openai), strict=True)
        ]
        yield {each.name: each for each in (LiveServer(CASCADE, voice_server), *found)}


def enter_at_once(stack: ExitStack, *managers: AbstractContextManager[Entered]) -> list[Entered]:
    """Starts processes at the same time."""
    with ThreadPoolExecutor(len(managers)) as pool:
        return list(pool.map(stack.enter_context, managers))


@pytest.fixture(params=[CASCADE, *PROVIDERS])
def live(request: pytest.FixtureRequest, live_servers: Mapping[str, LiveServer]) -> LiveServer:
    chosen = live_servers[request.param]
    if chosen.simulator is not None:
        chosen.simulator.disarm()
    return chosen


def as_written(heard: str) -> str:
    """What the recogniser has heard, with times written as the answers write them."""
    return re.sub(r"\b([ap])\. ?m\.", r"\1m", heard, flags=re.IGNORECASE)


async def ask_aloud(person: Person, clip: bytes) -> Exchange:
    """Asks, and waits for the words of the question too: a provider may write them down after its answer."""
    exchange = await person.say(clip)
    if not exchange.transcript:
        await person.until(lambda each: isinstance(each, s.Transcript) and each.is_final and each.turn == exchange.turn)
        exchange.take(person.told[-1], 0.0)
    return exchange


def described(name: str, question: Question, exchange: Exchange, heard: str = "") -> str:
    first_audio_ms = -1 if exchange.first_audio_s is None else round(1000 * exchange.first_audio_s)
    tools = [call.name for call in exchange.tools]
    parts = (name, question.text, exchange.transcript, tools, exchange.response, heard, f"{first_audio_ms} ms")
    return " | ".join(map(str, parts))


@pytest.fixture(scope="module")
def spoken_answers(live_servers: Mapping[str, LiveServer], clips: Clips) -> SpokenAnswers:
    """The answers of each model to the questions, asked one after the other in a call."""

    async def ask_all() -> Sequence[Sequence[Exchange] | BaseException]:
        turn = asyncio.Semaphore(AT_ONCE)

        async def ask(server: VoiceServer) -> Sequence[Exchange]:
            async with turn, calling(server.url) as person:
                return [await ask_aloud(person, clips[voice, question.text]) for voice, question in SAID]

        calls = (ask(live.server) for live in live_servers.values())
        return await asyncio.gather(*calls, return_exceptions=True)

    return dict(zip(live_servers, asyncio.run(ask_all()), strict=True))


@pytest.mark.parametrize("name", [CASCADE, *PROVIDERS])
async def test_spoken_questions_are_answered_with_tools_and_the_answers_can_be_heard(
    name: str, spoken_answers: SpokenAnswers, models_dir: Path
) -> None:
    answers = spoken_answers[name]
    if isinstance(answers, BaseException):
        raise answers
    async with engines(models_dir) as (_, moonshine):
        heard = [as_written(await moonshine.recognize(for_ears(each.pcm, SPEECH_HZ))) for each in answers]
    told = [
        described(name, question, exchange, words)
        for (_, question), exchange, words in zip(SAID, answers, heard, strict=True)
    ]
    print("\n".join(told))
    for (_, question), exchange in zip(SAID, answers, strict=True):
        assert error_rate([(question.text, exchange.transcript)]) < 0.3, told
        assert question.is_answered_by(exchange), told
    said = [speakable(exchange.response) for exchange in answers]
    # Both together: in a sentence of four words, one that is misheard is a quarter.
    assert error_rate(zip(said, heard, strict=True)) < 0.35, told


async def test_a_call_greets_and_answers_a_typed_question_and_speech_over_a_long_answer(
    live: LiveServer, clips: Clips
) -> None:
    words = onset(clips[RMS, TOKYO.text])
    async with connect(live.server.url, mode=Mode.TEXT, hello=c.Hello(audio=c.AudioForm.BINARY)) as session:
        person = Person(session)
        await session.send(c.StartVoice())
        await person.until(lambda each: isinstance(each, s.GenerationComplete))
        greeting = "".join(each.text for each in person.told if isinstance(each, s.ResponseChunk))
        assert greeting.strip() == Assistant().greeting
        await session.send(c.Interrupt(played_ms=60_000))
        await person.until_state(s.State.LISTENING)

        assert PRODUCT.is_answered_by(await person.ask("what is 17 times 6"))
        await session.send(c.TextMessage(LONG))
        await person.until_state(s.State.SPEAKING)
        await person.send_frames(bytes(25 * FRAME_BYTES), playing=True)
        await person.send_frames(words[:SPOKEN_OVER], playing=True)
        await person.until_state(s.State.INTERRUPTED)
        interrupted = len(person.told)
        exchange = await ask_aloud(person, words[SPOKEN_OVER:])
        assert TOKYO.is_answered_by(exchange), described(live.name, TOKYO, exchange)
        before, after = person.told[:interrupted], person.told[interrupted:]
        stopped = max(each.turn for each in before if isinstance(each, s.SpeechFrame))
        assert stopped not in [each.turn for each in after if isinstance(each, s.SpeechFrame)]
        full = "".join(each.text for each in before if isinstance(each, s.ResponseChunk) and each.turn == stopped)
        turns = live.server.said(person.conversation_id)
        assert [role for role, _, _ in turns] == ["assistant", *["user", "assistant"] * 3]
        heard = turns[4][1].split()
        assert 0 < len(heard) < len(full.split())
        assert full.split()[: len(heard)] == heard


@pytest.mark.parametrize("live", [GEMINI, OPENAI], indirect=True)
async def test_a_spoken_question_after_an_answer_that_a_button_has_stopped_is_answered(
    live: LiveServer, clips: Clips
) -> None:
    async with calling(live.server.url) as person:
        await person.session.send(c.TextMessage(LONG))
        await person.until(lambda each: isinstance(each, s.SpeechFrame))
        await person.session.send(c.Interrupt(played_ms=300))
        await person.until_state(s.State.LISTENING)
        exchange = await ask_aloud(person, clips[RMS, ROOT.text])
        assert ROOT.is_answered_by(exchange), described(live.name, ROOT, exchange)


@pytest.mark.parametrize("live", [GEMINI, OPENAI], indirect=True)
async def test_an_answer_that_breaks_off_is_given_to_the_end(live: LiveServer, clips: Clips) -> None:
    assert live.simulator is not None
    live.simulator.arm({"audio_chunk": 1}, "reset")
    async with calling(live.server.url) as person:
        exchange = await person.say(clips[SLT, PRODUCT.text], patient=True)
        assert PRODUCT.is_answered_by(exchange), described(live.name, PRODUCT, exchange)
        assert not any(isinstance(each, s.Error) for each in person.told)
        exchange = await person.say(clips[RMS, ROOT.text])
        assert ROOT.is_answered_by(exchange), described(live.name, ROOT, exchange)

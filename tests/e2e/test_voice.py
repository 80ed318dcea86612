"""Spoken conversations: several voices talk to a real server over its socket, and its answers are heard and checked."""

import asyncio
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from antiphon.client import Incoming, Mode, connect
from antiphon.client.speaking import FRAME_BYTES, QUIET, Exchange
from antiphon.config import Speech
from antiphon.models.cascade.endpointer import FRAME_MS, enough_frames
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.speech.spoken import speakable
from tests.e2e.questions import CHRISTMAS, LATER, PRODUCT, QUESTIONS, ROOT, TOKYO, UPTIME, Question
from tests.e2e.voices import (
    ENGLISH,
    JOE,
    RMS,
    SLT,
    Person,
    VoiceServer,
    calling,
    engines,
    make_clips,
    serve,
)
from tests.fakes.spoken import error_rate, for_ears

# Speech runs in real time, and so does preparing it for all tests of this module.
pytestmark = [pytest.mark.real_time, pytest.mark.timeout(180)]

SAID = (
    *((question, voice) for question in QUESTIONS for voice in (JOE, SLT, RMS)),
    # A robotic voice, which people have to listen to twice as well.
    *((question, ENGLISH) for question in (TOKYO, PRODUCT, UPTIME)),
)
AT_ONCE = 3
"""How many people talk at the same time. A machine with two cores serves four."""
WISH = "Please water the garden."
YES = "Yes, please."
LONG = "What can you do?"
"""A question with a long answer."""


@dataclass(frozen=True)
class Talk:
    """A question that was asked aloud, and everything that the server sent."""

    question: Question
    voice: str
    exchange: Exchange
    told: Sequence[Incoming]

    @property
    def is_right(self) -> bool:
        return self.question.is_answered_by(self.exchange)


Clips = Mapping[tuple[str, str], bytes]


@pytest.fixture(scope="module")
def clips(models_dir: Path) -> Clips:
    """Everything that is said in this module, by voice and text."""
    asked = [(voice, question.text) for question, voice in SAID]
    return make_clips(models_dir, [*asked, (JOE, WISH), (JOE, YES)])


@pytest.fixture(scope="module")
def talks(voice_server: VoiceServer, clips: Clips) -> list[Talk]:
    """Every question, asked by every voice."""

    async def ask_all() -> list[Talk]:
        turn = asyncio.Semaphore(AT_ONCE)

        async def ask(voice: str, question: Question) -> tuple[Exchange, list[Incoming]]:
            async with turn, calling(voice_server.url) as person:
                return await person.say(clips[voice, question.text]), person.told

        asked = await asyncio.gather(*(ask(voice, question) for question, voice in SAID))
        return [Talk(*each, *came) for each, came in zip(SAID, asked, strict=True)]

    return asyncio.run(ask_all())


# Answers.


def test_nine_of_ten_questions_are_answered_correctly(talks: list[Talk]) -> None:
    wrong = [(talk.voice, talk.exchange.transcript, talk.exchange.response) for talk in talks if not talk.is_right]
    print(f"{len(wrong)} of {len(talks)} wrong: {wrong}")
    assert len(wrong) <= len(talks) // 10


def test_what_was_said_is_understood(talks: list[Talk]) -> None:
    rate = error_rate((talk.question.text, talk.exchange.transcript) for talk in talks)
    print(f"word errors of the server: {rate:.3f}")
    assert rate < 0.1


async def test_the_answer_that_is_heard_is_the_answer_that_is_written(talks: list[Talk], models_dir: Path) -> None:
    # Each answer once: what was said before sounds the same again, and is misheard in the same way.
    sounds = {speakable(talk.exchange.response): talk.exchange.pcm for talk in talks}
    async with engines(models_dir) as (_, moonshine):
        heard = await asyncio.gather(*(moonshine.recognize(for_ears(pcm, SPEECH_HZ)) for pcm in sounds.values()))
    said = [
        (text, re.sub(r"\b([ap])\. ?m\.", r"\1m", each, flags=re.IGNORECASE))
        for text, each in zip(sounds, heard, strict=True)
    ]
    rate = error_rate(said)
    print(f"word errors of {len(said)} answers: {rate:.3f}")
    # A dozen sentences at most, with times and numbers in them: one that is misheard is a tenth.
    assert rate < 0.3, said


def test_interim_transcripts_come_before_the_final_one(talks: list[Talk]) -> None:
    for talk in talks:
        kinds = [each.is_final for each in talk.told if isinstance(each, s.Transcript)]
        assert kinds == [False] * (len(kinds) - 1) + [True]
    assert sum(len(talk.exchange.interims) > 1 for talk in talks) > len(talks) / 2


def test_every_turn_is_measured(talks: list[Talk]) -> None:
    for talk in talks:
        metrics = talk.exchange.metrics
        assert metrics is not None
        assert metrics.end_of_turn_ms is not None
        assert metrics.stt_ms is not None
        assert metrics.first_token_ms is not None
        assert metrics.first_audio_ms is not None
        assert metrics.total_ms is not None
        parts_ms = metrics.end_of_turn_ms + metrics.first_token_ms + metrics.first_audio_ms
        assert metrics.end_of_turn_ms >= enough_frames(Speech().short_silence_ms) * FRAME_MS
        assert metrics.total_ms >= parts_ms - 1
    print(_latencies([talk.exchange for talk in talks]))


# How it sounds.


async def test_twice_the_speed_takes_half_the_time(voice_server: VoiceServer) -> None:
    async with calling(voice_server.url) as person:
        usual = await person.ask("what is 17 times 6")
        await person.session.send(c.Settings(voice_speed=200))
        fast = await person.ask("what is 17 times 6")
        assert fast.response == usual.response
        assert 0.35 < fast.answer_s / usual.answer_s < 0.65


async def test_a_sample_of_the_voice_changes_no_state(voice_server: VoiceServer, models_dir: Path) -> None:
    async with calling(voice_server.url) as person:
        before = len(person.told)
        await person.session.send(c.TestAudio())
        await person.until(lambda incoming: isinstance(incoming, s.SpeechFrame))
        [sample] = person.told[before:]
        assert isinstance(sample, s.SpeechFrame)
        assert sample.turn == 0
        async with engines(models_dir) as (_, moonshine):
            heard = await moonshine.recognize(for_ears(sample.pcm, SPEECH_HZ))
        assert error_rate([("Hello, this is how I sound.", heard)]) < 0.4


# Speaking over an answer.


def onset(pcm: bytes) -> bytes:
    """The speech from its first sound on."""
    first = next(at for at, sample in enumerate(array("h", pcm)) if abs(sample) > QUIET)
    return pcm[2 * first :]


@pytest.mark.parametrize("voice", [RMS, SLT])
async def test_three_tenths_of_a_second_of_speech_interrupt_an_answer(
    voice_server: VoiceServer, clips: Clips, voice: str
) -> None:
    words = onset(clips[voice, TOKYO.text])
    spoken_over = 15 * FRAME_BYTES
    async with calling(voice_server.url) as person:
        await person.session.send(c.TextMessage(LONG))
        await person.until_state(s.State.SPEAKING)
        await person.send_frames(bytes(50 * FRAME_BYTES), playing=True)
        # No more than 300 ms: what is not noticed by then is not noticed at all.
        await person.send_frames(words[:spoken_over], playing=True)
        await person.until_state(s.State.INTERRUPTED)
        interrupted = len(person.told)
        exchange = await person.say(words[spoken_over:])
        assert TOKYO.is_answered_by(exchange)

        full = "".join(each.text for each in person.told[:interrupted] if isinstance(each, s.ResponseChunk))
        [old] = {each.turn for each in person.told[:interrupted] if isinstance(each, s.SpeechFrame)}
        assert old not in [each.turn for each in person.told[interrupted:] if isinstance(each, s.SpeechFrame)]
        (_, asked, _), (_, heard, is_spoken), *rest = voice_server.said(person.conversation_id)
        assert (asked, is_spoken) == (LONG, True)
        assert 0 < len(heard.split()) < len(full.split()) / 2
        assert full.split()[: len(heard.split())] == heard.split()
        assert [role for role, _, _ in rest] == ["user", "assistant"]


# Confirmation, several people, both modes.


async def test_a_spoken_yes_lets_a_tool_run(voice_server: VoiceServer, voice_folder: Path, clips: Clips) -> None:
    watered = voice_folder / "tools" / "water_garden" / "watered"
    async with calling(voice_server.url) as person:
        asked = await person.say(clips[JOE, WISH])
        [question] = asked.questions
        assert question.preview == "Water the garden?"
        assert not watered.exists()
        done = await person.say(clips[JOE, YES])
        assert [result.ok for result in done.results] == [True]
        assert done.response.strip() == "The garden has been watered."
        assert watered.exists()


async def test_four_people_at_once_are_all_answered_correctly(voice_server: VoiceServer, clips: Clips) -> None:
    said = [(JOE, TOKYO), (SLT, PRODUCT), (RMS, CHRISTMAS), (ENGLISH, UPTIME)]

    async def ask(voice: str, question: Question) -> Exchange:
        async with calling(voice_server.url) as person:
            return await person.say(clips[voice, question.text])

    exchanges = await asyncio.gather(*(ask(voice, question) for voice, question in said))
    print(_latencies(exchanges))
    wrong = [
        (exchange.transcript, exchange.response)
        for exchange, (_, question) in zip(exchanges, said, strict=True)
        if not question.is_answered_by(exchange)
    ]
    assert not wrong


async def test_a_conversation_goes_from_text_to_voice_and_back(voice_server: VoiceServer, clips: Clips) -> None:
    hello = c.Hello(audio=c.AudioForm.BINARY)
    async with connect(voice_server.url, mode=Mode.TEXT, hello=hello) as session:
        person = Person(session)
        assert not (await person.ask("what is 17 times 6")).pcm

        await session.send(c.StartVoice(pending_request="what is the square root of 16"))
        pending = Exchange()
        while not pending.metrics:
            incoming = await person.hear()
            pending.take(incoming, 0.0)
            if isinstance(incoming, s.GenerationComplete):
                await session.send(c.Interrupt(played_ms=1000 * pending.answer_s))
        assert ROOT.is_answered_by(pending)
        assert pending.pcm

        assert LATER.is_answered_by(await person.say(clips[SLT, LATER.text]))
        await session.send(c.EndVoice())
        await person.until_state(s.State.IDLE)
        assert not (await person.ask("how many days until Christmas")).pcm

        said = voice_server.said(person.conversation_id)
        assert [role for role, _, _ in said] == ["user", "assistant"] * 4
        assert [is_spoken for _, _, is_spoken in said] == [False, False, False, True, True, True, False, False]


# Servers that lack something, or die.


async def test_a_server_without_model_files_says_so_and_works_in_text(tmp_path: Path) -> None:
    with serve(tmp_path, tmp_path / "models") as server:
        [told] = [line for line in server.announced if "no voice" in line]
        assert "antiphon models pull" in told
        async with connect(server.url, mode=Mode.TEXT) as session:
            person = Person(session)
            assert PRODUCT.is_answered_by(await person.ask("what is 17 times 6"))
            await session.send(c.StartVoice())
            await person.until(lambda incoming: isinstance(incoming, s.Notice) and incoming.code == "voice_unavailable")
            assert CHRISTMAS.is_answered_by(await person.ask("how many days until Christmas"))


async def test_a_call_goes_on_after_its_server_was_killed_in_the_middle_of_an_answer(
    voice_server: VoiceServer, voice_folder: Path, models_dir: Path, clips: Clips
) -> None:
    with serve(voice_folder, models_dir) as doomed:
        async with calling(doomed.url) as person:
            await person.session.send(c.TextMessage(LONG))
            await person.until(lambda incoming: isinstance(incoming, s.SpeechFrame))
            doomed.kill()
            handle, last_n = person.session.handle, person.session.last_n
    hello = c.Hello(resume=handle, last_n=last_n, audio=c.AudioForm.BINARY, mode=Mode.VOICE)
    async with connect(voice_server.url, mode=Mode.VOICE, hello=hello) as session:
        back = Person(session)
        await back.until(lambda incoming: isinstance(incoming, s.GenerationComplete))
        [introduction] = [each for each in back.told if isinstance(each, s.Session)][:1]
        assert introduction.resumed
        assert introduction.mode is Mode.VOICE
        assert any(isinstance(each, s.SpeechFrame) for each in back.told)
        await session.send(c.Interrupt(played_ms=600_000))
        await back.until_state(s.State.LISTENING)
        assert TOKYO.is_answered_by(await back.say(clips[RMS, TOKYO.text]))
        assert [role for role, _, _ in voice_server.said(back.conversation_id)] == ["user", "assistant"] * 2


def _latencies(exchanges: Sequence[Exchange]) -> str:
    server_ms = sorted(
        each.metrics.total_ms for each in exchanges if each.metrics and each.metrics.total_ms is not None
    )
    client_ms = sorted(1000 * each.first_audio_s for each in exchanges if each.first_audio_s is not None)
    return "you stopped → it spoke, in ms: " + ", ".join(
        f"{name} median {median(times):.0f}, worst {times[-1]:.0f}"
        for name, times in (("server", server_ms), ("client", client_ms))
    )

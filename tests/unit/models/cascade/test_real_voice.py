"""With the real models: speech is understood, people interrupt an answer, and noises do not."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
import pytest

from antiphon.audio.pcm import Signal, from_signal, to_signal
from antiphon.audio.resample import resample
from antiphon.models.cascade.cascade import Cascade
from antiphon.models.completeness import Completeness, is_hanging
from antiphon.models.live import Held, InputTranscript, Interrupted, LiveContext, LiveEvent, OutputAudio, TurnComplete
from antiphon.speech.engines.piper import PiperSynthesizer
from antiphon.tools.spec import Mode
from antiphon.transcript import Transcript
from tests.fakes.scripted import ScriptedModel
from tests.fakes.spoken import error_rate, make_sentences, to_words
from tests.unit.audio.conftest import at_level, silence
from tests.unit.audio.test_barge import cough, hum, onset
from tests.unit.models.cascade.conftest import Engines

pytestmark = pytest.mark.real_time

HZ: Final = 16_000
PUSH: Final = 2 * HZ // 50
"""The bytes of 20 ms."""
OTHER: Final = 1.15
"""A speaker with a higher voice than the assistant's."""
ANSWER: Final = (
    "The capital of France is Paris, and about two million people live there. "
    "It is known for the Eiffel Tower, and for its museums. Many people visit it every year."
)
INTERRUPTIONS: Final = ("Wait a minute, that's not what I meant.", "Stop.", "No, I said Thursday.", "Hold on.")
MAX_ERROR_RATE: Final = 0.15
"""Over four sentences."""


@dataclass
class Call:
    cascade: Cascade
    piper: PiperSynthesizer
    events: list[LiveEvent] = field(default_factory=list)
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self) -> None:
        async for event in self.cascade.events():
            self.events.append(event)
            self._stirred.set()

    @property
    def finals(self) -> list[InputTranscript]:
        return [event for event in self.events if isinstance(event, InputTranscript) and event.is_final]

    async def wait_for(self, happened: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not happened():
                self._stirred.clear()
                await self._stirred.wait()

    async def make_speech(self, text: str, height: float = OTHER, dbfs: float = -20) -> Signal:
        pcm = b"".join([sound.pcm async for sound in self.piper.speak(text)])
        return at_level(to_signal(resample(pcm, round(self.piper.output_hz * height), HZ)), dbfs)

    async def push(self, sound: Signal, *, playing: bool = False) -> int | None:
        """Sends audio as fast as it is processed. Returns the millisecond at which the answer is held, if it is."""
        noise = np.random.default_rng(1).normal(0, 1e-4, len(sound)).astype(np.float32)
        pcm = from_signal(sound + noise)
        recognizer = self.cascade._recognizer
        assert recognizer is not None
        held_ms: int | None = None
        for at in range(0, len(pcm), PUSH):
            self.cascade.send_audio(pcm[at : at + PUSH], playing=playing)
            heard = asyncio.Event()
            recognizer._stream.when_idle(heard.set)
            await heard.wait()
            await asyncio.sleep(0)
            if held_ms is None and any(isinstance(event, Held) for event in self.events):
                held_ms = (at + PUSH) * 1_000 // (2 * HZ)
        return held_ms

    def has(self, kind: type[LiveEvent]) -> bool:
        return any(isinstance(event, kind) for event in self.events)

    async def answer(self) -> bytes:
        """Begins a long answer, and returns its audio."""
        self.events.clear()
        self.cascade.respond("t1", "Tell me about Paris.")
        await self.wait_for(lambda: TurnComplete("t1") in self.events or sum(map(_length_s, self.events)) > 4)
        return b"".join(event.pcm for event in self.events if isinstance(event, OutputAudio))


def _length_s(event: LiveEvent) -> float:
    return len(event.pcm) / (2 * 22_050) if isinstance(event, OutputAudio) else 0.0


@asynccontextmanager
async def talk(
    engines: Engines, completeness: Callable[[str], Completeness] = lambda text: Completeness.UNKNOWN
) -> AsyncIterator[Call]:
    async with engines.sharing() as shared:
        cascade = Cascade(replace(shared, completeness=completeness), ScriptedModel([ANSWER] * 20), engines.piper)
        await cascade.connect(LiveContext("", Transcript(), (), (), Mode.VOICE))
        call = Call(cascade, engines.piper)
        reading = asyncio.create_task(call.read())
        try:
            await call.push(silence(0.5))
            yield call
        finally:
            await cascade.close()
            await reading


async def test_speech_is_understood(engines: Engines) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    sentences = random.Random(seed).sample(make_sentences(seed), 4)
    heard: list[str] = []
    for sentence in sentences:
        async with talk(engines) as call:
            await call.push(np.concatenate([await call.make_speech(sentence, 1.0), silence(1.2)]))
            await call.wait_for(lambda: call.finals)
            await asyncio.sleep(0.1)
            heard.append(call.finals[-1].text)
    assert error_rate(zip(sentences, heard, strict=True)) <= MAX_ERROR_RATE, f"seed {seed}: {heard}"


async def test_speech_with_a_pause_is_understood_as_one_turn(engines: Engines) -> None:
    async with talk(engines) as call:
        halves = [await call.make_speech(text, 1.0) for text in ("I would like to know", "what time it is.")]
        await call.push(np.concatenate([halves[0], silence(0.45), halves[1], silence(1.2)]))
        await call.wait_for(lambda: call.finals and "time" in call.finals[-1].text)
        assert {"like", "know", "what", "time"} <= set(to_words(call.finals[-1].text.lower()))


async def test_a_short_word_long_after_a_hanging_request_belongs_to_it(engines: Engines) -> None:
    def judge(text: str) -> Completeness:
        return Completeness.HANGING if is_hanging(text) else Completeness.UNKNOWN

    async with talk(engines, judge) as call:
        halves = [await call.make_speech(text, 1.0) for text in ("What time is it in", "Rome?")]
        await call.push(np.concatenate([halves[0], silence(0.3)]))
        # Audio is sent as fast as it is processed, but words take the time that they take.
        await asyncio.sleep(1.0)
        await call.push(np.concatenate([silence(1.2), halves[1], silence(2.2)]))
        await call.wait_for(lambda: call.finals)
        *before, last = to_words(call.finals[0].text.lower())
        assert before == ["what", "time", "is", "it", "in"]
        assert last in ("rom", "rome")


async def test_the_end_of_the_audio_in_mid_speech_loses_no_word(engines: Engines) -> None:
    async with talk(engines) as call:
        await call.push(await call.make_speech("What time is it in London?", 1.0))
        call.cascade.end_audio("t1")
        await call.wait_for(lambda: call.finals)
        assert to_words(call.finals[0].text.lower()) == ["what", "time", "is", "it", "in", "london"]


async def interrupt(engines: Engines, *, playing: bool) -> list[float]:
    """The time from the beginning of the speech until the answer is held, in audio time. Each one is interrupted."""
    delays_ms: list[float] = []
    for text in INTERRUPTIONS:
        async with talk(engines) as call:
            speech = await call.make_speech(text)
            await call.answer()
            before = silence(0.4)
            at_ms = await call.push(np.concatenate([before, speech, silence(0.3)]), playing=playing)
            began_ms = (len(before) + onset(speech)) * 1_000 / HZ
            delays_ms.append(float("inf") if at_ms is None else at_ms - began_ms)
            await call.wait_for(partial(call.has, Interrupted))
            at = next(at for at, event in enumerate(call.events) if isinstance(event, Held))
            assert not any(isinstance(event, OutputAudio) for event in call.events[at:])
    return delays_ms


async def test_speech_holds_an_answer_within_200_ms_and_its_words_interrupt_it(engines: Engines) -> None:
    delays_ms = await interrupt(engines, playing=False)
    assert sorted(delays_ms)[-2] <= 200, delays_ms
    assert min(delays_ms) > 0


async def test_speech_holds_client_playback_within_300_ms_and_its_words_interrupt_it(engines: Engines) -> None:
    delays_ms = await interrupt(engines, playing=True)
    assert sorted(delays_ms)[-2] <= 300, delays_ms
    assert min(delays_ms) > 0


@pytest.mark.parametrize("noise", [cough(0), cough(1), hum(110), hum(160)], ids=["cough", "two", "hum", "higher hum"])
async def test_a_noise_does_not_interrupt_an_answer(engines: Engines, noise: Signal) -> None:
    async with talk(engines) as call:
        await call.answer()
        await call.push(np.concatenate([silence(0.4), at_level(noise, -20), silence(1.5)]))
        assert not call.has(Interrupted)
        assert call.finals == []


async def test_the_assistant_does_not_interrupt_itself(engines: Engines) -> None:
    async with talk(engines) as call:
        spoken = to_signal(resample(await call.answer(), call.piper.output_hz, HZ))
        microphone = np.concatenate([silence(0.13), spoken * np.float32(0.1)])
        assert await call.push(microphone, playing=True) is None


async def test_interrupting_speech_is_understood_from_the_first_word(engines: Engines) -> None:
    async with talk(engines) as call:
        speech = await call.make_speech("What time is it in London?", 1.0)
        await call.answer()
        assert await call.push(np.concatenate([silence(0.4), speech, silence(1.2)])) is not None
        await call.wait_for(lambda: call.finals)
        assert to_words(call.finals[0].text.lower()) == ["what", "time", "is", "it", "in", "london"]

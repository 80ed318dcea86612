"""What the voices in this process have in common. Piper's noise is at 0: the same text then gives the same samples."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from antiphon.audio.pcm import Signal, duration_ms, level_dbfs, to_signal
from antiphon.speech.base import Sound, SpeechBusy, SpeechError, Urgency
from antiphon.speech.engines.hibari import HibariSynthesizer
from antiphon.speech.engines.local import LocalSynthesizer
from antiphon.speech.engines.piper import PiperSynthesizer
from antiphon.speech.engines.synthesis import CLAUSE_PAUSE_MS, SENTENCE_PAUSE_MS, find_speech, shape
from antiphon.speech.workers import Done, Job, Workers

pytestmark = pytest.mark.real_time

SENTENCE = "The weather in Berlin is going to be sunny today, with a high of about twenty degrees."
SENTENCES = ("Hello!", "Are you sure?", "Apples, pears, and plums.", "Good morning!", "It's half past ten.", SENTENCE)
HZ = 22_050
ENGINES = ("hibari", "piper")


class NotingWorkers(Workers):
    def __init__(self) -> None:
        super().__init__(threads=2)
        self.urgencies: list[Urgency] = []

    async def run(self, job: Job[Done], urgency: Urgency = Urgency.NOW, *, refusable: bool = True) -> Done:
        self.urgencies.append(urgency)
        return await super().run(job, urgency, refusable=refusable)


@pytest.fixture(scope="module")
def workers() -> Iterator[NotingWorkers]:
    workers = NotingWorkers()
    yield workers
    asyncio.run(workers.aclose())


def open_engine(name: str, models_dir: Path, workers: Workers) -> LocalSynthesizer:
    if name == "hibari":
        return HibariSynthesizer(workers)
    return PiperSynthesizer(models_dir, workers, noise_scale=0.0)


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, models_dir: Path, workers: NotingWorkers) -> LocalSynthesizer:
    """One for all tests here: a voice takes a second to load."""
    return open_engine(request.param, models_dir, workers)


async def say(engine: LocalSynthesizer, text: str, voice: str | None = None, speed: float = 1.0) -> list[Sound]:
    return await collect(engine.speak(text, voice=voice, speed=speed))


async def collect(sounds: AsyncIterator[Sound]) -> list[Sound]:
    return [sound async for sound in sounds]


async def signal_of(engine: LocalSynthesizer, text: str) -> Signal:
    return to_signal(b"".join(sound.pcm for sound in await say(engine, text)))


def length_ms(sounds: list[Sound]) -> int:
    return sum(duration_ms(sound.pcm, HZ) for sound in sounds)


async def test_a_sentence_comes_in_chunks_with_a_short_first_one(engine: LocalSynthesizer) -> None:
    sounds = await say(engine, SENTENCE)
    assert len(sounds) >= 3
    assert duration_ms(sounds[0].pcm, HZ) < 450


async def test_only_the_last_chunk_reports_no_remaining_audio(engine: LocalSynthesizer) -> None:
    left = [sound.left_ms for sound in await say(engine, f"{SENTENCE} And that is all.")]
    assert left[-1] == 0
    assert all(left[:-1])


async def test_the_remaining_duration_is_known_from_the_first_chunk(engine: LocalSynthesizer) -> None:
    first, *rest = await say(engine, SENTENCE)
    assert first.left_ms == pytest.approx(length_ms(rest), abs=400)


async def test_the_remaining_duration_of_several_sentences_is_a_fair_estimate(engine: LocalSynthesizer) -> None:
    first, *rest = await say(engine, " ".join(SENTENCES))
    assert first.left_ms == pytest.approx(length_ms(rest), rel=0.3)


async def test_twice_the_speed_takes_half_the_time(engine: LocalSynthesizer) -> None:
    usual, fast = await say(engine, SENTENCE), await say(engine, SENTENCE, speed=2.0)
    assert length_ms(fast) == pytest.approx(length_ms(usual) / 2, rel=0.15)


@pytest.mark.parametrize(("speed", "as_if"), [(9.0, 2.0), (0.0, 0.5), (-1.0, 0.5), (float("nan"), 0.5)])
async def test_a_speed_out_of_range_is_the_nearest_in_range(
    engine: LocalSynthesizer, speed: float, as_if: float
) -> None:
    assert await say(engine, "Hello!", speed=speed) == await say(engine, "Hello!", speed=as_if)


async def test_an_unknown_voice_falls_back_to_the_default(engine: LocalSynthesizer) -> None:
    assert await say(engine, "Hello!", voice="nobody") == await say(engine, "Hello!", voice=engine.voices[0].id)


@pytest.mark.parametrize("text", ["", "   \n\t", "...", "?!", "— – -", '"()"', "\u200b", "\x00", "\ud800"])
async def test_a_silent_text_gives_no_audio(engine: LocalSynthesizer, text: str) -> None:
    assert await say(engine, text) == []


@pytest.mark.parametrize("text", ["a\x00b", "one \ud800 two", "[[x]]", "9" * 40, "<b>&amp;</b>", "\u202eabc"])
async def test_unusual_text_is_spoken_without_an_error(engine: LocalSynthesizer, text: str) -> None:
    assert (await say(engine, text))[-1].left_ms == 0


@pytest.mark.parametrize("text", [f"{SENTENCE} " * 60, "word " * 1_000, "9" * 5_000, "x" * 5_000])
async def test_a_long_text_begins_like_a_short_one(engine: LocalSynthesizer, text: str) -> None:
    sounds = engine.speak(text[:5_000])
    first, second = await anext(sounds), await anext(sounds)
    await sounds.aclose()  # type: ignore[attr-defined]
    assert len(first.pcm) < len(second.pcm) < 3 * HZ


async def test_a_request_does_not_wait_for_the_rest_of_another(
    engine: LocalSynthesizer, workers: NotingWorkers
) -> None:
    workers.urgencies.clear()
    await say(engine, SENTENCE)
    assert workers.urgencies[0] is Urgency.NOW
    assert set(workers.urgencies[1:]) == {Urgency.SOON}


@pytest.mark.parametrize("name", ENGINES)
async def test_a_started_answer_is_finished_even_if_no_other_can_begin(name: str, models_dir: Path) -> None:
    workers = Workers(threads=1, max_waiting=0)
    engine = open_engine(name, models_dir, workers)
    sounds = engine.speak(SENTENCE)
    heard = [await anext(sounds)]
    is_over = Event()
    others = asyncio.create_task(workers.run(lambda _: is_over.wait(10)))
    await asyncio.sleep(0)
    with pytest.raises(SpeechBusy):
        await say(engine, SENTENCE)
    rest = asyncio.create_task(collect(sounds))
    await asyncio.sleep(0)
    is_over.set()
    heard += await rest
    await others
    await workers.aclose()
    assert heard[-1].left_ms == 0


@pytest.mark.parametrize("name", ENGINES)
async def test_a_clause_of_a_started_answer_is_spoken_even_if_no_other_can_begin(name: str, models_dir: Path) -> None:
    workers = Workers(threads=1, max_waiting=0)
    engine = open_engine(name, models_dir, workers)
    is_over = Event()
    others = asyncio.create_task(workers.run(lambda _: is_over.wait(10)))
    await asyncio.sleep(0)
    clause = asyncio.create_task(collect(engine.speak("And that is all.", goes_on=True)))
    await asyncio.sleep(0)
    is_over.set()
    assert (await clause)[-1].left_ms == 0
    await others
    await workers.aclose()


async def test_unread_audio_is_not_synthesized(engine: LocalSynthesizer, workers: NotingWorkers) -> None:
    workers.urgencies.clear()
    sounds = engine.speak(SENTENCE)
    await anext(sounds)
    await sounds.aclose()  # type: ignore[attr-defined]
    assert len(workers.urgencies) == 1


async def test_two_texts_can_be_synthesized_at_once(engine: LocalSynthesizer) -> None:
    alone = await say(engine, SENTENCE)
    together = await asyncio.gather(say(engine, SENTENCE), say(engine, SENTENCE))
    assert list(together) == [alone, alone]


@pytest.mark.parametrize("text", SENTENCES)
async def test_the_first_word_comes_without_a_silence_before_it(engine: LocalSynthesizer, text: str) -> None:
    speech = find_speech(await signal_of(engine, text), HZ)
    assert speech is not None
    assert speech.start < HZ * 0.03


async def test_a_pause_is_longer_after_a_sentence_than_after_a_clause(engine: LocalSynthesizer) -> None:
    for text, pause_ms in (("It is sunny today.", SENTENCE_PAUSE_MS), ("It is sunny today,", CLAUSE_PAUSE_MS)):
        signal = await signal_of(engine, text)
        silent = signal.size - 1 - int(np.flatnonzero(np.abs(signal) > 0.001)[-1])
        assert silent * 1_000 / HZ == pytest.approx(pause_ms, abs=15)


async def test_sentences_are_about_equally_loud(engine: LocalSynthesizer) -> None:
    levels = [level_dbfs((await signal_of(engine, text) * 32_767).astype(np.int16)) for text in SENTENCES]
    assert max(levels) - min(levels) < 8
    assert np.mean(levels) == pytest.approx(-20, abs=2)


async def test_nothing_is_clipped(engine: LocalSynthesizer) -> None:
    assert max([float(np.abs(await signal_of(engine, text)).max()) for text in SENTENCES]) < 0.999


def test_loud_samples_are_compressed_and_the_rest_is_unchanged() -> None:
    signal = np.linspace(-3, 3, 601, dtype=np.float32)
    shaped = shape(signal, 1.0)
    assert np.all(np.diff(shaped) >= 0)
    assert np.abs(shaped).max() <= 1
    np.testing.assert_array_equal(shaped[np.abs(signal) < 0.8], signal[np.abs(signal) < 0.8])


def test_a_folder_without_voices_is_reported_with_how_to_get_one(tmp_path: Path, workers: NotingWorkers) -> None:
    with pytest.raises(SpeechError, match="models pull"):
        PiperSynthesizer(tmp_path / "nowhere", workers)

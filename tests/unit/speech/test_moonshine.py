"""Moonshine with the real model, and speech of the real voice."""

import asyncio
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from antiphon.audio.pcm import Signal, from_signal, to_signal
from antiphon.audio.resample import resample
from antiphon.audio.wav import read_wav
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.base import SpeechError
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.engines.moonshine import model as model_module
from antiphon.speech.engines.moonshine.files import find_files
from antiphon.speech.engines.moonshine.model import Drafts, Moonshine, find_loop
from antiphon.speech.engines.moonshine.recognizer import modernize
from antiphon.speech.engines.moonshine.tokens import END
from antiphon.speech.engines.piper import PiperSynthesizer
from antiphon.speech.workers import Workers
from antiphon.words.spelling import read_digits
from tests.fakes.spoken import error_rate, make_sentences, record

pytestmark = pytest.mark.real_time

SEED = 7
MAX_ERROR_RATE = 0.06
MAX_ERROR_RATE_IN_NOISE = 0.12
STORY = (
    "Yesterday morning I walked to the market, because we needed bread and milk and a few apples for the cake that my"
    " daughter wanted to bake for her grandmother, who is coming to visit us on Sunday. When I got there, the whole"
    " square was full of people who were listening to a band that played old songs from the time when my parents were"
    " young. So I stayed for almost an hour, and came home much too late for lunch. My wife was not angry at all."
)


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    workers = Workers(threads=4)
    yield workers
    asyncio.run(workers.aclose())


@pytest.fixture(scope="module")
def moonshine(models_dir: Path, workers: Workers) -> MoonshineRecognizer:
    """The model is not loaded: the first request loads it."""
    return MoonshineRecognizer(models_dir, workers)


@pytest.fixture(scope="module")
def model(models_dir: Path) -> Moonshine:
    return Moonshine(find_files(models_dir))


@pytest.fixture(scope="module")
def speech(models_dir: Path, workers: Workers) -> Sequence[bytes]:
    """The sentences, and then the story."""

    async def speak() -> list[bytes]:
        voice = PiperSynthesizer(models_dir, workers, noise_scale=0.0)
        return [await record(voice, text) for text in (*make_sentences(SEED), STORY)]

    return asyncio.run(speak())


def noise(seconds: float, level: float) -> Signal:
    return np.random.default_rng(1).normal(0, level, int(seconds * MICROPHONE_HZ)).astype(np.float32)


class Impatience(Event):
    """Is set after it was asked so often."""

    def __init__(self, patience: int) -> None:
        super().__init__()
        self.patience = patience

    def is_set(self) -> bool:
        self.patience -= 1
        return self.patience < 0


async def test_sentences_are_recognized(moonshine: MoonshineRecognizer, speech: Sequence[bytes]) -> None:
    heard = [await moonshine.recognize(pcm) for pcm in speech[:-1]]
    assert error_rate(zip(make_sentences(SEED), heard, strict=True)) <= MAX_ERROR_RATE, heard


def test_a_processor_without_exact_int8_is_no_less_accurate(
    models_dir: Path, speech: Sequence[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_module, "_is_int8_exact", lambda: False)
    older = Moonshine(find_files(models_dir))
    heard = [older.transcribe(to_signal(pcm), Event()) for pcm in speech[:-1]]
    assert error_rate(zip(make_sentences(SEED), heard, strict=True)) <= MAX_ERROR_RATE, heard


async def test_speech_too_long_for_the_model_is_recognized_as_one_text(
    moonshine: MoonshineRecognizer, speech: Sequence[bytes]
) -> None:
    assert len(speech[-1]) > 22 * 2 * MICROPHONE_HZ
    heard = await moonshine.recognize(speech[-1])
    assert error_rate([(STORY, heard)]) <= MAX_ERROR_RATE, heard


async def test_four_concurrent_requests_give_the_same_text_as_single_ones(
    moonshine: MoonshineRecognizer, speech: Sequence[bytes]
) -> None:
    some = speech[:4]
    alone = [await moonshine.recognize(pcm) for pcm in some]
    assert await asyncio.gather(*(moonshine.recognize(pcm) for pcm in some)) == alone


async def test_a_cancelled_request_costs_little(models_dir: Path, speech: Sequence[bytes]) -> None:
    workers = Workers(threads=1)
    moonshine = MoonshineRecognizer(models_dir, workers)
    moonshine.load()
    begun_s = time.process_time()
    await moonshine.recognize(speech[-1])
    whole_s = time.process_time() - begun_s

    begun_s = time.process_time()
    task = asyncio.create_task(moonshine.recognize(speech[-1]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await workers.aclose()
    assert time.process_time() - begun_s < whole_s / 2


def test_it_checks_between_tokens_whether_it_was_cancelled(model: Moonshine, speech: Sequence[bytes]) -> None:
    signal = to_signal(speech[0])
    part = model.transcribe(signal, Impatience(3))
    whole = model.transcribe(signal, Event())
    assert part
    assert len(part) < len(whole)
    assert whole.startswith(part)


class OneDraft(Drafts):
    """Whatever is heard, this was heard before."""

    def __init__(self, tokens: Sequence[int]) -> None:
        super().__init__()
        self._tokens = tokens

    def find(self, signal: Signal) -> Sequence[int]:
        return self._tokens


class Counted(Event):
    """How often the network was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def is_set(self) -> bool:
        self.asked += 1
        return False


def tokens_of(model: Moonshine, signal: Signal) -> Sequence[int]:
    """The tokens of a draft, which lacks the last one."""
    model._drafts = Drafts()
    model.transcribe(signal, Event())
    return model._drafts.find(signal)


@pytest.mark.parametrize("place", range(4))
def test_a_draft_changes_only_the_time(models_dir: Path, speech: Sequence[bytes], place: int) -> None:
    model = Moonshine(find_files(models_dir))
    signal = to_signal(speech[place])
    known = list(tokens_of(model, signal))
    model._drafts = OneDraft(())
    plain = Counted()
    whole = model.transcribe(signal, plain)
    shorter = (known[:1], known[:4], known[1:])
    longer = (known + known, [*known, END], [*known, END, *known])
    for draft in (known, *shorter, *longer, [*known[:4], 77, *known[5:]], [77] * 40):
        model._drafts = OneDraft(draft)
        counted = Counted()
        assert model.transcribe(signal, counted) == whole, draft
        assert counted.asked <= plain.asked, draft
    model._drafts, counted = OneDraft(known), Counted()
    model.transcribe(signal, counted)
    assert counted.asked < plain.asked / 2


def test_continued_speech_is_recognized_as_without_a_draft(model: Moonshine, speech: Sequence[bytes]) -> None:
    signal = to_signal(speech[1])
    model._drafts = Drafts()
    whole = model.transcribe(signal, Event())
    model._drafts = Drafts()
    for end in range(MICROPHONE_HZ, len(signal), MICROPHONE_HZ // 2):
        model.transcribe(signal[:end], Event())
    counted = Counted()
    assert model.transcribe(signal, counted) == whole
    assert counted.asked < len(whole.split())


def test_a_cancelled_request_decodes_no_tokens(model: Moonshine, speech: Sequence[bytes]) -> None:
    assert model.transcribe(to_signal(speech[0]), Impatience(0)) == ""


async def test_half_a_sample_at_the_end_is_left_out(moonshine: MoonshineRecognizer, speech: Sequence[bytes]) -> None:
    assert await moonshine.recognize(speech[0] + b"\x01") == await moonshine.recognize(speech[0])


@pytest.mark.parametrize("pcm", [b"", b"\x01", b"\x01\x02\x03", bytes(3_198)])
async def test_audio_too_short_for_a_word_has_no_words(moonshine: MoonshineRecognizer, pcm: bytes) -> None:
    assert await moonshine.recognize(pcm) == ""


async def test_the_shortest_accepted_audio_is_handled(moonshine: MoonshineRecognizer) -> None:
    assert len(await moonshine.recognize(from_signal(noise(0.1, level=0.1)))) < 20


@pytest.mark.parametrize("level", [0.0, 0.001, 0.1, 10.0])
async def test_noise_has_no_words(moonshine: MoonshineRecognizer, level: float) -> None:
    assert await moonshine.recognize(from_signal(noise(2.0, level))) == ""


async def test_a_minute_of_noise_is_handled(moonshine: MoonshineRecognizer) -> None:
    assert await moonshine.recognize(from_signal(noise(60.0, level=0.02))) == ""


def say_with_flite(text: str, voice: str = "slt") -> bytes:
    command = ["flite", "-voice", voice, "-o", "/dev/stdout", "-t", text]
    spoken = subprocess.run(command, check=True, capture_output=True).stdout
    lead = from_signal(noise(0.25, level=0.0003))
    return lead + resample(*read_wav(spoken), MICROPHONE_HZ) + lead


@pytest.mark.parametrize("digits", ["2 4 1, 5 4 9 9.", "2 7 7, 2 0 4, 0 5 6 0."])
async def test_digits_that_the_network_takes_for_silence_are_recognized(
    moonshine: MoonshineRecognizer, digits: str
) -> None:
    assert read_digits(await moonshine.recognize(say_with_flite(digits))) == read_digits(digits)


async def test_long_silence_around_a_sentence_costs_no_words(
    moonshine: MoonshineRecognizer, speech: Sequence[bytes]
) -> None:
    silence = from_signal(noise(3.0, level=0.0003))
    heard = await moonshine.recognize(silence + speech[0] + silence)
    assert heard == await moonshine.recognize(speech[0])


async def test_noise_costs_few_words(moonshine: MoonshineRecognizer, speech: Sequence[bytes]) -> None:
    heard = []
    for pcm in speech[:-1]:
        signal = np.concatenate([np.zeros(MICROPHONE_HZ // 4, np.float32), to_signal(pcm)])
        level = float(np.sqrt(np.mean(np.square(signal)) / 10))
        heard.append(await moonshine.recognize(from_signal(signal + noise(len(signal) / MICROPHONE_HZ, level))))
    assert error_rate(zip(make_sentences(SEED), heard, strict=True)) <= MAX_ERROR_RATE_IN_NOISE, heard


def test_expected_names_are_preferred_and_other_words_stay(models_dir: Path, speech: Sequence[bytes]) -> None:
    model = Moonshine(find_files(models_dir))
    signals = [to_signal(pcm) for pcm in speech[:4]]
    before = [model.transcribe(signal, Event()) for signal in signals]
    misheard = to_signal(say_with_flite("Turn on the carport.", "rms"))
    assert "carport" not in model.transcribe(misheard, Event())
    model.prefer(["Hallway lamp", "Roomba", "Carport", "Towel heater"])
    assert "carport" in model.transcribe(misheard, Event())
    assert [model.transcribe(signal, Event()) for signal in signals] == before


async def test_names_of_one_speaker_do_not_bias_what_others_say(moonshine: MoonshineRecognizer) -> None:
    said = say_with_flite("Turn on the carport.", "rms")
    before = await moonshine.recognize(said)
    assert "carport" not in before
    own = moonshine.preferring(["Carport"])
    assert "carport" in await own.recognize(said)
    assert await moonshine.recognize(said) == before
    assert await moonshine.preferring(["Towel heater"]).recognize(said) == before


def test_missing_files_are_reported_on_construction(tmp_path: Path, workers: Workers) -> None:
    with pytest.raises(SpeechError, match=r"encoder_model\.ort.*antiphon models pull"):
        MoonshineRecognizer(tmp_path, workers)


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [
        ([], None),
        ([7, 8, 9], None),
        ([5, *[7] * 11], None),
        ([5, *[7] * 12], 2),
        ([5, 6, *[7, 8] * 6], 4),
        ([*[7, 8, 9] * 3, 7, 8], None),
        ([4, *[7, 8, 9, 10, 11] * 4], 6),
        ([4, *[7, 8, 9, 10, 11] * 3], None),
    ],
)
def test_a_looping_text_is_cut_after_the_first_repetition(tokens: list[int], kept: int | None) -> None:
    assert find_loop(tokens) == kept


@pytest.mark.parametrize(
    ("text", "modern"),
    [
        ("Call me to-morrow.", "Call me tomorrow."),
        ("To-day or to-night?", "Today or tonight?"),
        ("Good-bye!", "Goodbye!"),
        ("Ten per cent of it.", "Ten percent of it."),
        ("A to-do list per centimeter.", "A to-do list per centimeter."),
        ("", ""),
    ],
)
def test_old_spellings_are_modernized(text: str, modern: str) -> None:
    assert modernize(text) == modern

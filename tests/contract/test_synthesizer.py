"""What a session may expect of every `Synthesizer`."""

import asyncio
import random
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from antiphon.audio.pcm import duration_ms
from antiphon.speech.base import Sound, SpeechError, Synthesizer, Voice
from antiphon.speech.engines.hibari import HibariSynthesizer
from antiphon.speech.engines.hibari.synthesizer import VoiceFile
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.engines.openai import OpenAISynthesizer
from antiphon.speech.engines.piper import PiperSynthesizer
from antiphon.speech.engines.wyoming import WyomingSynthesizer
from antiphon.speech.references import parse_uri
from antiphon.speech.workers import Workers
from antiphon.speech.wyoming_server import serve_wyoming
from tests.fakes.speech_server import KEY, MOUTH_MODEL, serve_audio_api
from tests.fakes.spoken import error_rate, for_ears, make_sentences

pytestmark = pytest.mark.real_time

MAX_ERROR_RATE = 0.1
"""The word error rate over the whole set. The worst of 50 other sets had 0.045; a single sentence varies too much."""
SENTENCE = "The train to London leaves at half past seven in the morning."
STORY = "My sister lives in Chicago. She has two dogs and a cat. On Sunday we will go to the river together."
NAMES = ["hibari", "piper", "wyoming", "offered", "openai"]


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """Shared by the tests of this file, though each has a loop of its own: between two tests it is idle.

    With one thread, what is not given up stands in the way.
    """
    made = Workers(threads=1)
    yield made
    asyncio.run(made.aclose())


@pytest.fixture(scope="module")
def hibari(workers: Workers) -> HibariSynthesizer:
    return HibariSynthesizer(workers)


@pytest.fixture(scope="module")
def piper(models_dir: Path, workers: Workers) -> PiperSynthesizer:
    return PiperSynthesizer(models_dir, workers)


@pytest.fixture(scope="module")
def moonshine(models_dir: Path, workers: Workers) -> MoonshineRecognizer:
    """The recognizer that judges what was synthesized."""
    loaded = MoonshineRecognizer(models_dir, workers)
    loaded.load()
    return loaded


@pytest.fixture(scope="module")
def wyoming_piper(models_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Runs Home Assistant's own Piper server with our voice, and yields its port."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = int(bound.getsockname()[1])
    folders = ["--data-dir", str(models_dir / "joe"), "--download-dir", str(tmp_path_factory.mktemp("downloads"))]
    listening = ["--voice", "en_US-joe-medium", "--uri", f"tcp://127.0.0.1:{port}"]
    with subprocess.Popen([sys.executable, "-m", "wyoming_piper", *folders, *listening]) as process:
        try:
            _wait_for(port, process)
            yield port
        finally:
            process.terminate()


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    give_up_s = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < give_up_s:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    pytest.fail("wyoming-piper did not start")


@pytest.fixture(params=NAMES)
async def synthesizer(request: pytest.FixtureRequest, hibari: HibariSynthesizer) -> AsyncIterator[Synthesizer]:
    match request.param:
        case "hibari":
            yield hibari
        case "piper":
            yield request.getfixturevalue("piper")
        case "wyoming":
            remote = WyomingSynthesizer("127.0.0.1", request.getfixturevalue("wyoming_piper"), "en_US-joe-medium")
            await remote.open()
            yield remote
            await remote.aclose()
        case "offered":
            async with serve_wyoming("tcp://127.0.0.1:0", request.getfixturevalue("moonshine"), hibari) as uri:
                address = parse_uri(uri)
                remote = WyomingSynthesizer(address.host, address.port)
                await remote.open()
                yield remote
                await remote.aclose()
        case _:
            async with serve_audio_api(synthesizer=hibari) as url:
                hosted = OpenAISynthesizer(url, MOUTH_MODEL, KEY)
                yield hosted
                await hosted.aclose()


@pytest.fixture(params=["hibari", "piper", "wyoming", "openai"])
def ask_the_dead(request: pytest.FixtureRequest, tmp_path: Path, workers: Workers) -> Callable[[], Awaitable[object]]:
    """Sends a request to an engine whose files or server are gone."""

    async def ask() -> object:
        dead: Synthesizer
        match request.param:
            case "hibari":
                gone = VoiceFile(Voice("heart", "Heart", "en-US"), tmp_path / "gone.onnx", is_british=False)
                dead = HibariSynthesizer(workers, {"heart": gone})
            case "piper":
                dead = PiperSynthesizer(tmp_path, workers)
            case "wyoming":
                dead = WyomingSynthesizer("127.0.0.1", 9)
            case _:
                dead = OpenAISynthesizer("http://127.0.0.1:9/v1", MOUTH_MODEL, KEY)
        try:
            return await speak(dead, SENTENCE)
        finally:
            await dead.aclose()

    return ask


async def speak(synthesizer: Synthesizer, text: str, *, voice: str | None = None, speed: float = 1.0) -> bytes:
    return b"".join([each.pcm async for each in synthesizer.speak(text, voice=voice, speed=speed)])


async def hear(moonshine: MoonshineRecognizer, synthesizer: Synthesizer, pcm: bytes) -> str:
    return await moonshine.recognize(for_ears(pcm, synthesizer.output_hz))


async def comes_to_rest(workers: Workers) -> bool:
    """Whether all work stops soon. A server notices only after a moment that its client is gone."""
    for _ in range(500):
        if workers.is_idle:
            return True
        await asyncio.sleep(0.01)
    return False


async def test_synthesized_speech_is_recognized_correctly(
    synthesizer: Synthesizer, moonshine: MoonshineRecognizer
) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    said = make_sentences(seed)[:5]
    pairs = [(each, await hear(moonshine, synthesizer, await speak(synthesizer, each))) for each in said]
    assert error_rate(pairs) <= MAX_ERROR_RATE, f"seed {seed}: {pairs}"


async def test_several_sentences_are_spoken_completely(
    synthesizer: Synthesizer, moonshine: MoonshineRecognizer
) -> None:
    heard = await hear(moonshine, synthesizer, await speak(synthesizer, STORY))
    assert error_rate([(STORY, heard)]) <= MAX_ERROR_RATE, heard


async def test_audio_has_the_declared_sample_rate(synthesizer: Synthesizer) -> None:
    """At a wrong rate the audio would be too long or too short: this sentence takes about three and a half seconds."""
    ms = duration_ms(await speak(synthesizer, SENTENCE), synthesizer.output_hz)
    assert 2_800 <= ms <= 4_400


async def test_twice_the_speed_takes_about_half_the_time(synthesizer: Synthesizer) -> None:
    usual, fast = len(await speak(synthesizer, STORY)), len(await speak(synthesizer, STORY, speed=2.0))
    assert 0.4 <= fast / usual <= 0.67


async def test_fast_speech_is_still_intelligible(synthesizer: Synthesizer, moonshine: MoonshineRecognizer) -> None:
    heard = await hear(moonshine, synthesizer, await speak(synthesizer, STORY, speed=1.4))
    assert error_rate([(STORY, heard)]) <= 0.3, heard


async def test_an_unknown_voice_falls_back_to_the_default(
    synthesizer: Synthesizer, moonshine: MoonshineRecognizer
) -> None:
    heard = await hear(moonshine, synthesizer, await speak(synthesizer, STORY, voice="nobody"))
    assert error_rate([(STORY, heard)]) <= MAX_ERROR_RATE, heard


async def test_the_default_voice_can_be_requested(synthesizer: Synthesizer) -> None:
    assert await speak(synthesizer, SENTENCE, voice=synthesizer.voices[0].id)


@pytest.mark.parametrize("text", ["", " \n", "…"])
async def test_an_empty_text_is_not_an_error(synthesizer: Synthesizer, text: str) -> None:
    assert duration_ms(await speak(synthesizer, text), synthesizer.output_hz) < 1_500


async def test_audio_comes_in_whole_samples(synthesizer: Synthesizer) -> None:
    assert all(len(each.pcm) % 2 == 0 for each in await _sounds(synthesizer, SENTENCE))


async def test_the_remaining_duration_decreases(synthesizer: Synthesizer) -> None:
    """An engine that cannot estimate it returns None for every chunk."""
    left = [each.left_ms for each in await _sounds(synthesizer, STORY)]
    assert left == [None] * len(left) or left[-1] == 0


async def test_concurrent_texts_are_each_spoken_completely(
    synthesizer: Synthesizer, moonshine: MoonshineRecognizer
) -> None:
    texts = [SENTENCE, STORY]
    spoken = await asyncio.gather(*(speak(synthesizer, text) for text in texts))
    pairs = [(text, await hear(moonshine, synthesizer, pcm)) for text, pcm in zip(texts, spoken, strict=True)]
    assert error_rate(pairs) <= MAX_ERROR_RATE, pairs


async def test_a_cancelled_request_does_not_block_others(synthesizer: Synthesizer, workers: Workers) -> None:
    tasks = [asyncio.create_task(speak(synthesizer, STORY * 5)) for _ in range(3)]
    await asyncio.sleep(0.1)
    for task in tasks:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends)
    assert await comes_to_rest(workers)
    assert await speak(synthesizer, SENTENCE)


async def test_an_abandoned_stream_does_not_block_others(synthesizer: Synthesizer, workers: Workers) -> None:
    sounds = synthesizer.speak(STORY * 5)
    assert (await anext(sounds)).pcm
    await sounds.aclose()  # type: ignore[attr-defined]
    assert await comes_to_rest(workers)
    assert await speak(synthesizer, SENTENCE)


async def test_a_missing_engine_is_reported_in_one_sentence(ask_the_dead: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(SpeechError) as told:
        await ask_the_dead()
    assert len(str(told.value)) > 20
    assert "\n" not in str(told.value)


async def test_a_synthesizer_has_a_name_and_a_voice(synthesizer: Synthesizer) -> None:
    assert synthesizer.name
    assert synthesizer.voices[0].id


async def _sounds(synthesizer: Synthesizer, text: str) -> Sequence[Sound]:
    return [each async for each in synthesizer.speak(text)]

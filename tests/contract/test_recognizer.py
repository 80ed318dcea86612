"""What a session may expect of every `Recognizer`."""

import asyncio
import random
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import pytest

from antiphon.speech.base import Recognizer, SpeechError
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.engines.openai import OpenAIRecognizer
from antiphon.speech.engines.piper import PiperSynthesizer
from antiphon.speech.engines.wyoming import WyomingRecognizer
from antiphon.speech.references import WyomingServer, parse_uri
from antiphon.speech.workers import Workers
from tests.fakes.speech_server import EARS_MODEL, KEY, serve_audio_api
from tests.fakes.spoken import error_rate, make_sentences, record

pytestmark = pytest.mark.real_time

MAX_ERROR_RATE = 0.1
"""The word error rate over the whole set. The worst of 50 other sets had 0.045; a single sentence varies too much."""
NOBODY = "tcp://127.0.0.1:9"


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """Shared by the tests of this file, though each has a loop of its own: between two tests it is idle.

    With one thread, what is not given up stands in the way.
    """
    made = Workers(threads=1)
    yield made
    asyncio.run(made.aclose())


@pytest.fixture(scope="module")
def moonshine(models_dir: Path, workers: Workers) -> MoonshineRecognizer:
    loaded = MoonshineRecognizer(models_dir, workers)
    loaded.load()
    return loaded


@pytest.fixture(scope="module")
def offered() -> Iterator[WyomingServer]:
    """A recognizer in another process, as started by `antiphon speech serve`."""
    command = [str(Path(sys.executable).with_name("antiphon")), "speech", "serve", "--uri", "tcp://127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            announced = process.stdout.readline()
            found = re.search(r"tcp://\S+?:\d+", announced)
            assert found is not None, f"it did not start: {announced}"
            yield parse_uri(found[0])
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0


@pytest.fixture(scope="module")
def seed() -> int:
    """The seed of the sentences, different in every run. A failing test shows it."""
    return random.SystemRandom().randrange(1_000_000)


@pytest.fixture(scope="module")
def said(seed: int) -> Sequence[str]:
    return make_sentences(seed)


@pytest.fixture(scope="module")
def speech(models_dir: Path, workers: Workers, said: Sequence[str]) -> Sequence[bytes]:
    async def speak() -> list[bytes]:
        voice = PiperSynthesizer(models_dir, workers, noise_scale=0.0)
        return [await record(voice, sentence) for sentence in said]

    return asyncio.run(speak())


@pytest.fixture(params=["moonshine", "wyoming", "openai"])
async def recognizer(request: pytest.FixtureRequest) -> AsyncIterator[Recognizer]:
    match request.param:
        case "moonshine":
            yield request.getfixturevalue("moonshine")
        case "wyoming":
            address = request.getfixturevalue("offered")
            remote = WyomingRecognizer(address.host, address.port)
            await remote.open()
            yield remote
            await remote.aclose()
        case _:
            async with serve_audio_api(request.getfixturevalue("moonshine")) as url:
                hosted = OpenAIRecognizer(url, EARS_MODEL, KEY)
                yield hosted
                await hosted.aclose()


@pytest.fixture(params=["moonshine", "wyoming", "openai"])
def ask_the_dead(request: pytest.FixtureRequest, tmp_path: Path, workers: Workers) -> Callable[[], Awaitable[str]]:
    """Sends a request to an engine whose files or server are gone."""

    async def ask() -> str:
        dead: Recognizer
        match request.param:
            case "moonshine":
                dead = MoonshineRecognizer(tmp_path, workers)
            case "wyoming":
                address = parse_uri(NOBODY)
                dead = WyomingRecognizer(address.host, address.port)
            case _:
                dead = OpenAIRecognizer("http://127.0.0.1:9/v1", EARS_MODEL, KEY)
        try:
            return await dead.recognize(bytes(32_000))
        finally:
            await dead.aclose()

    return ask


async def comes_to_rest(workers: Workers) -> bool:
    """Whether all work stops soon. A server notices only after a moment that its client is gone."""
    for _ in range(500):
        if workers.is_idle:
            return True
        await asyncio.sleep(0.01)
    return False


async def test_speech_is_recognized_correctly(
    recognizer: Recognizer, said: Sequence[str], speech: Sequence[bytes], seed: int
) -> None:
    heard = [await recognizer.recognize(pcm) for pcm in speech]
    pairs = list(zip(said, heard, strict=True))
    assert error_rate(pairs) <= MAX_ERROR_RATE, f"seed {seed}: {pairs}"


async def test_concurrent_requests_give_the_same_text_as_single_ones(
    recognizer: Recognizer, speech: Sequence[bytes]
) -> None:
    some = speech[:3]
    alone = [await recognizer.recognize(pcm) for pcm in some]
    assert await asyncio.gather(*(recognizer.recognize(pcm) for pcm in some)) == alone


@pytest.mark.parametrize("pcm", [b"", bytes(2), bytes(320)])
async def test_too_little_audio_gives_no_words(recognizer: Recognizer, pcm: bytes) -> None:
    assert await recognizer.recognize(pcm) == ""


async def test_a_cancelled_request_does_not_block_others(
    recognizer: Recognizer, workers: Workers, said: Sequence[str], speech: Sequence[bytes]
) -> None:
    long = [asyncio.create_task(recognizer.recognize(b"".join(speech[:4]))) for _ in range(4)]
    await asyncio.sleep(0.1)
    for task in long:
        task.cancel()
    assert all(isinstance(each, asyncio.CancelledError) for each in await asyncio.gather(*long, return_exceptions=True))
    assert await comes_to_rest(workers)
    heard = await recognizer.recognize(speech[0])
    assert error_rate([(said[0], heard)]) < 0.5


async def test_a_missing_engine_is_reported_in_one_sentence(ask_the_dead: Callable[[], Awaitable[str]]) -> None:
    with pytest.raises(SpeechError) as told:
        await ask_the_dead()
    assert len(str(told.value)) > 20
    assert "\n" not in str(told.value)


async def test_a_recognizer_has_a_name(recognizer: Recognizer) -> None:
    assert recognizer.name

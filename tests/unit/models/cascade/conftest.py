"""A clock for what is timed here to the frame, and the real engines, loaded once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Barrier
from typing import Final

import pytest

from antiphon.audio.turn import TurnDetector
from antiphon.audio.vad import Vad
from antiphon.models.cascade.batched_vad import BatchedVad
from antiphon.models.cascade.shared_engines import SharedEngines
from antiphon.models.completeness import Completeness
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.engines.piper import PiperSynthesizer
from antiphon.speech.workers import Workers
from tests.fakes.said import Said
from tests.fakes.steady_loop import STEADY
from tests.fakes.talk import Talk
from tests.fakes.voice import SILENCES, Tones

THREADS: Final = 2


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]] | None:
    return STEADY if item.get_closest_marker("real_time") is None else None


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    talk = Talk()
    yield talk
    await talk.recognizer.close()
    await talk.fakes.batched_vad.aclose()


@pytest.fixture
async def said() -> AsyncIterator[Said]:
    said = Said(Tones())
    yield said
    await said.output.close()
    assert said.tones.open == 0


class Engines:
    def __init__(self, models_dir: Path) -> None:
        self._pool = ThreadPoolExecutor(THREADS)
        self.workers = Workers(THREADS, pool=self._pool)
        self.moonshine = MoonshineRecognizer(models_dir, self.workers)
        self.moonshine.load()
        # Without noise the same text is the same sound.
        self.piper = PiperSynthesizer(models_dir, self.workers, noise_scale=0.0)
        self.piper.load()
        self._vad = Vad(models_dir / "silero-vad" / "silero_vad.onnx")
        self._detector = TurnDetector(models_dir / "smart-turn" / "smart-turn-v3.2-cpu.onnx")

    @asynccontextmanager
    async def sharing(self) -> AsyncIterator[SharedEngines]:
        """Engines for one test. All their work is finished before the next test begins, on another loop."""
        batched_vad = BatchedVad(self._vad)
        try:
            yield SharedEngines(
                batched_vad, self.moonshine, self._detector, self.workers, lambda text: Completeness.UNKNOWN, SILENCES
            )
        finally:
            await batched_vad.aclose()
            # Cancelled jobs run until they notice. Jobs that wait for each other prove that all threads are free.
            together = Barrier(THREADS)
            await asyncio.gather(*(asyncio.wrap_future(self._pool.submit(together.wait)) for _ in range(THREADS)))


@pytest.fixture(scope="session")
def engines(models_dir: Path) -> Iterator[Engines]:
    engines = Engines(models_dir)
    yield engines
    asyncio.run(engines.workers.aclose())

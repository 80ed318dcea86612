"""Our recogniser as the server uses it: one event loop, worker threads, one core per call."""

import asyncio
import struct
from itertools import cycle
from pathlib import Path

from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.workers import Workers
from bench.speech.answering import Recognize, answer


def main(models_dir: Path) -> None:
    with asyncio.Runner() as runner:
        workers = Workers(threads=2)

        def load() -> Recognize:
            recognizer = MoonshineRecognizer(models_dir, workers)
            recognizer.load()

            # Speech that begins with the same samples is faster the second time. No two clips here begin alike.
            beginnings = (struct.pack("<h", number) for number in cycle(range(-99, 100)))

            async def recognize(pcm: bytes, at_once: int) -> str:
                clips = [next(beginnings) + pcm[2:] for _ in range(at_once)]
                texts = await asyncio.gather(*map(recognizer.recognize, clips))
                return texts[0]

            return lambda pcm, at_once: runner.run(recognize(pcm, at_once))

        answer(load)
        runner.run(workers.aclose())

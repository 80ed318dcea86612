"""Our recogniser, as the server uses it: one loop, worker threads, one core a call."""

import asyncio
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

            async def recognize(pcm: bytes, at_once: int) -> str:
                texts = await asyncio.gather(*(recognizer.recognize(pcm) for _ in range(at_once)))
                return texts[0]

            return lambda pcm, at_once: runner.run(recognize(pcm, at_once))

        answer(load)
        runner.run(workers.aclose())

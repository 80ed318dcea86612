# mypy: ignore-errors
"""Pipecat's input side: for each session, a pipeline that only detects speech and turns.

As in its examples, the user's aggregator has a `SileroVADAnalyzer` and Smart Turn, both with their own settings. The
audio comes from memory instead of a socket, and everything behind the aggregator is dropped. There is no recogniser,
model or voice, and no observers for clients or traces.

It reads its task from a line of input, and reports when it has loaded its libraries and when all sessions are running.
At the next line it prints its counts and ends.
"""

import asyncio
import json
import sys
from itertools import count, cycle
from pathlib import Path
from random import Random

from loguru import logger
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.frames.frames import (
    CancelFrame,
    EndFrame,
    InputAudioRawFrame,
    MetricsFrame,
    StartFrame,
    UserStartedSpeakingFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair, LLMUserAggregatorParams
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.transports.base_input import BaseInputTransport
from pipecat.transports.base_transport import TransportParams
from pipecat.workers.runner import WorkerRunner

from bench.load.microphone import EVERY_FRAMES, FRAME_MS, HZ, STEP_FRAMES, Microphone, load_recordings


class Inlet(BaseInputTransport):
    def __init__(self, microphone: Microphone) -> None:
        super().__init__(TransportParams(audio_in_enabled=True, audio_in_sample_rate=HZ))
        self._microphone = microphone
        self.opened = asyncio.Event()

    async def start(self, frame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)
        self.opened.set()

    async def hear(self) -> None:
        await self.push_audio_frame(InputAudioRawFrame(self._microphone.record(), HZ, 1))


class Outlet(FrameProcessor):
    """Drops everything except the frames that end a pipeline, and counts."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = 0
        self.votes = 0

    async def process_frame(self, frame, direction) -> None:
        await super().process_frame(frame, direction)
        self.turns += isinstance(frame, UserStartedSpeakingFrame)
        self.votes += isinstance(frame, MetricsFrame)
        if isinstance(frame, StartFrame | EndFrame | CancelFrame):
            await self.push_frame(frame, direction)


class Session:
    def __init__(self, microphone: Microphone) -> None:
        self.inlet = Inlet(microphone)
        self.outlet = Outlet()
        aggregators = LLMContextAggregatorPair(
            LLMContext(), user_params=LLMUserAggregatorParams(vad_analyzer=SileroVADAnalyzer())
        )
        self.worker = PipelineWorker(
            Pipeline([self.inlet, aggregators.user(), self.outlet]),
            params=PipelineParams(audio_in_sample_rate=HZ),
            cancel_on_idle_timeout=False,
            enable_rtvi=False,
            enable_turn_tracking=False,
        )


async def stream(inlet: Inlet, begin_s: float) -> None:
    """Streams in real time. Each session has a task that wakes for each frame, as its socket would."""
    loop = asyncio.get_running_loop()
    for frame in count():
        await asyncio.sleep(begin_s + frame * FRAME_MS / 1000 - loop.time())
        await inlet.hear()


async def main() -> None:
    logger.remove()
    order = json.loads(await asyncio.to_thread(sys.stdin.readline))
    recordings = cycle(load_recordings(Path(order["phrases"])))
    print("loaded", flush=True)
    sessions = []
    for place in range(order["sessions"]):
        first_at = EVERY_FRAMES * place // order["sessions"] // STEP_FRAMES * STEP_FRAMES
        sessions.append(Session(Microphone(recordings.__next__, first_at, Random(place))))
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(*(session.worker for session in sessions))
    running = asyncio.create_task(runner.run())
    for session in sessions:
        await session.inlet.opened.wait()
    begin_s = asyncio.get_running_loop().time()
    streaming = [
        asyncio.create_task(stream(session.inlet, begin_s + FRAME_MS / 1000 * place / len(sessions)))
        for place, session in enumerate(sessions)
    ]
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    heard = {name: sum(getattr(session.outlet, name) for session in sessions) for name in ("turns", "votes")}
    print(json.dumps(heard), flush=True)
    for task in streaming:
        task.cancel()
    for session in sessions:
        await session.worker.cancel()
    await running

# mypy: ignore-errors
"""`python -m bench.live.pipecat_sessions`: sessions of Pipecat's Gemini Live service.

Each session is a pipeline as in its examples, without a transport. The audio comes from memory instead of a socket, and
the end of the pipeline takes the time at which a transport would have got the answer. There are no observers for
clients or traces.
"""

import asyncio

from google.genai.types import HttpOptions
from loguru import logger
from pipecat.frames.frames import (
    InputAudioRawFrame,
    LLMRunFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
    TTSTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.google.gemini_live.llm import GeminiLiveLLMService
from pipecat.transports.base_input import BaseInputTransport
from pipecat.transports.base_transport import TransportParams
from pipecat.workers.runner import WorkerRunner

from bench.live.streaming import HZ, Arrivals, read_order, stream_all


class Inlet(BaseInputTransport):
    def __init__(self) -> None:
        super().__init__(TransportParams(audio_in_enabled=True, audio_in_sample_rate=HZ))
        self.opened = asyncio.Event()

    async def start(self, frame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)
        self.opened.set()

    async def hear(self, pcm: bytes) -> None:
        await self.push_audio_frame(InputAudioRawFrame(pcm, HZ, 1))


class Outlet(FrameProcessor):
    """The end of the pipeline, where a transport would begin to play."""

    def __init__(self, arrivals: Arrivals) -> None:
        super().__init__()
        self._arrivals = arrivals

    async def process_frame(self, frame, direction) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case TTSAudioRawFrame():
                self._arrivals.note_audio(frame.audio)
            case TTSTextFrame():
                self._arrivals.note_text("text", frame.text)
            case TranscriptionFrame():
                self._arrivals.note_text("transcript", frame.text)
        await self.push_frame(frame, direction)


class Session:
    def __init__(self, order: dict[str, object], arrivals: Arrivals) -> None:
        self.inlet = Inlet()
        options = HttpOptions(
            base_url=order["url"], async_client_args={"ping_interval": None, "proxy": None}, api_version="v1beta"
        )
        service = GeminiLiveLLMService(
            api_key="local",
            settings=GeminiLiveLLMService.Settings(model=f"models/{order['model']}"),
            inference_on_context_initialization=False,
            http_options=options,
        )
        aggregators = LLMContextAggregatorPair(LLMContext())
        stages = [self.inlet, aggregators.user(), service, Outlet(arrivals), aggregators.assistant()]
        self.worker = PipelineWorker(
            Pipeline(stages),
            params=PipelineParams(audio_in_sample_rate=HZ, audio_out_sample_rate=24_000),
            cancel_on_idle_timeout=False,
            enable_rtvi=False,
            enable_turn_tracking=False,
        )


async def main() -> None:
    logger.remove()
    order = await read_order()
    arrivals = Arrivals()
    sessions = [Session(order, arrivals) for _ in range(order["sessions"])]
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(*(session.worker for session in sessions))
    running = asyncio.create_task(runner.run())
    for session in sessions:
        await session.inlet.opened.wait()
        await session.worker.queue_frame(LLMRunFrame())
    await stream_all([session.inlet.hear for session in sessions], order["ramp_s"], arrivals)
    for session in sessions:
        await session.worker.cancel()
    await running


if __name__ == "__main__":
    asyncio.run(main())

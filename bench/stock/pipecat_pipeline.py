# mypy: ignore-errors
"""A pipeline as in Pipecat's examples of speech-to-speech services, without a transport."""

import asyncio

from loguru import logger
from pipecat.adapters.schemas.function_schema import FunctionSchema
from pipecat.adapters.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import (
    ErrorFrame,
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
from pipecat.transports.base_input import BaseInputTransport
from pipecat.transports.base_transport import TransportParams
from pipecat.workers.runner import WorkerRunner

from bench.stock.turn import DESCRIPTION, MICROPHONE_HZ, PROPERTIES, TOOL, Turn

GREETING_WISH = "Say hello in one short sentence."


class Inlet(BaseInputTransport):
    def __init__(self) -> None:
        super().__init__(TransportParams(audio_in_enabled=True, audio_in_sample_rate=MICROPHONE_HZ))

    async def start(self, frame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def hear(self, pcm: bytes) -> None:
        await self.push_audio_frame(InputAudioRawFrame(pcm, MICROPHONE_HZ, 1))


class Tap(FrameProcessor):
    """Notes what passes: the answer on its way down, and transcriptions on their way up."""

    def __init__(self, turn: Turn) -> None:
        super().__init__()
        self._turn = turn

    async def process_frame(self, frame, direction) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case TTSAudioRawFrame():
                self._turn.note_audio(frame.audio, frame.sample_rate)
            case TTSTextFrame():
                self._turn.answer += frame.text
            case TranscriptionFrame():
                self._turn.heard += frame.text + " "
            case ErrorFrame():
                self._turn.problems.append(str(frame.error))
        await self.push_frame(frame, direction)


async def hold(turn: Turn, service) -> None:
    """Holds the turn with this service, which calls the tool through Pipecat's function calling."""
    logger.remove()

    async def get_weather(params) -> None:
        await params.result_callback(turn.note_call(dict(params.arguments)))

    service.register_function(TOOL, get_weather)
    schema = FunctionSchema(name=TOOL, description=DESCRIPTION, properties=PROPERTIES, required=["city"])
    context = LLMContext([{"role": "user", "content": GREETING_WISH}], ToolsSchema(standard_tools=[schema]))
    aggregators = LLMContextAggregatorPair(context)
    inlet = Inlet()
    # The service sends transcriptions up and answers down, so there is a tap on either side.
    stages = [inlet, aggregators.user(), Tap(turn), service, Tap(turn), aggregators.assistant()]
    worker = PipelineWorker(
        Pipeline(stages),
        params=PipelineParams(audio_in_sample_rate=MICROPHONE_HZ, audio_out_sample_rate=24_000),
        cancel_on_idle_timeout=False,
    )
    started = asyncio.Event()

    @worker.event_handler("on_pipeline_started")
    async def on_pipeline_started(worker, frame) -> None:
        started.set()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    running = asyncio.create_task(runner.run())
    await started.wait()
    await worker.queue_frame(LLMRunFrame())
    await turn.speak(inlet.hear)
    await worker.cancel()
    await running
    turn.report()

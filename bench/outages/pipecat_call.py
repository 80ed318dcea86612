# mypy: ignore-errors
"""`python -m bench.outages.pipecat_call ORDER`: Pipecat's Gemini Live service, in a pipeline as in its examples.

The transport is in memory: it hears the person and plays in real time, as Pipecat's own transports do.
"""

import asyncio
import sys

from google.genai.types import HttpOptions
from loguru import logger
from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.frames.frames import InputAudioRawFrame, LLMRunFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import (
    LLMContextAggregatorPair,
    LLMUserAggregatorParams,
)
from pipecat.services.google.gemini_live.llm import GeminiLiveLLMService
from pipecat.transports.base_input import BaseInputTransport
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import TransportParams
from pipecat.workers.runner import WorkerRunner

from bench.outages.call import DESCRIPTION, INSTRUCTIONS, MICROPHONE_HZ, PROPERTIES, TOOL, Call

SPEAKER_HZ = 24_000


class Inlet(BaseInputTransport):
    def __init__(self) -> None:
        super().__init__(TransportParams(audio_in_enabled=True, audio_in_sample_rate=MICROPHONE_HZ))

    async def start(self, frame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def hear(self, pcm: bytes) -> None:
        await self.push_audio_frame(InputAudioRawFrame(pcm, MICROPHONE_HZ, 1))


class Outlet(BaseOutputTransport):
    def __init__(self, call: Call) -> None:
        super().__init__(TransportParams(audio_out_enabled=True, audio_out_sample_rate=SPEAKER_HZ))
        self._call = call
        self._next_s = 0.0

    async def start(self, frame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def write_audio_frame(self, frame) -> bool:
        self._call.speaker.play(frame.audio, frame.sample_rate)
        loop = asyncio.get_running_loop()
        self._next_s = max(self._next_s, loop.time()) + len(frame.audio) / 2 / frame.sample_rate
        # As much ahead as the two chunks that a loudspeaker's driver would hold.
        await asyncio.sleep(max(0.0, self._next_s - loop.time() - 0.08))
        return True


async def main() -> None:
    logger.remove()
    logger.add(sys.stderr, level="WARNING")
    call = Call.from_order()
    service = GeminiLiveLLMService(
        api_key="local",
        system_instruction=INSTRUCTIONS,
        settings=GeminiLiveLLMService.Settings(model=f"models/{call.models[0]}"),
        http_options=HttpOptions(base_url=call.url, api_version="v1beta"),
    )

    async def order_pizza(params) -> None:
        await params.result_callback(await call.place_order(str(params.arguments["topping"])))

    service.register_function(TOOL, order_pizza)
    schema = FunctionSchema(name=TOOL, description=DESCRIPTION, properties=PROPERTIES, required=["topping"])
    wish = f"Say exactly these words: {call.greeting}"
    context = LLMContext([{"role": "user", "content": wish}], ToolsSchema(standard_tools=[schema]))
    # Its examples have a VAD of their own, with which it keeps the turns of the conversation.
    params = LLMUserAggregatorParams(vad_analyzer=SileroVADAnalyzer())
    aggregators = LLMContextAggregatorPair(context, user_params=params)
    inlet = Inlet()
    stages = [inlet, aggregators.user(), service, Outlet(call), aggregators.assistant()]
    worker = PipelineWorker(
        Pipeline(stages),
        params=PipelineParams(audio_in_sample_rate=MICROPHONE_HZ, audio_out_sample_rate=SPEAKER_HZ),
        cancel_on_idle_timeout=False,
    )
    started = asyncio.Event()

    @worker.event_handler("on_pipeline_started")
    async def on_pipeline_started(worker, frame) -> None:
        started.set()

    @worker.event_handler("on_pipeline_error")
    async def on_pipeline_error(worker, frame) -> None:
        call.problems.append(str(frame.error))

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    running = asyncio.create_task(runner.run())
    await started.wait()
    await worker.queue_frame(LLMRunFrame())
    await call.hold(inlet.hear)
    call.report("pipecat-ai", "google-genai")
    await worker.cancel()
    await running


if __name__ == "__main__":
    asyncio.run(main())

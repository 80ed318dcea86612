# mypy: ignore-errors
"""`python -m bench.conversation.pipecat_bot MODELS_DIR`: a pipeline as Pipecat's examples build one, with our engines.

Silero and Smart Turn are Pipecat's, with its own settings. The recogniser, the voice and the assistant are ours, each
wrapped as Pipecat requires, so that only the handling of the conversation differs. For each line of input, which
names a file of 16 kHz speech, it feeds the speech to the pipeline as `speak_to` does to our server, and prints the
result.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from loguru import logger
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.frames.frames import (
    InputAudioRawFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair, LLMUserAggregatorParams
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.settings import STTSettings, TTSSettings
from pipecat.services.stt_service import SegmentedSTTService
from pipecat.services.tts_service import TTSService
from pipecat.transcriptions.language import Language
from pipecat.utils.time import time_now_iso8601
from pipecat.workers.runner import WorkerRunner

from antiphon.client import Incoming
from antiphon.compose import App, open_app
from antiphon.config import Settings, Storage
from antiphon.models.base import CallRequested, Prompt, TextDelta
from antiphon.models.builtin import BuiltinModel
from antiphon.protocol import server_messages as s
from antiphon.protocol.client_messages import ClientMessage
from antiphon.speech.engines.hibari import HibariSynthesizer
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.spoken import speakable
from antiphon.speech.workers import Workers
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from bench.conversation.calls import Turn, speak_to
from bench.conversation.sayings import Saying
from bench.conversation.sounds import Utterance

INPUT_HZ = 16_000


class Recognition(SegmentedSTTService):
    """Our recogniser. Like Pipecat's own local ones, it gets a segment of speech when the VAD reports its end."""

    def __init__(self, recognizer: MoonshineRecognizer) -> None:
        super().__init__(settings=STTSettings(model="moonshine", language=Language.EN))
        self._recognizer = recognizer

    @property
    def wants_wav_segments(self) -> bool:
        return False

    async def run_stt(self, audio: bytes):
        if text := await self._recognizer.recognize(audio):
            yield TranscriptionFrame(text, self._user_id, time_now_iso8601())


class Assistant(FrameProcessor):
    """The offline assistant with its tools, in place of a language model."""

    def __init__(self, app: App, model: BuiltinModel, line: "Line") -> None:
        super().__init__()
        self._app = app
        self._model = model
        self._line = line

    async def process_frame(self, frame, direction) -> None:
        await super().process_frame(frame, direction)
        if not isinstance(frame, LLMContextFrame):
            await self.push_frame(frame, direction)
            return
        said = next(each["content"] for each in reversed(frame.context.get_messages()) if each["role"] == "user")
        self._line.tell(s.Transcript(said, is_final=True))
        await self.push_frame(LLMFullResponseStartFrame())
        answer = await self._answer(said)
        self._line.tell(s.ResponseChunk(answer, is_first=True), s.Response(answer))
        await self.push_frame(LLMTextFrame(answer))
        await self.push_frame(LLMFullResponseEndFrame())

    async def _answer(self, said: str) -> str:
        text, calls = await self._reply(UserMessage(said))
        if not calls:
            return text
        session = self._app.session(mode=Mode.VOICE)
        results = [await self._app.executor.execute(call, session) for call in calls]
        told = [
            ToolMessage(str(place), call.name, result.for_model(), result.spoken, result.ok)
            for place, (call, result) in enumerate(zip(calls, results, strict=True))
        ]
        made = tuple(CallMade(str(place), call.name, call.args) for place, call in enumerate(calls))
        text, _ = await self._reply(UserMessage(said), AssistantMessage(calls=made), *told)
        return text

    async def _reply(self, *messages: Message) -> tuple[str, list[ToolCall]]:
        text, calls = "", []
        async for event in self._model.reply(Prompt("", messages, (), Mode.VOICE)):
            match event:
                case TextDelta(text=piece):
                    text += piece
                case CallRequested(call=call):
                    calls.append(call)
        return text, calls


class Speech(TTSService):
    def __init__(self, synthesizer: HibariSynthesizer) -> None:
        super().__init__(
            push_start_frame=True,
            push_stop_frames=True,
            settings=TTSSettings(model=None, voice="heart", language=None),
        )
        self._synthesizer = synthesizer

    async def run_tts(self, text: str, context_id: str):
        sounds = (sound.pcm async for sound in self._synthesizer.speak(speakable(text)))
        async for frame in self._stream_audio_frames_from_iterator(
            sounds, in_sample_rate=self._synthesizer.output_hz, context_id=context_id
        ):
            yield frame


class Outlet(FrameProcessor):
    """The end of the pipeline, where a transport would begin to play."""

    def __init__(self, line: "Line") -> None:
        super().__init__()
        self._line = line

    async def process_frame(self, frame, direction) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case VADUserStoppedSpeakingFrame():
                self._line.note_silence()
            case TTSAudioRawFrame():
                self._line.tell(s.SpeechFrame(0, 1, 0, frame.audio))
            case LLMFullResponseEndFrame():
                self._line.tell(s.GenerationComplete(1))
        await self.push_frame(frame, direction)


class Line:
    """Makes the pipeline look like one of our sessions, so that the same code speaks to it and measures it."""

    def __init__(self) -> None:
        self.worker: PipelineWorker | None = None
        self._incoming: asyncio.Queue[Incoming] = asyncio.Queue()
        self._done_s = 0.0
        self._silence_ms: float | None = None

    async def hold(self, utterance: Utterance) -> Turn:
        self._incoming = asyncio.Queue()
        self._done_s = asyncio.get_running_loop().time() + utterance.ends_at_ms / 1_000
        self._silence_ms = None
        return await speak_to(self, utterance)

    def tell(self, *incoming: Incoming) -> None:
        for each in incoming:
            self._incoming.put_nowait(each)

    def note_silence(self) -> None:
        self._silence_ms = (asyncio.get_running_loop().time() - self._done_s) * 1_000

    async def messages(self) -> AsyncIterator[Incoming]:
        while True:
            yield await self._incoming.get()

    async def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        await self.worker.queue_frame(InputAudioRawFrame(pcm, INPUT_HZ, 1))

    async def send(self, message: ClientMessage) -> None:
        """Called when the answer was heard."""
        self.tell(s.TurnMetrics(1, end_of_turn_ms=self._silence_ms))


async def main(models_dir: Path, folder: Path) -> None:
    workers = Workers(threads=os.cpu_count() or 1)
    recognizer, synthesizer = MoonshineRecognizer(models_dir, workers), HibariSynthesizer(workers)
    recognizer.load()
    synthesizer.load()
    line = Line()
    async with open_app(Settings(project_dir=folder, data_dir=folder, storage=Storage(url="memory"))) as app:
        aggregators = LLMContextAggregatorPair(
            LLMContext(), user_params=LLMUserAggregatorParams(vad_analyzer=SileroVADAnalyzer())
        )
        assistant = Assistant(app, await app.assistant(), line)
        stages = [aggregators.user(), assistant, Speech(synthesizer), Outlet(line), aggregators.assistant()]
        line.worker = PipelineWorker(
            Pipeline([Recognition(recognizer), *stages]),
            # The native rate of our voice, so that nothing is resampled.
            params=PipelineParams(audio_in_sample_rate=INPUT_HZ, audio_out_sample_rate=synthesizer.output_hz),
            cancel_on_idle_timeout=False,
        )
        started = asyncio.Event()

        @line.worker.event_handler("on_pipeline_started")
        async def on_pipeline_started(worker, frame) -> None:
            started.set()

        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(line.worker)
        running = asyncio.create_task(runner.run())
        await started.wait()
        print("ready", flush=True)
        while path := (await asyncio.to_thread(sys.stdin.readline)).strip():
            pcm = await asyncio.to_thread(Path(path).read_bytes)
            turn = await line.hold(Utterance(Saying("", "", ""), pcm))
            print(json.dumps(msgspec.to_builtins(turn)), flush=True)
        await line.worker.cancel()
        await running


if __name__ == "__main__":
    logger.remove()
    with TemporaryDirectory() as own_folder:
        asyncio.run(main(Path(sys.argv[1]), Path(own_folder)))

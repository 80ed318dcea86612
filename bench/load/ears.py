"""Real turn detection and the offline assistant, with a recogniser and a synthesiser that only wait.

What these two cost depends on the engine, and other benches measure ours. Here they take fixed times and no processor,
as engines on another machine do, so that what is left is what the sessions cost.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from antiphon.audio.turn import TurnDetector
from antiphon.audio.vad import Vad
from antiphon.compose import load_tools
from antiphon.config import Settings
from antiphon.models.builtin import BuiltinModel
from antiphon.models.cascade.batched_vad import BatchedVad
from antiphon.models.cascade.cascade import Cascade, make_profile
from antiphon.models.cascade.end_of_turn import Silences
from antiphon.models.cascade.endpointer import FRAME_BYTES
from antiphon.models.cascade.shared_engines import SharedEngines
from antiphon.models.live import ModelFactory
from antiphon.speech.base import Sound, Urgency, Voice
from antiphon.speech.workers import Workers
from antiphon.tools.spec import Mode
from antiphon.weights.folder import locate
from bench.load.microphone import Recording, load_recordings

STT_MS: Final = 150
TTS_MS: Final = 60
"""How long the first audio of a clause takes, and each further piece, which plays for longer than that."""

_OUTPUT_HZ: Final = 22_050
_PIECE_MS: Final = 500
_CHARACTERS_PER_S: Final = 15
_LONGEST_MS: Final = 2_000
"""The length of a clause. The answer must end before the caller's next phrase."""
_KEY_BYTES: Final = 64


class StubRecognizer:
    """Recognises only the known phrases, by a few of their samples."""

    name = "stub"

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self._texts: Mapping[bytes, str] = {
            recording.pcm[at : at + _KEY_BYTES]: recording.text
            for recording in recordings
            for at in range(0, len(recording.pcm), FRAME_BYTES)
        }

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        await asyncio.sleep(STT_MS / 1_000)
        middle = len(pcm) // FRAME_BYTES // 2 * FRAME_BYTES
        return self._texts.get(pcm[middle : middle + _KEY_BYTES], "")

    async def aclose(self) -> None:
        """Holds nothing."""


class StubSynthesizer:
    name = "stub"
    output_hz = _OUTPUT_HZ
    voices = (Voice("stub", "Stub", "en-US"),)

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        left_ms = min(_LONGEST_MS, len(text) * 1_000 // _CHARACTERS_PER_S)
        while left_ms > 0:
            await asyncio.sleep(TTS_MS / 1_000)
            piece_ms = min(left_ms, _PIECE_MS)
            left_ms -= piece_ms
            yield Sound(bytes(2 * (_OUTPUT_HZ * piece_ms // 1_000)), left_ms)

    async def aclose(self) -> None:
        """Holds nothing."""


@asynccontextmanager
async def open_ears(settings: Settings, phrases: Path) -> AsyncIterator[ModelFactory]:
    """Loads what all sessions share, and returns a function that makes the voice of one."""
    assistant = BuiltinModel(load_tools(settings).snapshot())
    assistant.compile()
    vad = BatchedVad(Vad(locate(settings.models_dir, "silero-vad", "silero_vad.onnx")))
    workers = Workers(threads=1, yielding=True)
    synthesizer = StubSynthesizer()
    engines = SharedEngines(
        vad=vad,
        recognizer=StubRecognizer(load_recordings(phrases)),
        detector=TurnDetector(locate(settings.models_dir, "smart-turn", "smart-turn-v3.2-cpu.onnx")),
        detector_workers=workers,
        completeness=lambda text: assistant.completeness(text, Mode.VOICE),
        silences=Silences(*settings.speech.silences_ms),
    )
    try:
        yield ModelFactory(make_profile(assistant, synthesizer), lambda: Cascade(engines, assistant, synthesizer))
    finally:
        await vad.aclose()
        await workers.aclose()

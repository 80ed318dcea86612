"""Moonshine behind the `Recognizer` seam: an utterance is one job for the workers."""

from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Final

import numpy as np

from antiphon.audio.pcm import to_signal
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.base import Urgency
from antiphon.speech.engines.moonshine.files import find_files
from antiphon.speech.engines.moonshine.model import Moonshine
from antiphon.speech.engines.moonshine.pieces import cut, join
from antiphon.speech.engines.moonshine.spelling import modernize
from antiphon.speech.workers import Workers

LEAST_MS: Final = 100
"""There is no word in less."""
TAIL_MS: Final = 320
"""Of silence, put behind what is said. The model was taught with sentences that end in it: of 200 clips that were cut
off a tenth of a second after the last word, 40 words are wrong with 256 ms of it and 63 without, and none ends with a
comma. Of 500 that were cut off within a twentieth, 189 are wrong with 256 ms, and 173 with this."""

_TAIL: Final = np.zeros(TAIL_MS * MICROPHONE_HZ // 1_000, np.float32)


class MoonshineRecognizer:
    """It speaks English. Give it 200 ms of what was before the first word, or it may lose that word."""

    def __init__(self, models_dir: Path, workers: Workers) -> None:
        """Raises `SpeechError` if the model's files are not there."""
        self._files = find_files(models_dir)
        self._workers = workers
        self._model: Moonshine | None = None
        self._loading = Lock()

    @property
    def name(self) -> str:
        return "moonshine"

    def load(self) -> None:
        """For a thread. Without it, the first who talks has to wait for it. Raises `SpeechError`."""
        self._loaded()

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        if len(pcm) // 2 * 1_000 < LEAST_MS * MICROPHONE_HZ:
            return ""
        return await self._workers.run(partial(self._transcribe, pcm), urgency)

    async def aclose(self) -> None:
        self._model = None

    def _transcribe(self, pcm: bytes, abandoned: Event) -> str:
        model = self._loaded()
        text = ""
        for piece in cut(np.concatenate([to_signal(pcm), _TAIL])):
            text = join(text, model.transcribe(piece.signal, abandoned), piece.shared_s)
            if abandoned.is_set():
                break
        return modernize(text)

    def _loaded(self) -> Moonshine:
        with self._loading:
            if self._model is None:
                self._model = Moonshine(self._files)
            return self._model

"""Moonshine as a `Recognizer`. An utterance is one job for the workers.

Speech that is too long for the model is cut into pieces at a pause. Without a pause two pieces overlap, and their texts
are joined at the words they share. Long silences at the ends are left out, and strong noise is reduced.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Final

import numpy as np

from antiphon.audio.noise import FRAME, NOISY_BELOW_DB, frame_power, reduce_noise, speech_to_noise_db, trim
from antiphon.audio.pcm import Signal, to_signal
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.base import Urgency
from antiphon.speech.engines.moonshine.bias import Bias
from antiphon.speech.engines.moonshine.files import find_files
from antiphon.speech.engines.moonshine.model import Moonshine
from antiphon.speech.workers import Workers

LONGEST_S: Final = 12
"""The encoder's time grows with the square of the length, and the model was trained on short utterances."""
SHORTEST_S: Final = 7
SHARED_S: Final = 1.5
"""The overlap of two pieces: a few words, so that one of them is complete in both."""
PAUSE_MS: Final = 240
PAUSE_DB: Final = 25
"""How far below the loud parts a pause must be."""
MAX_WORDS_PER_S: Final = 5
MAX_EDGE_WORDS: Final = 3
"""How many other words may be cut off when only one word matches. With more, the "the" or "of" is a coincidence."""

_PAUSE: Final = PAUSE_MS * MICROPHONE_HZ // 1_000
_LOUD_SHARE: Final = 0.9
_QUIETEST: Final = 1e-10


@dataclass(frozen=True, slots=True)
class Piece:
    signal: Signal
    shared_s: float
    """How much of its beginning overlaps the previous piece."""


def cut(signal: Signal) -> Iterator[Piece]:
    shared_s = 0.0
    while len(signal) > LONGEST_S * MICROPHONE_HZ:
        end, is_pause = _find_end(signal[: LONGEST_S * MICROPHONE_HZ])
        yield Piece(signal[:end], shared_s)
        shared_s = 0.0 if is_pause else SHARED_S
        signal = signal[end - int(shared_s * MICROPHONE_HZ) :]
    yield Piece(signal, shared_s)


def join(before: str, after: str, shared_s: float) -> str:
    """Joins two texts. The words of the overlap are in both, except those that were cut."""
    if not shared_s:
        return f"{before} {after}".strip()
    first, second = before.split(), after.split()
    most = int(shared_s * MAX_WORDS_PER_S)
    tail, head = first[-most:], second[:most]
    match = SequenceMatcher(None, _plain(tail), _plain(head), autojunk=False).find_longest_match()
    edges = len(tail) - match.a - match.size + match.b
    if not match.size or (match.size == 1 and edges > MAX_EDGE_WORDS):
        return " ".join([*first, *second])
    # Words beyond the common ones are at an edge and were cut.
    kept = len(first) - len(tail) + match.a + match.size
    return " ".join([*first[:kept], *second[match.b + match.size :]])


def _find_end(signal: Signal) -> tuple[int, bool]:
    """Returns the quietest position in the last part, and whether it is a pause."""
    levels_db = _levels_db(signal)
    first = SHORTEST_S * MICROPHONE_HZ // FRAME
    place = first + int(np.argmin(levels_db[first:]))
    loud_db = float(np.quantile(levels_db, _LOUD_SHARE))
    # Each level covers the time from its frame on.
    return place * FRAME + _PAUSE // 2, loud_db - float(levels_db[place]) >= PAUSE_DB


def _levels_db(signal: Signal) -> Signal:
    """Returns the level over the length of a pause, from each 20 ms frame on."""
    width = _PAUSE // FRAME
    levels: Signal = 10 * np.log10(
        np.convolve(frame_power(signal), np.full(width, 1 / width), mode="valid") + _QUIETEST
    )
    return levels


def _plain(words: Sequence[str]) -> list[str]:
    return [re.sub(r"[^\w']", "", word).lower() for word in words]


_DIVIDED: Final = re.compile(
    r"(?<=\bto)-(?=(?:day|night|morrow)\b)|(?<=\bgood)-(?=bye\b)|(?<=\bper) (?=cent\b)", re.IGNORECASE
)


def modernize(text: str) -> str:
    return _DIVIDED.sub("", text)


LEAST_MS: Final = 100
"""No word is shorter."""
TAIL_MS: Final = 320
"""The silence that is appended, because the model was trained on sentences that end in silence. In 200 clips that were
cut off 0.1 s after the last word, 40 words are wrong with 256 ms of silence and 63 without it, and no clip ends with a
comma. In 500 clips that were cut off within 0.05 s, 189 words are wrong with 256 ms, and 173 with this."""

SPEECH_ABOVE_DB: Final = 8.0
"""Speech in white noise that is 10 dB weaker has 9 to 13 dB. Noise alone has one or two."""

_TAIL: Final = np.zeros(TAIL_MS * MICROPHONE_HZ // 1_000, np.float32)


def transcribe(model: Moonshine, pcm: bytes, abandoned: Event, names: Bias | None = None) -> str:
    """Returns the text of speech of any length, or of a part of it once the event is set."""
    signal = to_signal(pcm)
    text = ""
    pieces = list(cut(trim(signal)))
    for piece in pieces:
        above_noise_db = speech_to_noise_db(piece.signal)
        sound = reduce_noise(piece.signal) if above_noise_db < NOISY_BELOW_DB else piece.signal
        if piece is pieces[-1]:
            sound = np.concatenate([sound, _TAIL])
        # The noise is estimated from the whole piece, so with each new word its beginning changes, too.
        known_by = signal if piece is pieces[0] else piece.signal
        has_speech = above_noise_db >= SPEECH_ABOVE_DB
        heard = model.transcribe(sound, abandoned, known_by, has_speech=has_speech, names=names)
        text = join(text, heard, piece.shared_s)
        if abandoned.is_set():
            break
    return modernize(text)


class MoonshineRecognizer:
    """Recognises English. Include 200 ms before the first word, or that word may be lost."""

    def __init__(self, models_dir: Path, workers: Workers) -> None:
        """Raises `SpeechError` if a model file is missing."""
        self._files = find_files(models_dir)
        self._workers = workers
        self._model: Moonshine | None = None
        self._loading = Lock()

    @property
    def name(self) -> str:
        return "moonshine"

    def load(self) -> None:
        """Loads the model, in a worker thread. Otherwise the first utterance waits for it. Raises `SpeechError`."""
        self._loaded()

    def prefer(self, phrases: Iterable[str]) -> None:
        """Biases recognition towards these names, such as those of devices. Call it in a worker thread."""
        self._loaded().prefer(phrases)

    def preferring(self, phrases: Iterable[str]) -> "SpeakerRecognizer":
        """Returns a recogniser for one speaker, which prefers these names, too."""
        return SpeakerRecognizer(self, phrases)

    async def recognize(
        self, pcm: bytes, urgency: Urgency = Urgency.NOW, find_names: Callable[[Moonshine], Bias] | None = None
    ) -> str:
        """`find_names` returns the names of the speaker, in a worker thread."""
        if len(pcm) // 2 * 1_000 < LEAST_MS * MICROPHONE_HZ:
            return ""
        return await self._workers.run(partial(self._transcribe, pcm, find_names), urgency)

    async def aclose(self) -> None:
        self._model = None

    def _transcribe(self, pcm: bytes, find_names: Callable[[Moonshine], Bias] | None, abandoned: Event) -> str:
        model = self._loaded()
        return transcribe(model, pcm, abandoned, None if find_names is None else find_names(model))

    def _loaded(self) -> Moonshine:
        with self._loading:
            if self._model is None:
                self._model = Moonshine(self._files)
            return self._model


class SpeakerRecognizer:
    """Recognises what one speaker says, with a recogniser that others use, too. Closing it closes nothing."""

    def __init__(self, recognizer: MoonshineRecognizer, phrases: Iterable[str]) -> None:
        self._recognizer = recognizer
        self._phrases = tuple(phrases)
        self._names: Bias | None = None

    @property
    def name(self) -> str:
        return self._recognizer.name

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        return await self._recognizer.recognize(pcm, urgency, self._find_names)

    async def aclose(self) -> None:
        """The recogniser belongs to all speakers."""

    def _find_names(self, model: Moonshine) -> Bias:
        # It takes some milliseconds. Two threads may both make it the first time.
        if self._names is None:
            self._names = model.expect(self._phrases)
        return self._names

"""Hears whether somebody speaks: Silero v6, as one batch over all sessions that have a frame waiting."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from antiphon.audio.inference import open_session
from antiphon.audio.pcm import FRAME_BYTES, FRAME_SAMPLES, FULL_SCALE, AudioError, Samples, to_samples
from antiphon.audio.silero import FRAMES, MEMORY, rewrite
from antiphon.sound_format import MICROPHONE_HZ

STILL: Final = 40
"""Samples that stay below it, −58 dBFS, hold no speech: the model hears none in them, not even below 100."""
SETTLED_FRAMES: Final = 16
"""After so many still frames, half a second, the model need not be asked about more of them. Speech that follows is
heard as before, give or take a frame."""

_BEFORE: Final = 64
_MEMORY: Final = _BEFORE + 2 * 128
"""The end of the last frame, without which the model hears nothing, and its own state."""


class VadStream:
    """What the model remembers of one session: 1.3 KB."""

    __slots__ = ("_memory", "_passed_over", "_still")

    def __init__(self) -> None:
        self._memory = np.zeros(_MEMORY, np.float32)
        self._passed_over: bytes | Samples | None = None
        """The last frame, if the model has not heard it."""
        self._still = 0
        """Frames since the last that was not."""


class Vad:
    """One for all sessions. Threads may share it, as long as no two have a frame of the same stream."""

    def __init__(self, path: Path) -> None:
        """Raises `ModelFileError`."""
        self._session = open_session(path, rewrite=rewrite)

    def stream(self) -> VadStream:
        return VadStream()

    def run(self, batch: Sequence[tuple[VadStream, bytes | Samples]]) -> list[float]:
        """How probable it is, for each frame, that somebody speaks in it. The streams are different ones."""
        if not batch:
            return []
        streams, frames = zip(*batch, strict=True)
        if any(memoryview(frame).nbytes != FRAME_BYTES for frame in frames):
            raise AudioError(f"A frame of speech is {FRAME_SAMPLES} samples of 16 bits at {MICROPHONE_HZ} Hz.")
        samples = np.frombuffer(b"".join(frames), np.int16).reshape(len(batch), FRAME_SAMPLES)
        probabilities = [0.0] * len(batch)
        asked = self._choose(batch, samples)
        if asked:
            heard = self._ask([streams[place] for place in asked], samples[asked])
            for place, probability in zip(asked, heard, strict=True):
                probabilities[place] = probability
        return probabilities

    @staticmethod
    def _choose(batch: Sequence[tuple[VadStream, bytes | Samples]], samples: Samples) -> list[int]:
        """Those of the frames that the model must hear. Most microphones are still most of the time."""
        is_still = (samples.max(axis=1) < STILL) & (samples.min(axis=1) > -STILL)
        asked = []
        for place, ((stream, frame), still) in enumerate(zip(batch, is_still.tolist(), strict=True)):
            stream._still = stream._still + 1 if still else 0
            if stream._still > SETTLED_FRAMES:
                stream._passed_over = frame
                continue
            asked.append(place)
            if stream._passed_over is not None:
                stream._memory[:_BEFORE] = to_samples(stream._passed_over)[-_BEFORE:] / FULL_SCALE
                stream._passed_over = None
        return asked

    def _ask(self, streams: Sequence[VadStream], samples: Samples) -> list[float]:
        # An array for all streams with a place for each is 1 µs a frame quicker than a small array in each stream, of
        # 15; it has places to give back, and threads to keep apart.
        memory = np.concatenate([stream._memory for stream in streams]).reshape(len(streams), _MEMORY)
        probabilities, memory = self._session.run(None, {FRAMES: samples, MEMORY: memory})
        for stream, row in zip(streams, memory, strict=True):
            # A view would keep the whole batch for as long as one of its sessions is silent.
            stream._memory = row.copy()
        return list(map(float, probabilities))

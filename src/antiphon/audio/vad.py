"""Hears whether somebody speaks: Silero v6, as one batch over all sessions that have a frame waiting."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from antiphon.audio.errors import AudioError
from antiphon.audio.inference import open_session
from antiphon.audio.pcm import FULL_SCALE, SAMPLE_BYTES, Samples

HZ: Final = 16_000
FRAME_SAMPLES: Final = 512
FRAME_MS: Final = FRAME_SAMPLES * 1000 // HZ
FRAME_BYTES: Final = FRAME_SAMPLES * SAMPLE_BYTES

# The model hears nothing without the end of the previous frame before each frame, though its own state goes on too.
_CONTEXT: Final = 64
_STATE: Final = (2, 128)
_MEMORY: Final = _CONTEXT + _STATE[0] * _STATE[1]
_SCALE: Final = np.float32(1 / FULL_SCALE)


class VadStream:
    """What the model remembers of one session: the end of its last frame, and the state after it. 1.3 KB."""

    __slots__ = ("_memory",)

    def __init__(self) -> None:
        self._memory = np.zeros(_MEMORY, np.float32)


class Vad:
    """One for all sessions. Threads may share it, as long as no two have a frame of the same stream."""

    def __init__(self, path: Path) -> None:
        """Raises `ModelFileError`."""
        self._session = open_session(path)
        self._hz = np.array(HZ, np.int64)

    def stream(self) -> VadStream:
        return VadStream()

    def run(self, batch: Sequence[tuple[VadStream, bytes | Samples]]) -> list[float]:
        """How probable it is, for each frame, that somebody speaks in it. The streams are different ones.

        Batches of any size cost the same for each frame: filling them up to even sizes was tried, and gains nothing.
        """
        if not batch:
            return []
        streams, frames = zip(*batch, strict=True)
        if any(memoryview(frame).nbytes != FRAME_BYTES for frame in frames):
            raise AudioError(f"A frame of speech is {FRAME_SAMPLES} samples of 16 bits at {HZ} Hz.")
        count = len(batch)
        heard = np.empty((count, _CONTEXT + FRAME_SAMPLES), np.float32)
        samples = np.frombuffer(b"".join(frames), np.int16).reshape(count, FRAME_SAMPLES)
        np.multiply(samples, _SCALE, out=heard[:, _CONTEXT:])
        # An array for all streams with a place for each is 1 µs a frame quicker than a small array in each stream, of
        # 45; it has places to give back, and threads to keep apart.
        memory = np.concatenate([stream._memory for stream in streams]).reshape(count, _MEMORY)
        heard[:, :_CONTEXT] = memory[:, :_CONTEXT]
        state = memory[:, _CONTEXT:].reshape(count, *_STATE).transpose(1, 0, 2)
        probabilities, state = self._session.run(None, {"input": heard, "state": state, "sr": self._hz})
        memory[:, :_CONTEXT] = heard[:, -_CONTEXT:]
        memory[:, _CONTEXT:] = state.transpose(1, 0, 2).reshape(count, -1)
        for stream, row in zip(streams, memory, strict=True):
            # A view would keep the whole batch for as long as one of its sessions is silent.
            stream._memory = row.copy()
        return [float(probability) for probability in probabilities[:, 0]]

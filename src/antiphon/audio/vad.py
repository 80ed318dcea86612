"""Voice activity detection with Silero v6, in one batch over all sessions that have a frame waiting."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from antiphon.audio import AudioError
from antiphon.audio.inference import open_session
from antiphon.audio.pcm import FRAME_BYTES, FRAME_SAMPLES, FULL_SCALE, Samples, to_samples
from antiphon.audio.silero import FRAMES, MEMORY, rewrite
from antiphon.sound_format import MICROPHONE_HZ

MAX_STILL_SAMPLE: Final = 40
"""A frame whose samples all stay below this (−58 dBFS) holds no speech. The model finds none even below 100."""
STILL_FRAMES_BEFORE_SKIPPING: Final = 16
"""After this many still frames (half a second) further ones skip the model. Speech that follows is detected as before,
give or take a frame."""

_CONTEXT: Final = 64
_MEMORY: Final = _CONTEXT + 2 * 128
"""The end of the previous frame, which the model needs as context, and its LSTM state."""


class VadStream:
    """The model's state for one session: 1.3 KB."""

    __slots__ = ("_memory", "_skipped_frame", "_still_frames")

    def __init__(self) -> None:
        self._memory = np.zeros(_MEMORY, np.float32)
        self._skipped_frame: bytes | Samples | None = None
        """The last frame, if the model did not run on it."""
        self._still_frames = 0
        """How many still frames came in a row."""


class Vad:
    """One model shared by all sessions. Threads may share it if no two hold a frame of the same stream."""

    def __init__(self, path: Path) -> None:
        """Raises `ModelFileError`."""
        self._session = open_session(path, rewrite=rewrite)

    def stream(self) -> VadStream:
        return VadStream()

    def run(self, batch: Sequence[tuple[VadStream, bytes | Samples]]) -> list[float]:
        """Returns the probability of speech for each frame. No stream may occur twice."""
        if not batch:
            return []
        streams, frames = zip(*batch, strict=True)
        if any(memoryview(frame).nbytes != FRAME_BYTES for frame in frames):
            raise AudioError(f"A frame of speech is {FRAME_SAMPLES} samples of 16 bits at {MICROPHONE_HZ} Hz.")
        samples = np.frombuffer(b"".join(frames), np.int16).reshape(len(batch), FRAME_SAMPLES)
        probabilities = [0.0] * len(batch)
        chosen = self._frames_to_run(batch, samples)
        if chosen:
            heard = self._infer([streams[place] for place in chosen], samples[chosen])
            for place, probability in zip(chosen, heard, strict=True):
                probabilities[place] = probability
        return probabilities

    @staticmethod
    def _frames_to_run(batch: Sequence[tuple[VadStream, bytes | Samples]], samples: Samples) -> list[int]:
        """Returns the indices of the frames that the model must run on. Most microphones are mostly silent."""
        is_still = (samples.max(axis=1) < MAX_STILL_SAMPLE) & (samples.min(axis=1) > -MAX_STILL_SAMPLE)
        chosen = []
        for place, ((stream, frame), still) in enumerate(zip(batch, is_still.tolist(), strict=True)):
            stream._still_frames = stream._still_frames + 1 if still else 0
            if stream._still_frames > STILL_FRAMES_BEFORE_SKIPPING:
                stream._skipped_frame = frame
                continue
            chosen.append(place)
            if stream._skipped_frame is not None:
                stream._memory[:_CONTEXT] = to_samples(stream._skipped_frame)[-_CONTEXT:] / FULL_SCALE
                stream._skipped_frame = None
        return chosen

    def _infer(self, streams: Sequence[VadStream], samples: Samples) -> list[float]:
        # One array with a row per stream would save 1 µs of 15 per frame, but its rows would have to be freed and
        # guarded against other threads.
        memory = np.concatenate([stream._memory for stream in streams]).reshape(len(streams), _MEMORY)
        probabilities, memory = self._session.run(None, {FRAMES: samples, MEMORY: memory})
        for stream, row in zip(streams, memory, strict=True):
            # A view would keep the whole batch alive while one of its sessions is silent.
            stream._memory = row.copy()
        return list(map(float, probabilities))

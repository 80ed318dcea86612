"""The engines that the cascades of all sessions share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from antiphon.models.cascade.batched_vad import BatchedVad
from antiphon.models.cascade.end_of_turn import Silences
from antiphon.models.completeness import Completeness
from antiphon.speech.base import Recognizer
from antiphon.speech.workers import Workers


class TurnDetector(Protocol):
    """Judges by the sound whether a speaker has finished. It runs in a thread."""

    def completeness(self, pcm: bytes) -> float: ...


@dataclass(frozen=True, slots=True)
class SharedEngines:
    vad: BatchedVad
    recognizer: Recognizer
    detector: TurnDetector
    detector_workers: Workers
    """The threads that the detector runs in. A late verdict only delays the answer to its own speaker."""
    completeness: Callable[[str], Completeness]
    """Judges how complete a request is, as far as a grammar can tell."""
    silences: Silences

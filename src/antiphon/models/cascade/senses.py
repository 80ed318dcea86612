"""What the ears of all sessions share, and whom they tell what they hear."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from antiphon.models.cascade.hearing import Hearing
from antiphon.models.completeness import Completeness
from antiphon.models.live import Timings
from antiphon.speech.base import Recognizer
from antiphon.speech.workers import Workers


class Detector(Protocol):
    """Hears whether a speaker has finished. Runs in a thread."""

    def completeness(self, pcm: bytes) -> float: ...


@dataclass(frozen=True, slots=True)
class Silences:
    """How much of it ends a turn, in milliseconds."""

    short_ms: int
    """After a whole request."""
    middle_ms: int
    """After what could be all, and could go on."""
    long_ms: int
    """After anything else."""


@dataclass(frozen=True, slots=True)
class Senses:
    """One for all sessions of a process."""

    hearing: Hearing
    recognizer: Recognizer
    detector: Detector
    voters: Workers
    """In whose threads the detector is asked. A vote that comes late costs one speaker a longer silence, not others."""
    completeness: Callable[[str], Completeness]
    """How much of a request a text is, as far as a grammar can tell."""
    silences: Silences


class Hearer(Protocol):
    """Who is told what the ears hear."""

    def is_answering(self) -> bool:
        """Whether an answer is being made or played. A noise is not enough to interrupt it."""
        ...

    def on_doubt(self, *, is_open: bool) -> None:
        """Somebody may be speaking over the answer, or it is decided: nobody is, or `on_speech` comes next."""
        ...

    def on_speech(self, *, goes_on: bool) -> None:
        """Somebody speaks over the answer, or goes on with a turn that was told as final."""
        ...

    def on_words(self, text: str) -> None:
        """What was said so far."""
        ...

    def on_guess(self, text: str) -> None:
        """It is perhaps all: the speaker pauses."""
        ...

    def on_more(self) -> None:
        """The pause is over: a guess was not all."""
        ...

    def on_turn(self, text: str, timings: Timings, *, goes_on: bool) -> None: ...

    def on_nothing(self) -> None:
        """The audio was ended, and there is no turn."""
        ...

    def on_failure(self, message: str) -> None:
        """A turn could not be understood."""
        ...

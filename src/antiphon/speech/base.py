"""The interfaces of speech engines. One engine of each kind serves all sessions of a process."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Final, Protocol, runtime_checkable
from unicodedata import category

from msgspec import Struct

from antiphon.errors import AntiphonError


class SpeechError(AntiphonError):
    """An engine cannot be reached, refuses, or fails. The text can be shown to the user."""

    code = "speech"


class SpeechUnreachable(SpeechError):
    """An engine cannot be reached. It may come up later."""

    code = "speech_unreachable"


class SpeechBusy(SpeechError):
    """The engine is overloaded. The request may be tried again later."""

    code = "busy"


class Urgency(IntEnum):
    """The priority of a job when more jobs than threads are waiting. A lower number is more urgent."""

    NOW = 0
    """The user is waiting for the result."""
    SOON = 1
    """The result will probably be needed in a moment."""
    IDLE = 2
    """Optional work: it is refused at once unless a worker is free."""


class Voice(Struct, frozen=True):
    id: str
    name: str
    language: str
    """As in "en-US"."""


class SpeechRequest(Struct, frozen=True):
    """A text, and the voice and speed to speak it with."""

    text: str
    voice: str | None
    speed: float


class Sound(Struct, frozen=True):
    """The next piece of synthesised speech."""

    pcm: bytes
    """PCM16, mono, little-endian, at the synthesiser's rate."""
    left_ms: int | None
    """How much audio is still to come after this; None if the engine does not know."""


class Recognizer(Protocol):
    @property
    def name(self) -> str: ...

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        """Returns the transcript of 16 kHz speech, "" if nothing is said. Cancelling the caller abandons the job.

        Raises `SpeechError`, and `SpeechBusy` if the engine is overloaded.
        """
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class NamePreferring(Protocol):
    """A recogniser that can be biased."""

    def prefer(self, phrases: Iterable[str]) -> None:
        """Biases recognition towards these names, instead of earlier ones. It takes time: call it in a thread."""
        ...

    def preferring(self, phrases: Iterable[str]) -> Recognizer:
        """Returns a recogniser for one speaker, which prefers these names, too. It does not bias what others say."""
        ...


class Synthesizer(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def output_hz(self) -> int: ...

    @property
    def voices(self) -> Sequence[Voice]:
        """The voices that can be chosen, the default first."""
        ...

    def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        """Yields the speech piece by piece, as soon as each is ready. Speed 2 takes half the time.

        An unknown voice is replaced by the default. Raises `SpeechError`, and `SpeechBusy` if the engine is overloaded,
        unless `goes_on` says that this continues an answer that is being heard: late is better than broken off.
        A caller that stops reading abandons the rest.
        """
        ...

    async def aclose(self) -> None: ...


_SOUNDING: Final = frozenset("LNS")
"""Letters, numbers, and symbols such as the euro sign."""


def is_silent(text: str) -> bool:
    """Whether the text has nothing to pronounce. For "…" engines return nothing, a groan, or an error."""
    return not any(category(character)[0] in _SOUNDING for character in text)


@contextmanager
def needs_extra(extra: str, what: object) -> Iterator[None]:
    """Wraps the import of an engine's module: a missing package raises a `SpeechError` that says what to install.

    `what` is the engine that needs the package, as the settings name it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "antiphon"):
            raise
        message = f"{what} needs the package {package}, which is not installed. Run: pip install 'antiphon[{extra}]'"
        raise SpeechError(message) from error

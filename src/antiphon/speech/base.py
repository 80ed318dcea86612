"""The seams to speech engines. One engine of each kind serves all sessions of a process."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Final, Protocol
from unicodedata import category

from msgspec import Struct

from antiphon.errors import AntiphonError


class SpeechError(AntiphonError):
    """An engine cannot be reached, refuses, or fails. The text can be shown to the user."""

    code = "speech"


class SpeechUnreachable(SpeechError):
    """An engine is not there. It may be later."""

    code = "speech_unreachable"


class SpeechBusy(SpeechError):
    """There is more to do than this machine can do in time. It may be tried again when others are done."""

    code = "busy"


class Urgency(IntEnum):
    """Who goes first where there is more to do than threads to do it. A lower number is more urgent."""

    NOW = 0
    """Somebody waits for it."""
    SOON = 1
    """It will probably be wanted in a moment."""
    IDLE = 2
    """Nice to have: it is refused at once unless a worker is free."""


class Voice(Struct, frozen=True):
    id: str
    name: str
    language: str
    """As in "en-US"."""


class SpeechRequest(Struct, frozen=True):
    """A text, and how it is to be spoken."""

    text: str
    voice: str | None
    speed: float


class Sound(Struct, frozen=True):
    """The next stretch of a text that is being spoken."""

    pcm: bytes
    """PCM16, mono, little-endian, at the synthesiser's rate."""
    left_ms: int | None
    """How much of the text is still to come after this; None if the engine cannot say."""


class Recognizer(Protocol):
    @property
    def name(self) -> str: ...

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        """What is said in this stretch of 16 kHz speech, "" if nothing is. A caller that is cancelled gives it up.

        Raises `SpeechError`, and `SpeechBusy` where there is no room for it.
        """
        ...

    async def aclose(self) -> None: ...


class Synthesizer(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def output_hz(self) -> int: ...

    @property
    def voices(self) -> Sequence[Voice]:
        """Those that can be chosen, the usual one first."""
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
        """The text as sound, in pieces as soon as they are there. Speed 2 takes half the time.

        A voice that it does not have is spoken with the usual one. Raises `SpeechError`, and `SpeechBusy` where there
        is no room for it, unless it goes on with what somebody is listening to: late is better than broken off. A
        caller that stops reading gives the rest up.
        """
        ...

    async def aclose(self) -> None: ...


_SOUNDING: Final = frozenset("LNS")
"""Letters, numbers, and symbols such as the euro sign."""


def is_silent(text: str) -> bool:
    """Whether nothing in it can be said. Engines differ in what they make of "…": nothing, a groan, or an error."""
    return not any(category(character)[0] in _SOUNDING for character in text)


@contextmanager
def needs_extra(extra: str, what: object) -> Iterator[None]:
    """Around the import of an engine's module: a package that is missing becomes a `SpeechError` that says so.

    `what` needs it: the engine, as the settings name it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "antiphon"):
            raise
        message = f"{what} needs the package {package}, which is not installed. Run: pip install 'antiphon[{extra}]'"
        raise SpeechError(message) from error

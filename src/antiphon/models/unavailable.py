"""A live model that cannot be used, for a reason that is known when the server starts: its API key is missing."""

from collections.abc import AsyncIterator, Sequence

from antiphon.models.base import ModelError
from antiphon.models.live import LiveContext, LiveEvent, LiveProfile, ToolAnswer


class UnavailableModel:
    """Each attempt to connect is refused with the reason, so that whoever starts a call is told."""

    def __init__(self, profile: LiveProfile, error: ModelError) -> None:
        self.profile = profile
        self._error = error

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        raise self._error

    async def events(self) -> AsyncIterator[LiveEvent]:
        return
        yield

    def set_voice(self, voice: str | None, speed: float) -> None: ...

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None: ...

    def end_audio(self, turn: str) -> None: ...

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        raise self._error

    def say(self, turn: str, text: str) -> None:
        raise self._error

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None: ...

    def interrupt(self, turn: str, heard: str | None = None) -> None: ...

    async def close(self) -> None: ...

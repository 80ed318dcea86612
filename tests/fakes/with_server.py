"""A live model together with the server that it talks to, on the same event loop.

The virtual loop lets data arrive before time passes, so contract tests over loopback sockets take no time either.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

from antiphon.models.live import LiveContext, LiveEvent, LiveModel, LiveProfile, ToolAnswer


class WithServer:
    """Starts the server when the model connects, and stops it after the model was closed.

    The server must know its port before it is started: it binds a socket when it is made.
    """

    def __init__(self, model: LiveModel, server: AbstractAsyncContextManager[Any]) -> None:
        self._model = model
        self._server = server
        self._stack = AsyncExitStack()

    @property
    def profile(self) -> LiveProfile:
        return self._model.profile

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        await self._stack.enter_async_context(self._server)
        await self._model.connect(context, resume)

    def events(self) -> AsyncIterator[LiveEvent]:
        return self._model.events()

    def set_voice(self, voice: str | None, speed: float) -> None:
        self._model.set_voice(voice, speed)

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        self._model.send_audio(pcm, playing=playing)

    def end_audio(self, turn: str) -> None:
        self._model.end_audio(turn)

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        self._model.respond(turn, text, ran)

    def say(self, turn: str, text: str) -> None:
        self._model.say(turn, text)

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        self._model.send_tool_results(turn, answers)

    def interrupt(self, turn: str, heard: str | None = None) -> None:
        self._model.interrupt(turn, heard)

    async def close(self) -> None:
        await self._model.close()
        await self._stack.aclose()

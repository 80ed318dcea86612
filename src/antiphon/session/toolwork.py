"""The tools of a session at work: each call through the gate, the client told before and after, the model told last."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from antiphon.models.live import ToolAnswer
from antiphon.protocol import codec
from antiphon.protocol.errors import ProtocolError
from antiphon.protocol.server_messages import (
    ConfirmationRequest,
    ConfirmationResolved,
    Flyout,
    FlyoutType,
    Outcome,
    Timeout,
    ToolCall,
    ToolResult,
)
from antiphon.session.keeper import Stores
from antiphon.session.outbox import Outbox
from antiphon.tools import call as tool_call
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.executor import Executor
from antiphon.tools.result import Citation
from antiphon.tools.result import ToolResult as Result
from antiphon.tools.session import ToolSession


class ToolWork:
    def __init__(self, executor: Executor, session: ToolSession, outbox: Outbox) -> None:
        self._executor = executor
        self._session = session
        self._outbox = outbox
        self.citations: list[Citation] = []
        """Of the results of one turn."""
        self._cited_turn = 0

    async def run(self, calls: Sequence[tool_call.ToolCall]) -> list[ToolAnswer]:
        """All calls of one model message at once. Cancelled, those are stopped that can be."""
        return list(await asyncio.gather(*(self._run(place, call) for place, call in enumerate(calls))))

    async def _run(self, place: int, call: tool_call.ToolCall) -> ToolAnswer:
        shown_id = call.id or f"{self._session.turn}.{place}"
        self._outbox.send(ToolCall(call.name, call.args, shown_id))
        result = await self._executor.execute(call, self._session)
        return self.tell(call, result, shown_id)

    def tell(self, call: tool_call.ToolCall, result: Result, shown_id: str | None = None) -> ToolAnswer:
        """Shows what came of a call to the client, and gives it in the model's words."""
        content = result.for_model()
        self._cite(result.citations)
        if result.flyout is not None:
            flyout = result.flyout
            kind = FlyoutType(flyout.flyout_type)
            self._outbox.send(Flyout(kind, flyout.content, flyout.language, flyout.title))
        duration_ms = None if result.meta is None else result.meta.duration_ms
        self._outbox.send(ToolResult(call.name, content, shown_id or call.id, result.ok, duration_ms))
        return ToolAnswer(call, content, result.spoken, result.ok)

    def _cite(self, citations: Sequence[Citation]) -> None:
        if self._cited_turn != self._session.turn:
            self._cited_turn, self.citations = self._session.turn, []
        self.citations += (citation for citation in citations if citation not in self.citations)


class ClientMessages:
    """`context.messaging` of a session: what a handler sends becomes a message of the wire."""

    def __init__(self, outbox: Outbox, stores: Stores, user: str) -> None:
        self._outbox = outbox
        self._stores = stores
        self._user = user
        self._asked: dict[str, str] = {}
        """The newest question about each tool, by its token."""
        self.farewell: Timeout | None = None
        """A block that has begun; its message waits for the farewell to be heard."""

    async def send(self, message: Mapping[str, Any]) -> None:
        try:
            told = codec.server_message(message)
        except ProtocolError as error:
            raise ToolError(ErrorType.INTERNAL, f"The tool sent a message that no client knows: {error}") from None
        if isinstance(told, Timeout):
            # The block holds from here on, whatever becomes of the socket.
            await self._stores.blocks.block(self._user, told.until, told.message)
            self.farewell = told
            return
        if isinstance(told, ConfirmationRequest):
            self._asked[told.tool] = told.confirmation_token
        self._outbox.send(told)

    def resolve(self, tool: str, *, approved: bool) -> None:
        """The person has answered in words; the client may close the question that it shows."""
        token = self._asked.pop(tool, None)
        if token is not None:
            outcome = Outcome.APPROVED if approved else Outcome.DENIED
            self._outbox.send(ConfirmationResolved(token, outcome))

"""Calls of the client's own tools: each is sent to the client and waits for its answer."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from msgspec import Struct

from antiphon.tools.client_tool import Adapter, client_tool
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.tool import Tool


class ToolDeclaration(Struct, frozen=True):
    """A function that a client offers to the model."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    """A JSON schema of type "object"; None if it takes no arguments."""


class ClientCall(Struct, frozen=True):
    """A call that the client is asked to run."""

    id: str
    name: str
    args: Mapping[str, Any]


class ClientCalls:
    """The calls that wait for the client. `send` passes one to the client, and `cancelled` says that its answer is no
    longer wanted."""

    def __init__(
        self,
        send: Callable[[ClientCall], None],
        cancelled: Callable[[ClientCall], None] = lambda call: None,
        *,
        make_id: Callable[[], str] = lambda: f"call_{uuid4().hex[:24]}",
    ) -> None:
        self._send = send
        self._cancelled = cancelled
        self._make_id = make_id
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._runs: dict[str, asyncio.Task[Any]] = {}
        """The gate's tasks that wait for these calls."""
        self._is_closed = False

    @property
    def waiting(self) -> Sequence[str]:
        """The ids of the calls that have no answer yet."""
        return tuple(self._waiting)

    def make_tools(self, declared: Sequence[ToolDeclaration], adapters: Mapping[str, Adapter]) -> list[Tool]:
        """Makes the tools of these declarations. Raises `ClientToolError`."""
        return [
            client_tool(
                each.name, description=each.description, parameters=each.parameters, call=self._call, adapters=adapters
            )
            for each in declared
        ]

    def run_of(self, call_id: str) -> "asyncio.Task[Any] | None":
        """Returns the gate's task that waits for a call."""
        return self._runs.get(call_id)

    def answer(self, call_id: str, result: Any, *, error: str | None = None) -> bool:
        """Takes the client's answer to a call: JSON, or a sentence that says why it failed. False if no call waits."""
        waiting = self._waiting.pop(call_id, None)
        if waiting is None or waiting.done():
            return False
        if error is None:
            waiting.set_result(result)
        else:
            waiting.set_exception(ToolError(ErrorType.PERMANENT, error))
        return True

    def close(self) -> None:
        """The client is gone: nobody answers the calls that wait, or those that its session still makes."""
        self._is_closed = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(
                    ToolError(ErrorType.TRANSIENT, "The client left before it answered.", partial_side_effects=True)
                )
        self._waiting.clear()

    async def _call(self, name: str, args: dict[str, Any]) -> Any:
        if self._is_closed:
            raise ToolError(ErrorType.TRANSIENT, "The client has left, so it cannot run its tools.")
        call = ClientCall(self._make_id(), name, args)
        waiting = self._waiting[call.id] = asyncio.get_running_loop().create_future()
        if (run := asyncio.current_task()) is not None:
            self._runs[call.id] = run
        self._send(call)
        try:
            return await waiting
        except asyncio.CancelledError:
            self._cancelled(call)
            raise
        finally:
            self._waiting.pop(call.id, None)
            self._runs.pop(call.id, None)

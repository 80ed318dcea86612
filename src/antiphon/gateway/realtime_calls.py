"""Calls of a Realtime client's functions, from the model's message to the results that the model goes on with.

A client gets all calls of a message in one response. It adds their outputs to the conversation and then asks for a
response; only that lets the model go on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from antiphon.gateway.client_calls import ClientCall, ClientCalls, ToolDeclaration
from antiphon.gateway.realtime_events import RealtimeError
from antiphon.tools.call import ToolCall
from antiphon.tools.client_tool import Adapter
from antiphon.tools.tool import Tool

NO_OUTPUT: Final = "The client gave no result."


class FunctionCalls:
    def __init__(self, send: Callable[[ClientCall], None], sent_all: Callable[[], None]) -> None:
        """`send` gives the client a call; `sent_all` is called when it has got all calls of the model's message."""
        self._calls = ClientCalls(self._send, self._drop)
        self._send_to_client = send
        self._sent_all = sent_all
        self._names: frozenset[str] = frozenset()
        self._unsent = 0
        """How many calls of the model's newest message have not reached the client yet."""
        self._asked: set[str] = set()
        """The calls of the turn under way that the client was sent."""
        self._held: dict[str, str] = {}
        """Outputs of these calls that wait for `response.create`."""
        self._answered = 0
        """How many outputs the gate was given that the session has not told of yet."""

    @property
    def are_pending(self) -> bool:
        """Whether the turn under way waits for the client."""
        return bool(self._asked)

    def make_tools(self, declared: Sequence[ToolDeclaration], adapters: Mapping[str, Adapter]) -> list[Tool]:
        """Makes the tools of the client's functions. Raises `ClientToolError`."""
        return self._calls.make_tools(declared, adapters)

    def set_names(self, names: frozenset[str]) -> None:
        self._names = names

    def expect(self, calls: Sequence[ToolCall]) -> None:
        """The model has made these calls, of functions of the client and others."""
        self._unsent = sum(call.name in self._names for call in calls)

    def take_output(self, call_id: str, output: str) -> bool:
        """Takes the output of a call. Returns whether it waits for the client to ask for a response; otherwise the turn
        of the call is over, and the next one learns of it. Raises `RealtimeError`."""
        if call_id in self._asked:
            self._held[call_id] = output
            return True
        if not self._calls.answer(call_id, parse_output(output)):
            raise RealtimeError(
                f"No call '{call_id[:100]}' waits for an output.", "invalid_tool_call_id", param="item.call_id"
            )
        self._answered += 1
        return False

    def answer(self) -> None:
        """Lets the model go on with the outputs. A call without one has failed."""
        asked, self._asked, held, self._held = self._asked, set(), self._held, {}
        for call_id in asked:
            has_output = call_id in held
            output = parse_output(held[call_id]) if has_output else None
            self._answered += self._calls.answer(call_id, output, error=None if has_output else NO_OUTPUT)

    def begin_turn(self) -> None:
        """Another turn begins: calls of the one before it are not waited for any more."""
        self.answer()
        self._unsent = 0

    def note_result(self, name: str) -> None:
        """The session tells of a result. If it is not the client's, the gate has refused the call."""
        if name not in self._names:
            return
        if self._answered:
            self._answered -= 1
        elif self._unsent:
            self._unsent -= 1
            self._check_sent()

    def close(self) -> None:
        self._calls.close()

    def _send(self, call: ClientCall) -> None:
        self._send_to_client(call)
        self._asked.add(call.id)
        self._unsent = max(0, self._unsent - 1)
        self._check_sent()

    def _drop(self, call: ClientCall) -> None:
        """The client has taken too long."""
        self._asked.discard(call.id)
        self._held.pop(call.id, None)

    def _check_sent(self) -> None:
        if not self._unsent and self._asked:
            self._sent_all()


def parse_output(output: str) -> Any:
    """Returns the output of a function. Most clients send JSON as a string, and some send plain words."""
    try:
        return msgspec.json.decode(output)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return output

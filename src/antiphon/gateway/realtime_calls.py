"""Calls of a Realtime client's functions, from the model's message to the results that the model goes on with.

A client gets all calls of a message in one response. It adds their outputs to the conversation and then asks for a
response; only that lets the model go on.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from antiphon.gateway.client_calls import ClientCall, ClientCalls, ToolDeclaration
from antiphon.tools.call import ToolCall
from antiphon.tools.client_tool import Adapter
from antiphon.tools.tool import Tool

NO_OUTPUT: Final = "The client gave no result."
MAX_GIVEN_UP: Final = 64
"""How many calls without an output are remembered."""


class FunctionCalls:
    def __init__(self, send: Callable[[ClientCall], None], sent_all: Callable[[], None]) -> None:
        """`send` gives the client a call; `sent_all` is called when it has got all calls of the model's message."""
        self._calls = ClientCalls(self._send, self._drop)
        self._send_to_client = send
        self._sent_all = sent_all
        self._names: frozenset[str] = frozenset()
        self._unsent = 0
        """How many calls of the model's newest message have not reached the client yet."""
        self._asked: dict[str, ClientCall] = {}
        """The calls of the turn under way that the client was sent."""
        self._held: dict[str, str] = {}
        """Outputs of these calls that wait for `response.create`."""
        self._given_up: OrderedDict[str, ClientCall] = OrderedDict()
        """The newest calls that ended without an output, which may still come."""
        self._answered = 0
        """How many outputs the gate was given that the session has not told of yet."""

    @property
    def are_pending(self) -> bool:
        """Whether the turn under way waits for the client."""
        return bool(self._asked)

    @property
    def have_outputs(self) -> bool:
        """Whether the client has added outputs that wait for `response.create`."""
        return bool(self._held)

    def make_tools(self, declared: Sequence[ToolDeclaration], adapters: Mapping[str, Adapter]) -> list[Tool]:
        """Makes the tools of the client's functions. Raises `ClientToolError`."""
        return self._calls.make_tools(declared, adapters)

    def set_names(self, names: frozenset[str]) -> None:
        self._names = names

    def expect(self, calls: Sequence[ToolCall]) -> None:
        """The model has made these calls, of functions of the client and others."""
        self._unsent = sum(call.name in self._names for call in calls)

    def hold_output(self, call_id: str, output: str) -> bool:
        """Takes the output of a call that the turn under way waits for. False if it does not wait for it."""
        if call_id not in self._asked:
            return False
        self._held[call_id] = output
        return True

    def take_output(self, call_id: str, output: str) -> "asyncio.Task[Any] | None":
        """Takes the output of a call whose turn is over: the next turn learns of it, once the returned task of the gate
        is done. None if the call does not wait for an output."""
        run = self._calls.run_of(call_id)
        if run is None or not self._calls.answer(call_id, parse_output(output)):
            return None
        self._answered += 1
        return run

    def take_late(self, call_id: str) -> ClientCall | None:
        """Takes a call that ended without an output, which has come now."""
        return self._given_up.pop(call_id, None)

    def answer(self) -> None:
        """Lets the model go on with the outputs. A call without one has failed."""
        without_output = [call for id, call in self._asked.items() if id not in self._held]
        self._give_outputs()
        for call in without_output:
            self._give_up(call)
            self._answered += self._calls.answer(call.id, None, error=NO_OUTPUT)

    def begin_turn(self) -> None:
        """Another turn begins. Calls of the one before it may still get their outputs, which the next turn learns."""
        self._give_outputs()
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

    def _give_outputs(self) -> None:
        """Gives the gate the outputs that the client has added. No call of this turn is waited for any more."""
        held, self._held, self._asked = self._held, {}, {}
        for call_id, output in held.items():
            self._answered += self._calls.answer(call_id, parse_output(output))

    def _give_up(self, call: ClientCall) -> None:
        self._given_up[call.id] = call
        if len(self._given_up) > MAX_GIVEN_UP:
            self._given_up.popitem(last=False)

    def _send(self, call: ClientCall) -> None:
        self._send_to_client(call)
        self._asked[call.id] = call
        self._unsent = max(0, self._unsent - 1)
        self._check_sent()

    def _drop(self, call: ClientCall) -> None:
        """The client has taken too long."""
        self._asked.pop(call.id, None)
        self._held.pop(call.id, None)
        self._give_up(call)

    def _check_sent(self) -> None:
        if not self._unsent and self._asked:
            self._sent_all()


def parse_output(output: str) -> Any:
    """Returns the output of a function. Most clients send JSON as a string, and some send plain words."""
    try:
        return msgspec.json.decode(output)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return output

"""What tools send to the client, and whether the user is blocked."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from antiphon.prompts.composer import notes_about
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import BLOCKED
from antiphon.protocol.server_messages import ConfirmationRequest, ConfirmationResolved, Error, Outcome, Timeout
from antiphon.session.outbox import Outbox
from antiphon.session.stored_session import Stores
from antiphon.tools import messages
from antiphon.tools.confirm import Decision, hash_of
from antiphon.tools.result import ConfirmationRequest as Asked
from antiphon.tools.result import Flyout

WIRE: Final[Mapping[type, type[s.ServerMessage]]] = {
    messages.Notice: s.Notice,
    messages.Image: s.Image,
    Flyout: s.Flyout,
    messages.VoiceSessionStart: s.VoiceSessionStart,
    messages.Timeout: s.Timeout,
    Asked: s.ConfirmationRequest,
}
"""The message of the wire for each message of a tool. Their fields have the same names."""


def to_wire(message: messages.Message) -> s.ServerMessage:
    """Raises `ToolError` for what is no message, or has a field of the wrong type."""
    if type(message) not in WIRE:
        raise messages.not_a_message(message)
    try:
        return msgspec.convert(msgspec.to_builtins(message), WIRE[type(message)])
    except (msgspec.ValidationError, TypeError) as error:
        raise messages.not_a_message(message, str(error)) from None


class ClientMessages:
    """`context.messaging` of a session: what a handler sends becomes a message of the wire."""

    def __init__(self, outbox: Outbox, stores: Stores, user: str) -> None:
        self._outbox = outbox
        self._stores = stores
        self._user = user
        self._asked: dict[str, str] = {}
        """The tokens of the questions that the client shows, by their hashes."""
        self.notes: Sequence[str] | None = None
        """What the model must know about the user; None if that is still to be read."""
        self.blocked_until_ms = 0
        """Until when the client was last told that its user is blocked."""
        self.farewell: Timeout | None = None
        """A block that has begun; its message waits for the farewell to be heard."""

    async def send(self, message: messages.Message) -> None:
        sent = to_wire(message)
        if isinstance(sent, Timeout):
            # The block holds from here on, whatever becomes of the socket.
            await self._stores.blocks.block(self._user, sent.until, sent.message)
            self.farewell = sent
            return
        if isinstance(sent, ConfirmationRequest):
            self._asked[hash_of(sent.confirmation_token)] = sent.confirmation_token
            # A person who holds the token may approve the call, so it must not be on disk.
            self._outbox.send(sent, secret=True)
            return
        self._outbox.send(sent)

    def resolve(self, decision: Decision, token: str | None = None) -> None:
        """The person has answered, by a button or in words: the client may close the question that it shows."""
        outcome = Outcome.APPROVED if decision.approved else Outcome.DENIED
        asked = (self._asked.pop(decision.confirmation.token_hash, token), *map(self._asked.get, decision.repeats))
        for answered in asked:
            if answered is not None:
                self._outbox.send(ConfirmationResolved(answered, outcome))

    def withdraw(self, token_hash: str) -> None:
        """A question is void: the client may close it."""
        token = self._asked.pop(token_hash, None)
        if token is not None:
            self._outbox.send(ConfirmationResolved(token, Outcome.EXPIRED))

    def tell_farewell(self) -> None:
        """The farewell was heard, if there was one."""
        farewell, self.farewell = self.farewell, None
        if farewell is not None:
            self.blocked_until_ms = farewell.until
            self._outbox.send(farewell)

    async def tell_unblocked(self, now_ms: int) -> None:
        """Tells a client that shows a block if the block was lifted before its time."""
        if self.blocked_until_ms > now_ms and await self._stores.blocks.blocked_until(self._user, now_ms) is None:
            self.blocked_until_ms = 0
            self._outbox.send(Timeout(now_ms, 0.0, "You can talk to me again."))

    async def check_user(self, now_ms: int) -> tuple[bool, bool]:
        """Whether the user is blocked, and the client was told so, and whether there are new `notes` for the model."""
        blocks = self._stores.blocks
        until_ms = await blocks.blocked_until(self._user, now_ms)
        if until_ms is not None:
            self.notes = None
            self.blocked_until_ms = until_ms
            self._outbox.send(Timeout(until_ms, (until_ms - now_ms) / 1000, "You are blocked for now."))
            self._outbox.send(Error(BLOCKED.reason, "blocked"))
            return True, False
        if self.notes is not None:
            return False, False
        self.notes = await notes_about(self._user, blocks, now_ms)
        return False, bool(self.notes)

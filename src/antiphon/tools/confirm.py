"""Confirmation: a call that a person must approve waits in the store, bound to them, for one use and five minutes."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from antiphon.clock import Clock
from antiphon.storage.base import Confirmation, ConfirmationStore
from antiphon.telemetry.log import get_logger
from antiphon.tools.attempt import Attempt
from antiphon.tools.call import ToolCall, canonical, shown_id
from antiphon.tools.result import ConfirmationRequest, Prepared
from antiphon.tools.session import ToolSession
from antiphon.tools.tool import Tool

EXPIRES_AFTER_MS: Final = 5 * 60 * 1000
MAX_PREVIEW_CHARS: Final = 1_000

log = get_logger(__name__)


class Decision(Struct, frozen=True):
    """What a person has decided about a call that waited for them. Their confirmation is used up by it."""

    confirmation: Confirmation
    approved: bool
    repeats: tuple[str, ...] = ()
    """The token hashes of later questions about the same call, which the decision has answered too."""

    @property
    def call(self) -> ToolCall:
        return call_of(self.confirmation)

    @property
    def shown_id(self) -> str:
        return shown_id(self.call, self.confirmation.turn)


class Confirmations:
    def __init__(self, store: ConfirmationStore, clock: Clock, new_token: Callable[[], str]) -> None:
        self._store = store
        self._clock = clock
        self._new_token = new_token
        """At least 128 random bits, because a client with the token and the session may run the call."""

    async def ask(self, attempt: Attempt, tool: Tool, prepared: Prepared | None = None) -> ConfirmationRequest:
        """Stores the call as it would run and returns what the person is shown."""
        now_ms = self._clock.now_ms()
        await self._store.sweep(now_ms)
        token = self._new_token()
        preview = preview_of(tool, attempt.args) if prepared is None else prepared.preview[:MAX_PREVIEW_CHARS]
        expires_ms = now_ms + EXPIRES_AFTER_MS
        await self._store.put(
            Confirmation(
                token_hash=hash_of(token),
                session_id=attempt.session.id,
                user=attempt.session.user,
                tool=tool.id,
                tool_digest=tool.digest,
                args=canonical(attempt.call.args),
                call_id=attempt.call.id,
                occurrence=attempt.call.occurrence,
                mode=attempt.mode,
                turn=attempt.turn,
                preview=preview,
                expires_ms=expires_ms,
                prepared=None if prepared is None else canonical(prepared.args),
            )
        )
        return ConfirmationRequest(
            tool=tool.id,
            args=attempt.args,
            preview=preview,
            confirmation_token=token,
            expires_at=expires_ms,
            id=shown_id(attempt.call, attempt.turn),
            title=tool.spec.shown_title,
        )

    async def pending(self, session: ToolSession) -> Sequence[Confirmation]:
        """Lists the confirmations that wait for this person, oldest first, except those of tools that have changed."""
        waiting = await self._store.pending(session.id, session.user, self._clock.now_ms())
        return [one for one in waiting if _is_current(one, session)]

    async def reissue(self, waiting: Confirmation, tool: Tool, args: dict[str, Any]) -> ConfirmationRequest | None:
        """Replaces the token by a new one, which makes the old one invalid; None if it was used in the meantime.

        `args` are the arguments as the call would run with them.
        """
        token = self._new_token()
        if not await self._store.rehash(waiting.token_hash, hash_of(token), waiting.session_id, waiting.user):
            return None
        return ConfirmationRequest(
            tool=waiting.tool,
            args=args,
            preview=waiting.preview,
            confirmation_token=token,
            expires_at=waiting.expires_ms,
            id=shown_id(call_of(waiting), waiting.turn),
            title=tool.spec.shown_title,
        )

    async def take(self, token_hash: str, session: ToolSession) -> Confirmation | None:
        """Takes the confirmation of a token, which uses it up; None if this user has no such confirmation."""
        found = await self._store.take(token_hash, session.id, session.user)
        if found is None or found.expires_ms <= self._clock.now_ms():
            return None
        return found if _is_current(found, session) else None

    async def asked_before(self, session: ToolSession, turn: int) -> Confirmation | None:
        """Finds the call that a plain yes or no in this turn refers to: the only one asked about in the turn before."""
        waiting = await self._store.pending(session.id, session.user, self._clock.now_ms())
        recent = {(c.tool, c.args): c for c in waiting if c.turn == turn - 1}
        return next(iter(recent.values())) if len(recent) == 1 else None

    async def take_only(self, session: ToolSession) -> Confirmation | None:
        """Takes the call that a plain yes or no refers to if the session has asked about no other, however often."""
        waiting = await self.pending(session)
        if len({(each.tool, each.args) for each in waiting}) != 1:
            return None
        *repeats, newest = waiting
        # The newest comes last: of two answers at the same time, only the one that gets it is carried out.
        for each in repeats:
            await self.take(each.token_hash, session)
        return await self.take(newest.token_hash, session)

    async def take_repeats(self, taken: Confirmation, session: ToolSession, turn: int) -> tuple[str, ...]:
        """Uses up questions about the same call that were asked after this one, up to this turn.

        A model that hears a yes itself may make the call again before the words of the yes are known here.
        """
        repeats = [
            waiting.token_hash
            for waiting in await self._store.pending(session.id, session.user, self._clock.now_ms())
            if (waiting.tool, waiting.args) == (taken.tool, taken.args) and taken.turn < waiting.turn <= turn
        ]
        return tuple([each for each in repeats if await self.take(each, session) is not None])


def call_of(confirmation: Confirmation) -> ToolCall:
    """Rebuilds the call that waits."""
    args = msgspec.json.decode(confirmation.args)
    return ToolCall(confirmation.call_id, confirmation.tool, args, confirmation.occurrence)


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "backslashreplace")).hexdigest()


def _is_current(confirmation: Confirmation, session: ToolSession) -> bool:
    """Checks that the tool is still the one the person was asked about. If it has changed, they must be asked again."""
    tool = session.snapshot.tools.get(confirmation.tool)
    return tool is not None and tool.digest == confirmation.tool_digest


def preview_of(tool: Tool, args: Mapping[str, Any]) -> str:
    """Returns the tool's own preview, or the call itself if there is none or it fails."""
    if tool.preview is not None:
        try:
            return str(tool.preview(args))[:MAX_PREVIEW_CHARS]
        except Exception:
            log.exception("preview_failed", tool=tool.id)
    return f"Run {tool.id} with {msgspec.json.encode(args).decode()}"[:MAX_PREVIEW_CHARS]

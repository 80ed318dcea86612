"""Confirmation: what a person must approve waits in the store, bound to them, for one use and five minutes."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from antiphon.clock import Clock
from antiphon.storage.base import Confirmation, ConfirmationStore
from antiphon.telemetry.log import get_logger
from antiphon.tools.attempt import Attempt
from antiphon.tools.call import canonical
from antiphon.tools.result import ConfirmationRequest
from antiphon.tools.session import ToolSession
from antiphon.tools.tool import Tool

EXPIRES_AFTER_MS: Final = 5 * 60 * 1000
MAX_PREVIEW_CHARS: Final = 1_000

log = get_logger(__name__)


class Confirmations:
    def __init__(self, store: ConfirmationStore, clock: Clock, new_token: Callable[[], str]) -> None:
        self._store = store
        self._clock = clock
        self._new_token = new_token
        """128 random bits or more: whoever holds the token and the session may run the call."""

    async def ask(self, attempt: Attempt, tool: Tool) -> ConfirmationRequest:
        """Stores the call as it would run, and gives what the person is to be shown."""
        now_ms = self._clock.now_ms()
        await self._store.sweep(now_ms)
        token = self._new_token()
        preview = _preview(tool, attempt.args)
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
            )
        )
        return ConfirmationRequest(tool.id, attempt.args, preview, token, expires_ms)

    async def take(self, token_hash: str, session: ToolSession) -> Confirmation | None:
        """The confirmation behind a token, used up by this; None if there is none for this person to give."""
        found = await self._store.take(token_hash, session.id, session.user)
        if found is None or found.expires_ms <= self._clock.now_ms():
            return None
        tool = session.snapshot.tools.get(found.tool)
        # The person approved what the tool was; if it has changed since, they must be asked anew.
        return found if tool is not None and tool.digest == found.tool_digest else None

    async def asked_last_turn(self, session: ToolSession) -> Confirmation | None:
        """The one call that a plain yes or no of this turn can mean: asked in the turn before, and alone."""
        waiting = await self._store.pending(session.id, session.user, self._clock.now_ms())
        recent = {(c.tool, c.args): c for c in waiting if c.turn == session.turn - 1}
        return next(iter(recent.values())) if len(recent) == 1 else None


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "backslashreplace")).hexdigest()


def _preview(tool: Tool, args: Mapping[str, Any]) -> str:
    """The tool's own words; if it has none, or fails to find them, the call itself."""
    if tool.preview is not None:
        try:
            return str(tool.preview(args))[:MAX_PREVIEW_CHARS]
        except Exception:
            log.exception("preview_failed", tool=tool.id)
    return f"Run {tool.id} with {msgspec.json.encode(args).decode()}"[:MAX_PREVIEW_CHARS]

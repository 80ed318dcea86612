"""Decides who a caller is, and ends the sessions whose access token is no longer valid."""

import math
from collections import Counter
from functools import partial
from typing import Final

from antiphon.clock import Clock
from antiphon.errors import AntiphonError
from antiphon.protocol.closing import UNAUTHENTICATED
from antiphon.protocol.errors import ErrorCode
from antiphon.protocol.server_messages import Error
from antiphon.security.admission import Caller
from antiphon.security.quota import Account, Kind, Quota
from antiphon.security.tokens import hash_token, is_token
from antiphon.server.refusals import RefusalCounts, RefusalLog, RefusalReason
from antiphon.session.hub import Hub
from antiphon.storage.changes import Topic, repeat, wait_for_change
from antiphon.storage.people import BlockStore, TokenStore
from antiphon.telemetry.log import get_logger

LOCAL_USER: Final = "local"
"""The user of every caller where no token is required."""
MAX_KNOWN: Final = 1_000
"""How many valid tokens are remembered, so that their owners get in while others at their address are slowed down."""


class TooManyWrongTokens(AntiphonError):
    """Too many wrong tokens came from this address recently."""

    code = "too_fast"

    def __init__(self, wait_s: float) -> None:
        super().__init__(
            f"Too many wrong tokens came from your address. Try again in {math.ceil(wait_s)} seconds with a valid one."
        )
        self.wait_s = wait_s


class Authenticator:
    def __init__(
        self, tokens: TokenStore, blocks: BlockStore, clock: Clock, *, required: bool, quota: Quota | None = None
    ) -> None:
        self.required = required
        """Whether callers must show a token."""
        self.refusals: RefusalCounts = Counter()
        """How many callers were refused since the process started, by the reason."""
        self._tokens = tokens
        self._blocks = blocks
        self._clock = clock
        self._quota = quota or Quota()
        self._refusals = RefusalLog(clock)
        self._known: dict[str, None] = {}
        """Hashes of tokens that were valid when they were last shown, the oldest first."""

    async def identify(self, token: str | None, *, address: str | None, route: str) -> Caller | None:
        """Returns None if a token is required and missing, or if the token is wrong, even where none is required.

        Raises `TooManyWrongTokens`, without asking the store, if too many wrong ones came from the address.
        """
        if token is None:
            if self.required:
                self.refusals[RefusalReason.MISSING_TOKEN] += 1
                return None
            return Caller(LOCAL_USER, authenticated=False)
        account, hashed = Account(address=address), hash_token(token)
        wait_s = self._quota.wait_s(Kind.WRONG_TOKEN, account, 1, self._clock.monotonic())
        if wait_s > 0 and hashed not in self._known:
            self.refusals[RefusalReason.WRONG_TOKENS] += 1
            self._refusals.write("too many wrong tokens", address=address, route=route)
            raise TooManyWrongTokens(wait_s)
        found = await self._tokens.find(hashed, self._clock.now_ms()) if is_token(token) else None
        if found is None:
            self._known.pop(hashed, None)
            self._quota.take(Kind.WRONG_TOKEN, account, 1, self._clock.monotonic())
            self.refusals[RefusalReason.WRONG_TOKEN] += 1
            self._refusals.write("wrong token", address=address, route=route)
            return None
        self._known[hashed] = None
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]
        return Caller(found.user, authenticated=True, token_id=found.id, is_admin=found.is_admin)

    async def blocked_until(self, user: str) -> int | None:
        until_ms = await self._blocks.blocked_until(user, self._clock.now_ms())
        if until_ms is not None:
            self.refusals[RefusalReason.BLOCKED] += 1
        return until_ms


CHECK_EVERY_S: Final = 2.0
"""A revoked token keeps working for at most this long."""
REVOKED: Final = "Your access token has been revoked or has expired. Connect with a valid one."

log = get_logger(__name__)


async def end_revoked(hub: Hub, tokens: TokenStore) -> None:
    """Checks the sessions of this process until it is cancelled: open sockets, requests and parked sessions."""
    changed = hub.stores.changes.subscribe(Topic.PEOPLE)
    await repeat(
        partial(_end_revoked_once, hub, tokens), partial(wait_for_change, changed, CHECK_EVERY_S), "token_check_failed"
    )


async def _end_revoked_once(hub: Hub, tokens: TokenStore) -> None:
    used = {active.token_id for active in hub.sessions.values() if active.token_id is not None}
    if not used:
        return
    revoked = used.difference(await tokens.valid(used, hub.clock.now_ms()))
    for active in list(hub.sessions.values()):
        if active.token_id in revoked:
            log.info("session_ended", session=active.id, user=active.user, reason="token revoked or expired")
            hub.stop_session(active, Error(REVOKED, ErrorCode.UNAUTHENTICATED), UNAUTHENTICATED)

"""Ends the sessions whose access token has been revoked, in whichever process, or has expired."""

import asyncio
from typing import Final

from antiphon.protocol.closing import UNAUTHENTICATED
from antiphon.protocol.errors import ErrorCode
from antiphon.protocol.server_messages import Error
from antiphon.session.hub import Hub
from antiphon.storage.base import StorageError
from antiphon.storage.people import TokenStore
from antiphon.telemetry.log import get_logger

CHECK_EVERY_S: Final = 2.0
"""A revoked token is good for this long at most."""
REVOKED: Final = "Your access token has been revoked or has expired. Connect with a valid one."

log = get_logger(__name__)


async def end_revoked(hub: Hub, tokens: TokenStore) -> None:
    """Looks after the sessions of this process until it is cancelled: open sockets, requests and parked sessions."""
    is_down = False
    while True:
        await asyncio.sleep(CHECK_EVERY_S)
        try:
            await _end_revoked_once(hub, tokens)
            is_down = False
        except StorageError as error:
            if not is_down:
                log.warning("tokens_not_checked", error=str(error))
            is_down = True


async def _end_revoked_once(hub: Hub, tokens: TokenStore) -> None:
    used = {live.token_id for live in hub.sessions.values() if live.token_id is not None}
    if not used:
        return
    revoked = used.difference(await tokens.valid(used, hub.clock.now_ms()))
    for live in list(hub.sessions.values()):
        if live.token_id in revoked:
            log.info("session_ended", session=live.id, user=live.user, reason="its token was revoked or has expired")
            hub.expel(live, Error(REVOKED, ErrorCode.UNAUTHENTICATED), UNAUTHENTICATED)

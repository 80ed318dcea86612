"""Who may use the operator's interface, and what is written down about it."""

from typing import Any, Final

from antiphon.security.admission import Caller
from antiphon.server.deps import HttpDeps
from antiphon.server.refusals import Refusal, RefusalCode
from antiphon.storage.base import AuditLine
from antiphon.telemetry.log import get_logger

NO_TOKEN: Final = (
    "An admin token is required, as Authorization: Bearer TOKEN. Create one with `antiphon token new --admin`."
)
NOT_ADMIN: Final = (
    "This is not an admin token. Create one with `antiphon token new --admin`, and use it instead of this one."
)
EVENTS: Final = "admin_"
"""Begins the name of every event of the audit that the operator caused."""

log = get_logger(__name__)


def check_admin(caller: Caller | None) -> Caller:
    """Raises `Refusal` for a caller without an admin token, also on a server that requires no tokens."""
    if caller is None or not caller.authenticated:
        raise Refusal(RefusalCode.UNAUTHENTICATED, NO_TOKEN)
    if not caller.is_admin:
        raise Refusal(RefusalCode.FORBIDDEN, NOT_ADMIN)
    return caller


async def record(deps: HttpDeps, caller: Caller, event: str, *, conversation: str | None = None, **data: Any) -> None:
    """Writes into the log and the audit what an operator reads of others, or changes. It is durable afterwards."""
    log.info(EVENTS + event, admin=caller.user, conversation=conversation, **data)
    line = AuditLine(
        ts_ms=deps.clock.now_ms(),
        session="",
        user=caller.user,
        mode="admin",
        turn=0,
        tool="",
        outcome="event",
        event=EVENTS + event,
        data=data or None,
        conversation=conversation,
    )
    await deps.operator.audit.append([line])

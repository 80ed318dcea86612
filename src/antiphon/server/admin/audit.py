"""Searching the audit of all users."""

from typing import Annotated, Final

from msgspec import Meta, Struct
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from antiphon.security.admission import Caller
from antiphon.server.deps import HttpDeps
from antiphon.server.records import PAGE, Limit
from antiphon.server.refusals import Refusal, RefusalCode, reply
from antiphon.server.requests import read_query
from antiphon.storage.base import AuditLine
from antiphon.storage.overview import AuditFilter
from antiphon.telemetry.log import get_logger

MAX_TIME_MS: Final = 1 << 53
"""Times are numbers that JavaScript can tell apart, too."""

Time = Annotated[int, Meta(ge=0, le=MAX_TIME_MS)]

log = get_logger(__name__)


class AuditQuery(Struct, forbid_unknown_fields=True):
    """Without a parameter all lines are found."""

    user: str | None = None
    session: str | None = None
    conversation: str | None = None
    tool: str | None = None
    outcome: str | None = None
    """ok, the type of an error such as TRANSIENT, or event."""
    since: Time | None = None
    """Unix time in milliseconds."""
    until: Time | None = None
    """The first moment that no longer counts, as Unix time in milliseconds."""
    limit: Limit = PAGE
    before: Time | None = None
    """`next` of the previous page."""


class AuditEntry(Struct, frozen=True):
    number: int
    line: AuditLine


class AuditPage(Struct, frozen=True):
    """The newest first."""

    lines: tuple[AuditEntry, ...]
    next: int | None
    """Pass it as `before` to get the next page. Null: this is the last page."""


async def search_audit(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    query = read_query(request, AuditQuery)
    if query.since is not None and query.until is not None and query.since >= query.until:
        raise Refusal(RefusalCode.BAD_REQUEST, "Wrong parameter: `since` must be before `until`.")
    wanted = AuditFilter(
        user=query.user or None,
        session=query.session or None,
        conversation=query.conversation or None,
        tool=query.tool or None,
        outcome=query.outcome or None,
        since_ms=query.since,
        until_ms=query.until,
    )
    # Only in the log: the audit would otherwise fill with the searches of the audit.
    asked = {name: value for name, value in asdict(wanted).items() if value is not None}
    log.info("admin_searched_audit", admin=caller.user, wanted=asked)
    found = await deps.operator.overview.audit(wanted, query.limit + 1, query.before)
    page = found[: query.limit]
    more = page[-1][0] if len(found) > len(page) else None
    return reply(AuditPage(tuple(AuditEntry(number, line) for number, line in page), more))

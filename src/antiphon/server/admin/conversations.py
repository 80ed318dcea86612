"""The conversations of all users."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from antiphon.security.admission import Caller
from antiphon.server.deps import HttpDeps
from antiphon.server.records import PAGE, Limit, read_place, write_place
from antiphon.server.refusals import reply
from antiphon.server.requests import read_query
from antiphon.telemetry.log import get_logger

log = get_logger(__name__)


class AdminConversationsQuery(Struct, forbid_unknown_fields=True):
    user: str | None = None
    """Only the conversations of this user."""
    limit: Limit = PAGE
    before: str | None = None
    """`next` of the previous page."""


class AdminConversation(Struct, frozen=True):
    id: str
    user: str
    title: str
    created_ms: int
    updated_ms: int
    """The time of the newest turn."""


class AdminConversationPage(Struct, frozen=True):
    """The most recently updated first."""

    conversations: tuple[AdminConversation, ...]
    next: str | None
    """Pass it as `before` to get the next page. Null: this is the last page."""


async def list_all_conversations(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    query = read_query(request, AdminConversationsQuery)
    after = None if query.before is None else read_place(query.before)
    found = await deps.operator.overview.conversations(query.limit + 1, user=query.user, after=after)
    page = found[: query.limit]
    more = write_place(page[-1].place) if len(found) > len(page) else None
    # The titles are what people said first. Only in the log, since the page refreshes the list by itself.
    log.info("admin_listed_conversations", admin=caller.user, owner=query.user)
    entries = (AdminConversation(c.id, c.user, c.title, c.created_ms, c.updated_ms) for c in page)
    return reply(AdminConversationPage(tuple(entries), more))

"""The sessions of all processes, and the state of this one."""

from collections.abc import Iterator

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from antiphon import __version__
from antiphon.security.admission import Caller
from antiphon.server.deps import HttpDeps
from antiphon.server.energy import describe_session, read_energy
from antiphon.server.records import PAGE, Limit, read_place, write_place
from antiphon.server.refusals import reply
from antiphon.server.requests import read_query
from antiphon.session.active import ActiveSession
from antiphon.storage.conversations import Place
from antiphon.storage.sessions import SessionRecord


class AdminStatus(Struct, frozen=True):
    """Who asks, and which process answers."""

    user: str
    """The user of the admin token."""
    token_id: str | None
    node: str
    """The name of this process in leases."""
    version: str
    tools_version: str
    now_ms: int
    sessions: int
    """How many sessions this process has in memory."""
    connected: int
    """How many of them have a client."""


class SessionsQuery(Struct, forbid_unknown_fields=True):
    user: str | None = None
    limit: Limit = PAGE
    before: str | None = None
    """`next` of the previous page."""


class SessionEntry(Struct, frozen=True, kw_only=True):
    id: str
    user: str
    conversation_id: str
    mode: str
    node: str
    """The process that holds, or has held, the lease."""
    held: bool
    """Whether the lease is held now. Otherwise the session waits in the store for its client."""
    connected: bool | None
    """Whether its client is connected. Null if another process has it."""
    stored: bool
    """False before the first turn: then only this process knows it."""
    updated_ms: int
    resumable_until_ms: int | None
    """How long its client can resume it."""
    tools_version: str
    model: str | None = None
    """The model that answers; null if another process has the session, or if there is none."""


class SessionPage(Struct, frozen=True):
    """The most recently updated first."""

    sessions: tuple[SessionEntry, ...]
    next: str | None
    """Pass it as `before` to get the next page. Null: this is the last page."""


async def show_status(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    hub = deps.hub
    return reply(
        AdminStatus(
            user=caller.user,
            token_id=caller.token_id,
            node=hub.owner,
            version=__version__,
            tools_version=deps.registry.snapshot().version,
            now_ms=deps.clock.now_ms(),
            sessions=len(hub.sessions),
            connected=len(hub.connected()),
        )
    )


async def list_sessions(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    query = read_query(request, SessionsQuery)
    after = None if query.before is None else read_place(query.before)
    found = await deps.operator.overview.sessions(query.limit + 1, user=query.user, after=after)
    page, more = found[: query.limit], None
    if len(found) > len(page):
        more = write_place(Place(page[-1].updated_ms, page[-1].id))
    entries = [_describe(deps, record) for record in page]
    if after is None:
        entries[:0] = list(_unstored(deps, query))[: query.limit]
    return reply(SessionPage(tuple(entries), more))


async def show_all_energy(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    return reply(await read_energy(deps, None))


def _unstored(deps: HttpDeps, query: SessionsQuery) -> Iterator[SessionEntry]:
    """Describes the clients that have connected and have not said anything yet."""
    for active in deps.hub.sessions.values():
        stored = active.runner.stored
        if not stored.is_stored and query.user in (None, active.user):
            yield _describe(deps, stored.record, is_stored=False)


def _describe(deps: HttpDeps, record: SessionRecord, *, is_stored: bool = True) -> SessionEntry:
    now_ms = deps.clock.now_ms()
    active = deps.hub.sessions.get(record.id)
    is_held = record.lease_until_ms > now_ms
    is_here = active is not None and (not is_stored or record.lease_owner == deps.hub.owner)
    return SessionEntry(
        id=record.id,
        user=record.user,
        conversation_id=record.conversation_id,
        mode=record.mode,
        node=record.lease_owner,
        held=is_here or is_held,
        connected=_is_connected(active) if is_here or not is_held else None,
        stored=is_stored,
        updated_ms=record.updated_ms,
        resumable_until_ms=record.handle_expires_ms if is_stored else None,
        tools_version=record.tools_version,
        model=describe_session(active).model if is_here and active is not None else None,
    )


def _is_connected(active: ActiveSession | None) -> bool:
    return active is not None and active.runner.outbox.link is not None

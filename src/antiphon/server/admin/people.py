"""Users, blocks and access tokens."""

from collections import Counter
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from antiphon.security.admission import Caller
from antiphon.server.admin.access import record
from antiphon.server.deps import HttpDeps
from antiphon.server.refusals import Refusal, RefusalCode, reply
from antiphon.server.requests import read_query
from antiphon.storage.changes import Topic

MAX_USERS: Final = 500


class UserBlock(Struct, frozen=True):
    until_ms: int
    reason: str


class UserEntry(Struct, frozen=True, kw_only=True):
    user: str
    conversations: int
    updated_ms: int | None
    """The time of the newest turn; null without a conversation."""
    tokens: int
    sessions: int
    """How many sessions this process has in memory."""
    block: UserBlock | None


class UserList(Struct, frozen=True):
    """Users with a conversation, token, session or block: the blocked ones first, then the most recently active."""

    users: tuple[UserEntry, ...]
    more: bool
    """Whether there are more users than are listed."""


class BlockQuery(Struct, forbid_unknown_fields=True):
    user: str
    """Who is to be unblocked."""


class TokenEntry(Struct, frozen=True, kw_only=True):
    """An access token. The token itself is not stored."""

    id: str
    user: str
    name: str
    is_admin: bool
    created_ms: int
    expires_ms: int | None
    is_expired: bool
    is_current: bool
    """Whether this request was made with it."""


class TokenList(Struct, frozen=True):
    """The oldest first."""

    tokens: tuple[TokenEntry, ...]


async def list_users(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    stores = deps.operator
    active = {each.user: each for each in await stores.overview.users(MAX_USERS + 1)}
    owners = Counter(token.user for token in await stores.tokens.list())
    blocks = {block.user: block for block in await stores.blocks.list(deps.clock.now_ms())}
    sessions = Counter(each.user for each in deps.hub.sessions.values())
    names = dict.fromkeys([*blocks, *active, *sorted({*sessions, *owners})])
    users = [
        UserEntry(
            user=name,
            conversations=active[name].conversations if name in active else 0,
            updated_ms=active[name].updated_ms if name in active else None,
            tokens=owners[name],
            sessions=sessions[name],
            block=UserBlock(blocks[name].until_ms, blocks[name].reason) if name in blocks else None,
        )
        for name in list(names)[:MAX_USERS]
    ]
    return reply(UserList(tuple(users), len(names) > MAX_USERS))


async def unblock_user(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    user = read_query(request, BlockQuery).user
    if not await deps.operator.blocks.unblock(user):
        raise Refusal(RefusalCode.NOT_FOUND, "This user is not blocked.")
    deps.hub.stores.changes.announce(Topic.PEOPLE)
    await record(deps, caller, "unblocked", owner=user)
    return Response(status_code=204)


async def list_tokens(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    now_ms = deps.clock.now_ms()
    entries = (
        TokenEntry(
            id=token.id,
            user=token.user,
            name=token.name,
            is_admin=token.is_admin,
            created_ms=token.created_ms,
            expires_ms=token.expires_ms,
            is_expired=token.expires_ms is not None and token.expires_ms <= now_ms,
            is_current=token.id == caller.token_id,
        )
        for token in await deps.operator.tokens.list()
    )
    return reply(TokenList(tuple(entries)))


async def revoke_token(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    id = request.path_params["id"]
    if not await deps.operator.tokens.revoke(id):
        raise Refusal(RefusalCode.NOT_FOUND, "There is no such token. It may have been revoked already.")
    # Named `id`, since the log masks whatever is called a token.
    deps.hub.stores.changes.announce(Topic.PEOPLE)
    await record(deps, caller, "revoked", id=id)
    return Response(status_code=204)

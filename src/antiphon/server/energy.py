"""`/api/energy` and `/api/sessions/{id}/renew`: which models the sessions use, and how that is changed by hand.

Users see and change their own sessions. A caller who needs no token is the operator, who sees and changes all of them.
Each process answers for its own sessions: those of other processes are asked for with one command for each process.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from antiphon.continuity.energy import FALLBACK_LEVEL, Ladder, is_resumable
from antiphon.security.admission import Caller
from antiphon.security.quota import Account, Kind
from antiphon.server.deps import HttpDeps
from antiphon.server.refusals import Refusal, RefusalCode, reply
from antiphon.server.requests import read_body
from antiphon.session.active import ActiveSession
from antiphon.session.hub import Hub
from antiphon.session.nodes import CommandRefused, Handler, Nodes
from antiphon.tools.spec import Mode

WAIT_S: Final = 3.0
"""How long a session may take to begin what is asked of it. Another process waits a little longer for the result."""
LIST_S: Final = 2.5
"""How long other processes may take to list their sessions. With SQLite they look once a second, and so does the one
that waits for the list."""
NO_REACTION: Final = "The session is busy, or has ended. Try again."


class RungState(Struct, frozen=True):
    """The model of one level of energy."""

    level: int
    model: str
    resumable: bool
    """Whether an interrupted session with it can be continued."""
    fallback: bool
    """Whether it continues from a summary of the conversation."""
    cooling_s: float
    """For how many seconds it is not used, since its rate limit was exceeded."""
    reachable: bool
    """False for a while after it could not be connected."""


class LadderState(Struct, frozen=True):
    """The models of one mode, the best one first."""

    mode: Mode
    max: int
    best: int
    """The level that a new call or conversation begins with; 0 if all models are cooling down."""
    rungs: tuple[RungState, ...]


class SessionEnergy(Struct, frozen=True):
    """The energy of a session: the higher a level, the better the model. 0 is exhausted."""

    session_id: str
    user: str
    conversation_id: str
    mode: Mode
    connected: bool
    """Whether its client is connected."""
    text: int | None
    voice: int | None
    """Null if the server has no voice."""
    model: str | None
    """The model of its mode; null at level 0."""
    node: str
    """The server that runs it."""


class EnergyState(Struct, frozen=True):
    ladders: tuple[LadderState, ...]
    """The models as the server that answers sees them."""
    sessions: tuple[SessionEnergy, ...]
    """Your own sessions on all servers, or those of everybody for the operator."""
    unreached: tuple[str, ...] = ()
    """The servers that run sessions, too, but do not answer: their sessions are not listed."""


class EnergyRequest(Struct, forbid_unknown_fields=True):
    mode: Mode
    level: int
    session_id: str | None = None
    """Null changes all of your sessions."""


class ChangedSessions(Struct, frozen=True):
    sessions: tuple[SessionEnergy, ...]
    """The sessions that were changed, with their new levels."""
    unchanged: tuple[str, ...] = ()
    """The ids of sessions that did not react in time, or have ended."""
    unreached: tuple[str, ...] = ()
    """The servers that run sessions, too, but do not answer. Their sessions may have been changed or not."""


async def show_energy(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    return reply(await read_energy(deps, _owner_of(caller)))


async def read_energy(deps: HttpDeps, user: str | None) -> EnergyState:
    """Describes the models of this process, and the sessions of a user, or of all users, in all processes."""
    told = await deps.nodes.tell_others("list_energy", {"user": user}, user=user, within_s=LIST_S)
    there = (each for result in told.results for each in msgspec.convert(result, tuple[SessionEnergy, ...]))
    ladders = tuple(describe_ladder(ladder) for ladder in deps.hub.models.ladders.values())
    here = map(describe_session, _sessions_of(deps.hub, user))
    return EnergyState(ladders, _merge((*here, *there)), tuple(told.unreached))


async def set_energy(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    wanted = await read_body(request, EnergyRequest)
    ladder = deps.hub.models.ladders.get(wanted.mode)
    if ladder is None:
        raise Refusal(RefusalCode.BAD_REQUEST, f"This server has no model for {wanted.mode}.")
    if not 0 <= wanted.level <= ladder.max_level:
        limits = f"a number from 0 to {ladder.max_level} for {wanted.mode}"
        raise Refusal(RefusalCode.BAD_REQUEST, f"`level` must be {limits}, not {wanted.level}.")
    _charge(deps, request, caller)
    named, body = wanted.session_id, {"mode": str(wanted.mode), "level": wanted.level}
    if named is not None:
        return reply(ChangedSessions((await _tell(deps, caller, named, "set_energy", body),)))
    return reply(await _set_all(deps, _owner_of(caller), body))


async def _set_all(deps: HttpDeps, user: str | None, wanted: Mapping[str, Any]) -> ChangedSessions:
    """Sets the level of all sessions of a user, or of all users, in all processes."""
    body = {**wanted, "user": user}
    here, there = await asyncio.gather(
        _set_own(deps.hub, body), deps.nodes.tell_others("set_all_energy", body, user=user)
    )
    results = [msgspec.convert(each, ChangedSessions) for each in (here, *there.results)]
    changed = _merge(each for result in results for each in result.sessions)
    unchanged = {id for result in results for id in result.unchanged} - {each.session_id for each in changed}
    if not (changed or unchanged or there.unreached):
        raise Refusal(RefusalCode.NOT_FOUND, "There is no session whose energy could be set.")
    if not changed:
        told = NO_REACTION if unchanged else "A server that runs sessions does not answer. Try again."
        raise Refusal(RefusalCode.DEADLINE, told)
    return ChangedSessions(changed, tuple(sorted(unchanged)), tuple(there.unreached))


async def _set_level(active: ActiveSession, wanted: Any) -> Any:
    await _carry_out(active, partial(active.runner.models.set_level, Mode(wanted["mode"]), wanted["level"]))
    return msgspec.to_builtins(describe_session(active))


async def _renew(active: ActiveSession, nothing: Any) -> Any:
    await _carry_out(active, active.runner.models.renew)
    return msgspec.to_builtins(describe_session(active))


async def _list_own(hub: Hub, wanted: Any) -> Any:
    return msgspec.to_builtins([describe_session(each) for each in _sessions_of(hub, wanted["user"])])


async def _set_own(hub: Hub, wanted: Any) -> Any:
    """Sets the level of the sessions of this process, and returns `ChangedSessions`."""
    changed: list[Any] = []
    unchanged: list[str] = []

    async def change(active: ActiveSession) -> None:
        try:
            changed.append(await _set_level(active, wanted))
        except CommandRefused:
            unchanged.append(active.id)

    await asyncio.gather(*(change(each) for each in _sessions_of(hub, wanted["user"])))
    return {"sessions": changed, "unchanged": unchanged}


_HANDLERS: Final[Mapping[str, Handler]] = {"set_energy": _set_level, "renew": _renew}


def offer_commands(nodes: Nodes) -> None:
    """Lets other processes list the sessions of this one, set their energy, and renew their models."""
    for kind, handler in _HANDLERS.items():
        nodes.offer(kind, handler)
    nodes.offer_for_all("list_energy", partial(_list_own, nodes.hub))
    nodes.offer_for_all("set_all_energy", partial(_set_own, nodes.hub))


async def _tell(deps: HttpDeps, caller: Caller, session_id: str, kind: str, body: Any = None) -> SessionEnergy:
    """Has a session do it, in whichever process it runs."""
    active = deps.hub.sessions.get(session_id)
    with _refusing():
        if active is not None and _owner_of(caller) in (None, active.user):
            return msgspec.convert(await _HANDLERS[kind](active, body), SessionEnergy)
        if all(each.id != session_id for each in await deps.nodes.elsewhere(_owner_of(caller))):
            raise Refusal(RefusalCode.NOT_FOUND, "There is no such session. It may have ended.")
        return msgspec.convert(await deps.nodes.tell(session_id, kind, body), SessionEnergy)


@contextmanager
def _refusing() -> Iterator[None]:
    """Tells the caller why a session could not do it, in this process or in another."""
    try:
        yield
    except CommandRefused as refused:
        raise Refusal(RefusalCode.DEADLINE, str(refused)) from None


async def renew_session(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    _charge(deps, request, caller)
    return reply(await _tell(deps, caller, request.path_params["id"], "renew"))


def _owner_of(caller: Caller) -> str | None:
    """The user whose sessions the caller may see and change; None for those of all users."""
    return caller.user if caller.authenticated else None


def _sessions_of(hub: Hub, user: str | None) -> list[ActiveSession]:
    return [each for each in hub.sessions.values() if user in (None, each.user)]


def _merge(sessions: Iterable[SessionEnergy]) -> tuple[SessionEnergy, ...]:
    """Lists each session once: the process from which it was taken over may have it in memory for a while."""
    found: dict[str, SessionEnergy] = {}
    for each in sessions:
        if each.session_id not in found or each.connected:
            found[each.session_id] = each
    return tuple(found.values())


def _charge(deps: HttpDeps, request: Request, caller: Caller) -> None:
    """Counts the request as a connection, since it connects a model anew."""
    address = request.client.host if request.client is not None else None
    account = Account(user=caller.user, address=address)
    wait_s = deps.quota.take(Kind.CONNECTION, account, 1, deps.clock.monotonic())
    if wait_s > 0:
        raise Refusal(RefusalCode.TOO_FAST, "Too many requests. Try again later.", retry_after_s=wait_s)


async def _carry_out(active: ActiveSession, work: Callable[[], None]) -> None:
    """Has the session do it in its own mailbox, and returns when it is done, or when the session has ended."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def item() -> None:
        work()
        if not done.done():
            done.set_result(None)

    active.runner.post(item)
    awaited = [done] if active.task is None else [done, active.task]
    await asyncio.wait(awaited, timeout=WAIT_S, return_when=asyncio.FIRST_COMPLETED)
    if not done.done():
        done.cancel()
        raise CommandRefused("busy", NO_REACTION)


def describe_ladder(ladder: Ladder) -> LadderState:
    rungs = [
        RungState(
            level=level,
            model=rung.name,
            resumable=is_resumable(rung.factory.profile),
            fallback=level == FALLBACK_LEVEL,
            cooling_s=round(rung.cooling_s(), 1),
            reachable=rung.is_usable,
        )
        for level, rung in sorted(ladder.rungs.items(), reverse=True)
    ]
    return LadderState(ladder.mode, ladder.max_level, ladder.best_level(), tuple(rungs))


def describe_session(active: ActiveSession) -> SessionEnergy:
    runner = active.runner
    levels, mode = runner.models.energy(), runner.state.mode
    profile = runner.models.profile_of(mode)
    return SessionEnergy(
        session_id=active.id,
        user=active.user,
        conversation_id=runner.conversation_id,
        mode=mode,
        connected=runner.outbox.link is not None,
        text=levels.get(Mode.TEXT),
        voice=levels.get(Mode.VOICE),
        model=None if profile is None or not levels.get(mode) else profile.name,
        node=runner.stored.record.lease_owner,
    )

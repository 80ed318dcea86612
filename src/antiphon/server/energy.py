"""`/api/energy` and `/api/sessions/{id}/renew`: which models the sessions use, and how that is changed by hand.

Users see and change their own sessions. A caller who needs no token is the operator, who sees and changes all of them.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
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
from antiphon.session.nodes import CommandRefused, Handler, Nodes
from antiphon.tools.spec import Mode

WAIT_S: Final = 5.0
"""How long a session may take to begin what is asked of it."""


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


class EnergyState(Struct, frozen=True):
    ladders: tuple[LadderState, ...]
    sessions: tuple[SessionEnergy, ...]
    """Your own sessions in this process, or all of them for the operator."""


class EnergyRequest(Struct, forbid_unknown_fields=True):
    mode: Mode
    level: int
    session_id: str | None = None
    """Null changes all of your sessions."""


class ChangedSessions(Struct, frozen=True):
    sessions: tuple[SessionEnergy, ...]
    """The sessions that were changed, with their new levels."""


async def show_energy(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    ladders = tuple(describe_ladder(ladder) for ladder in deps.hub.models.ladders.values())
    return reply(EnergyState(ladders, tuple(map(describe_session, _sessions_of(deps, caller)))))


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
    sessions = _sessions_of(deps, caller)
    if not sessions:
        raise Refusal(RefusalCode.NOT_FOUND, "There is no session whose energy could be set.")
    with _refusing():
        await asyncio.gather(*(_set_level(each, body) for each in sessions))
    return reply(ChangedSessions(tuple(map(describe_session, sessions))))


async def _set_level(active: ActiveSession, wanted: Any) -> Any:
    await _carry_out(active, partial(active.runner.models.set_level, Mode(wanted["mode"]), wanted["level"]))
    return msgspec.to_builtins(describe_session(active))


async def _renew(active: ActiveSession, nothing: Any) -> Any:
    await _carry_out(active, active.runner.models.renew)
    return msgspec.to_builtins(describe_session(active))


_HANDLERS: Final[Mapping[str, Handler]] = {"set_energy": _set_level, "renew": _renew}


def offer_commands(nodes: Nodes) -> None:
    """Lets other processes set the energy of the sessions of this one, and renew their models."""
    for kind, handler in _HANDLERS.items():
        nodes.offer(kind, handler)


async def _tell(deps: HttpDeps, caller: Caller, session_id: str, kind: str, body: Any = None) -> SessionEnergy:
    """Has a session do it, in whichever process it runs."""
    active = deps.hub.sessions.get(session_id)
    with _refusing():
        if active is not None and _may_change(caller, active):
            return msgspec.convert(await _HANDLERS[kind](active, body), SessionEnergy)
        owner = caller.user if caller.authenticated else None
        if all(each.id != session_id for each in await deps.nodes.elsewhere(owner)):
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


def _sessions_of(deps: HttpDeps, caller: Caller) -> list[ActiveSession]:
    return [each for each in deps.hub.sessions.values() if _may_change(caller, each)]


def _may_change(caller: Caller, active: ActiveSession) -> bool:
    return not caller.authenticated or active.user == caller.user


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
        raise CommandRefused("busy", "The session is busy, or has ended. Try again.")


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
    )

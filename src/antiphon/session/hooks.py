"""Hooks: functions of the operator's own that are told what happens in sessions.

A hook never delays or breaks a conversation. The hooks of a session are called one after another, in the order of what
happened, in a task of their own; each has `TIMEOUT_S`, and what one raises is logged.
"""

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from antiphon.errors import AntiphonError
from antiphon.protocol.server_messages import TurnMetrics
from antiphon.session import effects as fx
from antiphon.storage.base import AuditLine
from antiphon.telemetry.log import get_logger
from antiphon.tools.spec import Mode

TIMEOUT_S: Final = 10.0
"""How long one call of a hook may take."""
DRAIN_S: Final = 10.0
"""How long a process that ends waits for its hooks."""
MAX_WAITING: Final = 200
"""How many calls wait for the hooks of one session. Beyond this the oldest are dropped, and the log says so."""

log = get_logger(__name__)


class HookError(AntiphonError):
    """A hook cannot be used."""

    code = "hook"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted:
    """A client is connected in a session that is new to this process."""

    session_id: str
    conversation_id: str
    user: str
    mode: Mode
    resumed: bool
    """Whether the session was begun by an earlier process, or was stored meanwhile."""
    is_request: bool
    """Whether it lasts for a single HTTP request, such as one to `/api/v1/chat`."""
    at_ms: int
    """Unix time in milliseconds, here and in the other events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    """This process no longer has the session. A client that was only cut off may still resume it."""

    session_id: str
    conversation_id: str
    user: str
    turns: int
    """How many turns have ended in this process."""
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """A turn is over: what was said and answered is stored, and its answer was shown or played."""

    session_id: str
    conversation_id: str
    user: str
    turn: int
    mode: Mode
    question: str
    """What the user said or typed. Empty if the assistant spoke by itself, or if the transcript is not known yet."""
    answer: str
    """The answer, as far as it was shown or heard."""
    tools: tuple[str, ...]
    """The ids of the tools that the model has called, in their order."""
    interrupted: bool
    metrics: TurnMetrics | None
    """Where the time went; None for a turn without an answer."""
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """A call has passed the gate, or was refused there."""

    session_id: str
    user: str
    turn: int
    mode: Mode
    tool: str
    arguments: Mapping[str, Any] | None
    """As in the audit: None unless `audit.arguments` is on."""
    outcome: str
    """Either ok, or the type of the error, such as VALIDATION or CONFIRMATION_REQUIRED."""
    duration_ms: float
    repeated: bool
    """Whether the result is that of an earlier run of the same call."""
    at_ms: int


HookEvent = SessionStarted | SessionEnded | TurnEnded | ToolCalled


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Plain async functions, each called with one event. Raises `HookError` for anything else."""

    session_started: Callable[[SessionStarted], Awaitable[None]] | None = None
    session_ended: Callable[[SessionEnded], Awaitable[None]] | None = None
    turn_ended: Callable[[TurnEnded], Awaitable[None]] | None = None
    tool_called: Callable[[ToolCalled], Awaitable[None]] | None = None

    def __post_init__(self) -> None:
        for name in HOOK_NAMES:
            hook = getattr(self, name)
            if hook is not None and (problem := explain_hook(hook)) is not None:
                raise HookError(f"The hook {name} {problem}")


HOOK_NAMES: Final = tuple(each.name for each in fields(Hooks))
_NAMES: Final = {
    SessionStarted: "session_started",
    SessionEnded: "session_ended",
    TurnEnded: "turn_ended",
    ToolCalled: "tool_called",
}


def explain_hook(hook: object) -> str | None:
    """Explains why something cannot be a hook; None if it can be one."""
    if not callable(hook):
        return f"is a {type(hook).__name__}. It must be an async function of one event."
    if not (inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(getattr(hook, "__call__", None))):  # noqa: B004
        return "is not an async function. Define it with `async def`."
    try:
        inspect.signature(hook).bind(object())
    except TypeError:
        return "takes other parameters than one event."
    except ValueError:
        return None
    return None


@dataclass(slots=True)
class _Waiting:
    events: deque[HookEvent] = field(default_factory=deque)
    dropped: int = 0
    task: asyncio.Task[None] | None = None


class HookQueue:
    """Calls the hooks of all sessions of a process."""

    def __init__(self, hooks: Sequence[Hooks] = (), *, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._hooks = {
            name: [hook for each in hooks if (hook := getattr(each, name)) is not None] for name in HOOK_NAMES
        }
        self._sessions: dict[str, _Waiting] = {}

    def wants(self, name: str) -> bool:
        return bool(self._hooks[name])

    def put(self, event: HookEvent) -> None:
        """Has the hooks for this event called, after those that wait in the same session."""
        if not self.wants(_NAMES[type(event)]):
            return
        waiting = self._sessions.setdefault(event.session_id, _Waiting())
        waiting.events.append(event)
        if len(waiting.events) > MAX_WAITING:
            waiting.events.popleft()
            waiting.dropped += 1
        if waiting.task is None:
            waiting.task = asyncio.create_task(self._work(event.session_id, waiting))

    def note_call(self, line: AuditLine) -> None:
        """Tells the hooks about a line of the audit. Only those of calls are about calls."""
        if line.event is None and self.wants("tool_called"):
            self.put(
                ToolCalled(
                    session_id=line.session,
                    user=line.user,
                    turn=line.turn,
                    mode=Mode(line.mode),
                    tool=line.tool,
                    arguments=line.args,
                    outcome=line.outcome,
                    duration_ms=line.duration_ms,
                    repeated=line.cache_hit,
                    at_ms=line.ts_ms,
                )
            )

    async def aclose(self, time_left_s: float = DRAIN_S) -> None:
        """Waits for the calls that wait, and gives up the rest."""
        tasks = [each.task for each in self._sessions.values() if each.task is not None]
        if not tasks:
            return
        _, unfinished = await asyncio.wait(tasks, timeout=time_left_s)
        if unfinished:
            left = sum(len(each.events) for each in self._sessions.values())
            log.error("hooks_cut_short", after_s=time_left_s, sessions=len(unfinished), events_left=left)
            for task in unfinished:
                task.cancel()
            await asyncio.wait(unfinished)

    async def _work(self, session_id: str, waiting: _Waiting) -> None:
        try:
            while waiting.events:
                event = waiting.events.popleft()
                for hook in self._hooks[_NAMES[type(event)]]:
                    await self._call(hook, event)
                if waiting.dropped:
                    log.error("hook_events_dropped", session=session_id, dropped=waiting.dropped)
                    waiting.dropped = 0
        finally:
            del self._sessions[session_id]

    async def _call(self, hook: Callable[[Any], Awaitable[None]], event: HookEvent) -> None:
        name = _NAMES[type(event)]
        of = f"{getattr(hook, '__module__', '')}:{getattr(hook, '__qualname__', type(hook).__qualname__)}"
        try:
            async with asyncio.timeout(self._timeout_s) as deadline:
                await hook(event)
        except TimeoutError as error:
            if deadline.expired():
                log.error("hook_timed_out", hook=name, function=of, after_s=self._timeout_s, session=event.session_id)
            else:
                log.error("hook_failed", hook=name, function=of, session=event.session_id, exc_info=error)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Something that the hook waited for was cancelled, and not the hook.
            log.error("hook_failed", hook=name, function=of, session=event.session_id, exc_info=error)
        except Exception as error:
            log.error("hook_failed", hook=name, function=of, session=event.session_id, exc_info=error)


class SessionHooks:
    """Collects what happens in one session, and tells the hooks. It sees the effects of the session's machine."""

    def __init__(self, queue: HookQueue, session_id: str, user: str, now_ms: Callable[[], int]) -> None:
        self._queue = queue
        self._session_id = session_id
        self._user = user
        self._now_ms = now_ms
        self._turns = 0
        self._has_started = False
        self._begin()

    def _begin(self) -> None:
        self._question = self._answer = ""
        self._tools: list[str] = []
        self._is_interrupted = False

    def start(self, conversation_id: str, mode: Mode, *, resumed: bool, is_request: bool) -> None:
        self._has_started = True
        self._queue.put(
            SessionStarted(
                session_id=self._session_id,
                conversation_id=conversation_id,
                user=self._user,
                mode=mode,
                resumed=resumed,
                is_request=is_request,
                at_ms=self._now_ms(),
            )
        )

    def see(self, effect: fx.Effect) -> None:
        match effect:
            case fx.BeginTurn():
                self._begin()
            case fx.StoreUser(text=text):
                self._question = text
            case fx.StoreAnswer(text=text):
                self._answer = text
            case fx.RunTools(calls=calls):
                self._tools += [call.name for call in calls]
            case fx.InterruptModel():
                self._is_interrupted = True

    def end_turn(self, turn: int, conversation_id: str, mode: Mode, metrics: TurnMetrics | None) -> None:
        if self._question or self._answer or self._tools:
            self._turns += 1
            self._queue.put(
                TurnEnded(
                    session_id=self._session_id,
                    conversation_id=conversation_id,
                    user=self._user,
                    turn=turn,
                    mode=mode,
                    question=self._question,
                    answer=self._answer,
                    tools=tuple(self._tools),
                    interrupted=self._is_interrupted,
                    metrics=metrics,
                    at_ms=self._now_ms(),
                )
            )
        self._begin()

    def end(self, conversation_id: str) -> None:
        """The session is over in this process. A session that never started is not told."""
        if not self._has_started:
            return
        self._has_started = False
        self._queue.put(
            SessionEnded(
                session_id=self._session_id,
                conversation_id=conversation_id,
                user=self._user,
                turns=self._turns,
                at_ms=self._now_ms(),
            )
        )

"""Connects the next model of a session: chooses it by the ladder, gives it the context, and tries again."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from antiphon.continuity.connection import ModelConnection
from antiphon.continuity.context import Carried
from antiphon.continuity.counters import ContinuityCounters, ReconnectOutcome
from antiphon.continuity.energy import FALLBACK_LEVEL, EnergyChange, Pool, Rung
from antiphon.continuity.events import NoticeCode, Noticed
from antiphon.continuity.upstream import UpstreamHandle
from antiphon.models.base import FailureKind, ModelError
from antiphon.models.live import CloseKind, LiveContext, LiveEvent, LiveProfile, UpstreamError
from antiphon.telemetry.log import get_logger
from antiphon.tools.spec import Mode

FIRST_DELAY_S: Final = 0.3
MAX_DELAY_S: Final = 15.0
JITTER: Final = 0.1
TRIES: Final = 3
"""How often a lost model is tried before another one is used, if there is one."""
STEADY_S: Final = 5.0
"""A connection that ends sooner was not worth making: the next one waits as after a failed attempt."""
CONTINUE_NOTE: Final = (
    "Continue the conversation. It is already under way, and the user noticed nothing of this new connection: do not "
    "greet, do not introduce yourself, and keep to the language that is spoken."
)
CUT_NOTE: Final = (
    "Your answer to the user's last request was cut off. These words of it were heard: “{said}”. Go on exactly where "
    "they end, without repeating them."
)
NO_CONTEXT: Final = "The conversation could not be read, so no model was connected. Please try again."
RENEWED: Final = "The model was started anew, and knows the conversation."
WAYS: Final = {Mode.VOICE: "by voice", Mode.TEXT: "in text"}

log = get_logger(__name__)


class ContextSource(Protocol):
    """The session, as the source of what a model is connected with."""

    async def plan(self, profile: LiveProfile, *, is_fallback: bool, uses_call_summary: bool) -> Carried:
        """Says what a new upstream session is told of the conversation."""
        ...

    def describe(self, profile: LiveProfile, mode: Mode, carried: Carried, note: str) -> LiveContext:
        """Makes the context. The note is about the connection itself."""
        ...


def explain_exhausted(pool: Pool) -> str:
    """Says that no model is left, and when there will be one."""
    wait_s = pool.again_in_s()
    when = f" Please try again in {wait_s:.0f} s." if wait_s is not None else ""
    return f"No model can answer {WAYS[pool.ladder.mode]} now, since all rate limits are used up.{when}"


def explain_switched_off(pool: Pool) -> str:
    return f"No model answers {WAYS[pool.ladder.mode]} now, since an operator has turned them off."


class Connector:
    def __init__(
        self,
        *,
        pool: Pool,
        source: ContextSource,
        take: Callable[[ModelConnection, LiveEvent], None],
        tell: Callable[[EnergyChange | Noticed], None],
        counters: ContinuityCounters,
        random: Random,
    ) -> None:
        """`take` gets the events of connected models; `tell` gets what changes on the way to them."""
        self.pool = pool
        self.handle: UpstreamHandle | None = None
        """The newest handle that the provider said can be resumed."""
        self.voice: tuple[str | None, float] = (None, 1.0)
        self.rung: Rung | None = None
        """The rung of the model that was connected last, or is being connected."""
        self.was_resumed = False
        """Whether the last connection goes on with an upstream session."""
        self.has_history = False
        """Whether the last model that was connected knows a conversation. Then it must not greet."""
        self._source = source
        self._take = take
        self._tell = tell
        self._counters = counters
        self._random = random
        self._is_fallback = False
        """Whether the next model is of another class than the one before it."""
        self._has_told = False
        """Whether the user was told in this episode that the model is being reconnected."""
        self._failures = 0
        """How many attempts have failed, or led to a connection that was soon lost, since the last that was good."""
        self._opened_s = 0.0
        self._is_outdated = False
        """Whether a turn has ended since the context of the next model was made."""
        self._closing: list[ModelConnection] = []

    async def connect(self, *, is_first: bool, said: Callable[[], str]) -> ModelConnection:
        """Returns a model that is connected. Raises `ModelError` if there is none.

        The first time, a model that cannot be reached is not waited for. `said` returns the words of an answer that
        was cut off.
        """
        if self._failures > 1:
            await self._wait()
        while True:
            rung = self.rung = self.pool.rung
            if rung is None:
                raise ModelError(explain_exhausted(self.pool), rate_limited=True, kind=FailureKind.RATE_LIMITED)
            try:
                connection = await self._try(rung, is_first=is_first, said=said())
            except ModelError as error:
                self._failures += 1
                if not is_first:
                    self._counters.note_reconnect(ReconnectOutcome.FAILED)
                if self.handle is not None and _is_dead_handle(error):
                    self.drop_dead_handle(rung.name)
                elif error.rate_limited:
                    self.lower(rung, error.retry_after_s)
                    if self.pool.rung is not None and self.pool.rung.factory is rung.factory:
                        await self._wait()
                elif (is_first or not error.retryable or self._failures >= TRIES) and self._pass_over(rung, error):
                    pass
                elif is_first or not error.retryable:
                    raise
                else:
                    self._tell_once(rung.name)
                    await self._wait()
                continue
            rung.note_connected()
            if self._is_outdated and connection.profile.keeps_context:
                self.retire(connection)
                continue
            self._opened_s = asyncio.get_running_loop().time()
            self._finish(connection, is_first=is_first)
            return connection

    def note_loss(self) -> None:
        """The connection was lost without a known reason."""
        is_steady = asyncio.get_running_loop().time() - self._opened_s >= STEADY_S
        self._failures = 0 if is_steady else self._failures + 1
        rung = self.rung
        if self._failures >= TRIES and rung is not None:
            self._pass_over(rung, ModelError(f"{rung.name} ends every connection."))

    async def _wait(self) -> None:
        """Waits before the next attempt, longer each time."""
        delay_s = min(MAX_DELAY_S, FIRST_DELAY_S * 2 ** max(0, min(self._failures - 1, 10)))
        await asyncio.sleep(delay_s * self._random.uniform(1 - JITTER, 1 + JITTER))

    def lower(self, rung: Rung, retry_after_s: float | None) -> None:
        """A rate limit of this model was exceeded: the next lower one is used."""
        self._failures = 0
        change = self.pool.note_rate_limit(rung, retry_after_s)
        self.apply(change)
        if change.model not in (None, rung.name):
            text = f"{rung.name} is rate-limited. Switching to {change.model}."
            self._tell(Noticed(NoticeCode.MODEL_SWITCHED, text))

    def apply(self, change: EnergyChange) -> None:
        """Tells a change of energy, and prepares for what the next model needs."""
        mode = change.mode
        self._counters.note_energy_change(mode, change.reason)
        if change.requires_fallback:
            self._is_fallback = True
            self._counters.note_fallback(mode)
        self._tell(change)

    def drop_dead_handle(self, name: str) -> None:
        """The provider does not know the handle any more: a new session is given the context."""
        self.handle = None
        text = f"{name} could not resume its session. The conversation continues in a new one."
        self._tell(Noticed(NoticeCode.COULD_NOT_RESUME, text))

    def note_end_without_model(self) -> None:
        """A turn has ended while no model was connected. No upstream session knows of it: a new one is told."""
        self.handle, self._is_outdated = None, True

    def pass_over(self, error: ModelError) -> bool:
        """Whether there is another model than the one that was connected last, which cannot be used."""
        return self.rung is not None and self._pass_over(self.rung, error)

    def retire(self, connection: ModelConnection) -> None:
        """Closes a connection that is not needed any more."""
        connection.close()
        self._closing = [each for each in self._closing if not each.is_closed]
        self._closing.append(connection)

    async def wait_closed(self) -> None:
        for connection in self._closing:
            await connection.wait_closed()

    async def _try(self, rung: Rung, *, is_first: bool, said: str) -> ModelConnection:
        profile, level = rung.factory.profile, self.pool.level_of(rung)
        is_other_class, handle = self._choose_handle(profile, level)
        note = "" if is_first else "\n\n".join([CONTINUE_NOTE, *([CUT_NOTE.format(said=said)] if said else [])])
        try:
            if handle is not None:
                carried = Carried()
            else:
                uses_call_summary = is_other_class and level > FALLBACK_LEVEL
                is_fallback = self._is_fallback
                carried = await self._source.plan(profile, is_fallback=is_fallback, uses_call_summary=uses_call_summary)
            self._is_outdated = False
            context = self._source.describe(profile, self.pool.ladder.mode, carried, note)
        except Exception as error:
            # The store may be down.
            log.exception("context_failed", model=rung.name)
            raise ModelError(NO_CONTEXT, kind=FailureKind.UNEXPECTED) from error
        connection = ModelConnection(rung.factory, self._take, voice=self.voice)
        try:
            await connection.connect(context, handle)
        except BaseException:
            self.retire(connection)
            raise
        self.was_resumed = handle is not None
        self.has_history = bool(handle or context.history or carried.summary)
        self._is_fallback = False
        return connection

    def _choose_handle(self, profile: LiveProfile, level: int) -> tuple[bool, str | None]:
        """Returns whether there was a handle of another class of models, which is of no use, and the handle to try."""
        handle = self.handle
        if handle is None:
            return False, None
        if (handle.level == FALLBACK_LEVEL) != (level == FALLBACK_LEVEL):
            self.handle = None
            return True, None
        return False, handle.handle if profile.resumes or profile.name == handle.model else None

    def _pass_over(self, rung: Rung, error: ModelError) -> bool:
        """Whether there is another model to use instead of this one, which cannot be connected."""
        self.pool.pass_over(rung)
        other = self.pool.rung
        if other is None or other.factory is rung.factory:
            return False
        self._failures = 0
        is_local = not other.factory.profile.needs_network
        self._is_fallback = self.pool.level_of(other) == FALLBACK_LEVEL
        code = NoticeCode.LOCAL_MODEL if is_local else NoticeCode.MODEL_SWITCHED
        self._tell(Noticed(code, f"{error} For now, {other.name} answers instead."))
        return True

    def _tell_once(self, name: str) -> None:
        if not self._has_told:
            self._has_told = True
            text = f"The connection to {name} was lost. Reconnecting."
            self._tell(Noticed(NoticeCode.RECONNECTING, text))

    def _finish(self, connection: ModelConnection, *, is_first: bool) -> None:
        if not is_first:
            self._counters.note_reconnect(ReconnectOutcome.RESUMED if self.was_resumed else ReconnectOutcome.FRESH)
        if self._has_told:
            self._has_told = False
            self._tell(Noticed(NoticeCode.RECONNECTED, f"{connection.profile.name} is connected again."))


def _is_dead_handle(error: ModelError) -> bool:
    return isinstance(error, UpstreamError) and error.close_kind is CloseKind.DEAD_HANDLE

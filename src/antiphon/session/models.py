"""The models of a session: the one that it talks to, the one that takes over when it is connected, and their energy."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from antiphon.continuity.connecting import ContextSource
from antiphon.continuity.context import ContextPlanner
from antiphon.continuity.counters import ContinuityCounters
from antiphon.continuity.energy import EnergyChange, Ladder, Pool
from antiphon.continuity.model import ContinuousModel, FromModel
from antiphon.continuity.summarizer import ExtractiveSummarizer
from antiphon.continuity.upstream import UpstreamHandle, UpstreamState
from antiphon.models.base import ModelError
from antiphon.models.live import LiveProfile
from antiphon.telemetry.metrics import TurnStats
from antiphon.tools.spec import Mode

NO_MODEL: Final = {
    Mode.TEXT: "This server has no model for text.",
    Mode.VOICE: "Voice is not available on this server. You can go on in text.",
}

Ladders = Mapping[Mode, Ladder]
"""The models of a server, by mode. A mode without a ladder is not offered."""


@dataclass(frozen=True, slots=True)
class SharedModels:
    """What all sessions of a process share."""

    ladders: Ladders
    planner: ContextPlanner = field(default_factory=lambda: ContextPlanner(ExtractiveSummarizer()))
    counters: ContinuityCounters = field(default_factory=ContinuityCounters)
    turns: TurnStats = field(default_factory=TurnStats)
    """How long turns take, and how they end."""
    random: Random = field(default_factory=Random)
    names_of: Callable[[str], Awaitable[Sequence[str]]] | None = None
    """Returns names that a user is likely to say."""


class SessionModels:
    def __init__(
        self,
        shared: SharedModels,
        source: ContextSource,
        post: Callable[[FromModel], None],
        announce: Callable[[EnergyChange], None],
    ) -> None:
        """`source` says what a model is connected with; `post` reaches the mailbox, and `announce` the client."""
        self.connection: ContinuousModel | None = None
        """Made when it is first needed."""
        self.successor: ContinuousModel | None = None
        """A model of the other mode, which takes over once it is open and no turn is under way."""
        self._shared = shared
        self._source = source
        self._post = post
        self._announce = announce
        self._voice: tuple[str | None, float] = (None, 1.0)
        self._pools = {mode: Pool(ladder) for mode, ladder in shared.ladders.items()}
        self._handles: dict[Mode, UpstreamHandle] = {}
        """The newest resumption handle of each mode."""
        self._mode: Mode | None = None
        """The mode of the connection."""
        self._closing: list[ContinuousModel] = []

    def connect(self, mode: Mode) -> ContinuousModel:
        """The connection, which is made if there is none. Raises `ModelError` if the server has no such model."""
        if self.connection is None:
            self.connection, self._mode = self._make(mode), mode
        return self.connection

    def prepare(self, mode: Mode) -> None:
        """Connects a model of another mode beside the one in use. Raises `ModelError` if the server has none."""
        if self.successor is None:
            self.successor = self._make(mode)

    def promote(self, mode: Mode) -> None:
        """The model that was prepared takes over."""
        successor, self.successor = self.successor, None
        self.close()
        self.connection, self._mode = successor, mode

    def set_voice(self, voice: str | None, speed: float) -> None:
        """Applies to this model and to those that come after it."""
        self._voice = (voice, speed)
        for connection in (self.connection, self.successor):
            if connection is not None:
                connection.set_voice(voice, speed)

    # Energy and handles.

    def energy(self) -> Mapping[Mode, int]:
        """The levels of the session."""
        return {mode: pool.level for mode, pool in self._pools.items()}

    def profile_of(self, mode: Mode) -> LiveProfile | None:
        """What the model of this mode can do; None if there is none."""
        if self.connection is not None and self._mode is mode:
            return self.connection.profile
        pool = self._pools.get(mode)
        rung = None if pool is None else pool.rung
        return None if rung is None else rung.factory.profile

    def upstream_state(self) -> UpstreamState:
        """What another process needs to go on with the upstream sessions."""
        self._forget_old_handles()
        handles = dict(self._handles)
        if self.connection is not None and self._mode is not None and self.connection.handle is not None:
            handles[self._mode] = self.connection.handle
        return UpstreamState(handles, self.energy())

    def restore_upstream(self, state: UpstreamState) -> None:
        """Goes on where another process has left. To be called before a model is connected."""
        for mode, pool in self._pools.items():
            # A cool-down that this process knows of is heeded, too.
            pool.level = min(pool.level, state.energy.get(mode, pool.level))
            if mode in state.handles:
                self._handles[mode] = state.handles[mode]

    def begin_anew(self, mode: Mode) -> None:
        """A call or a conversation begins: the best model that is not cooling down is used."""
        pool = self._pools.get(mode)
        change = None if pool is None else pool.reset()
        if change is not None:
            self._note(change)

    def set_level(self, mode: Mode, level: int) -> None:
        """An operator has chosen a level."""
        if self.connection is not None and self._mode is mode:
            self.connection.set_level(level)
        elif mode in self._pools:
            self._note(self._pools[mode].set(level))

    def _note(self, change: EnergyChange) -> None:
        self._shared.counters.note_energy_change(change.mode, change.reason)
        self._announce(change)

    def renew(self) -> None:
        """The upstream session is replaced by a new one with the same context."""
        if self._mode is not None:
            self._handles.pop(self._mode, None)
        if self.connection is not None:
            self.connection.renew()

    def forget_handles(self) -> None:
        """The upstream sessions know a conversation that this session has left."""
        self._handles.clear()

    # The end.

    def close(self) -> None:
        """Gives the model up; the next one is connected when it is needed."""
        self._forget_old_handles()
        connection, self.connection = self.connection, None
        if connection is not None:
            if self._mode is not None and connection.handle is not None:
                self._handles[self._mode] = connection.handle
            self._give_up(connection)

    def drop_successor(self) -> None:
        successor, self.successor = self.successor, None
        if successor is not None:
            self._give_up(successor)

    async def wait_closed(self) -> None:
        """Returns when all connections that were given up are gone."""
        for connection in self._closing:
            await connection.wait_closed()

    def _forget_old_handles(self) -> None:
        """The upstream sessions of the other mode do not know the turns of this one: the next ones are told anew."""
        if self.connection is not None and self.connection.turns:
            self._handles.clear()

    def _make(self, mode: Mode) -> ContinuousModel:
        self._forget_old_handles()
        pool = self._pools.get(mode)
        if pool is None:
            raise ModelError(NO_MODEL[mode], retryable=False)
        if pool.level == 0:
            self.begin_anew(mode)
        return ContinuousModel(
            pool=pool,
            source=self._source,
            post=self._post,
            counters=self._shared.counters,
            random=self._shared.random,
            handle=self._handles.pop(mode, None),
            voice=self._voice,
        )

    def _give_up(self, connection: ContinuousModel) -> None:
        connection.close()
        self._closing = [each for each in self._closing if not each.is_closed]
        self._closing.append(connection)

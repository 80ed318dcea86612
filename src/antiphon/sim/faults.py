"""The faults that are armed, and which of them an event sets off."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from antiphon.sim.actions import Action
from antiphon.sim.script import MAX_FAULTS, Fault, Occasion, ScriptError


@dataclass(slots=True)
class ArmedFault:
    """A fault with what is left of it."""

    id: int
    fault: Fault
    seen: int = 0
    """How often its trigger has occurred."""
    performed: int = 0

    @property
    def is_spent(self) -> bool:
        return self.fault.times is not None and self.performed >= self.fault.times

    def is_for(self, connection: int) -> bool:
        return self.fault.connection is None or self.fault.connection == connection


@dataclass(slots=True)
class FaultBook:
    """All armed faults of a simulator, from its script, its control port and its chaos."""

    chaos: Callable[[int], Iterable[Fault]] | None = None
    """Makes additional faults for each new connection, by its number."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a fault was added; whoever waits for timers takes a new event from here each time."""
    _armed: dict[int, ArmedFault] = field(default_factory=dict)
    _last_id: int = 0

    def add(self, faults: Iterable[Fault]) -> list[int]:
        added = list(faults)
        if len(self._armed) + len(added) > MAX_FAULTS:
            raise ScriptError(f"there are {len(self._armed)} faults already, and at most {MAX_FAULTS} are allowed.")
        ids: list[int] = []
        for fault in added:
            self._last_id += 1
            self._armed[self._last_id] = ArmedFault(self._last_id, fault)
            ids.append(self._last_id)
        self.changed.set()
        self.changed = asyncio.Event()
        return ids

    def remove(self, fault_id: int) -> bool:
        return self._armed.pop(fault_id, None) is not None

    def clear(self) -> None:
        """Removes all faults, and ends the chaos."""
        self._armed.clear()
        self.chaos = None

    def armed(self) -> list[ArmedFault]:
        return list(self._armed.values())

    def connect(self, connection: int) -> list[Action]:
        """Registers a new connection, and returns what its request sets off."""
        if self.chaos is not None:
            self.add(self.chaos(connection))
        return self.take(Occasion.CONNECT, connection)

    def disconnect(self, connection: int) -> None:
        """Forgets the faults that could only happen on this connection, whose number does not come again."""
        gone = [each.id for each in self._armed.values() if each.fault.connection == connection]
        for fault_id in gone:
            del self._armed[fault_id]

    def take(self, occasion: Occasion, connection: int, values: Collection[object] = (None,)) -> list[Action]:
        """Returns the actions that an event sets off. `values` are the values of a trigger that the event fits."""
        actions: list[Action] = []
        for armed in list(self._armed.values()):
            when = armed.fault.when
            if when.occasion is occasion and armed.is_for(connection) and when.value in values:
                actions += self._perform(armed)
        return actions

    def timers(self, connection: int) -> list[tuple[int, float]]:
        """Returns the faults that time sets off, by their ids, with the seconds after the opening."""
        return [
            (armed.id, float(armed.fault.when.value or 0))
            for armed in self._armed.values()
            if armed.fault.when.occasion is Occasion.SECONDS and armed.is_for(connection)
        ]

    def take_timer(self, fault_id: int) -> list[Action]:
        armed = self._armed.get(fault_id)
        return [] if armed is None else self._perform(armed)

    def _perform(self, armed: ArmedFault) -> list[Action]:
        armed.seen += 1
        if armed.seen <= armed.fault.skip:
            return []
        armed.performed += 1
        if armed.is_spent:
            del self._armed[armed.id]
        return list(armed.fault.do)

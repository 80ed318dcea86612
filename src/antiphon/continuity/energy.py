"""Energy: how good a model a session may use, in each mode.

A ladder has a model for each level, the best one at the top. A rate limit lowers the level of the session that met it
by one, and the model of that level cools down, for all sessions of the process. Other failures never cost energy.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from msgspec import Struct

from antiphon.models.live import LiveProfile, ModelFactory
from antiphon.tools.spec import Mode

MAX_LEVELS: Final[Mapping[Mode, int]] = {Mode.VOICE: 3, Mode.TEXT: 2}
FALLBACK_LEVEL: Final = 1
"""The model of this level continues from a summary. It has no use for the handles of other levels."""
COOL_DOWN_S: Final = 60.0
"""How long a model is not used after a rate limit, unless the provider says how long."""
MAX_COOL_DOWN_S: Final = 24 * 3600.0
UNUSABLE_S: Final = 30.0
"""How long a model that could not be connected is passed over, if there is another one."""


class EnergyReason(StrEnum):
    RATE_LIMITED = "rate-limit-exceeded"
    RESET = "session-reset"
    MANUAL = "manual"


class EnergyChange(Struct, frozen=True):
    """The level of a session has changed, in one mode."""

    mode: Mode
    level: int
    previous: int
    max: int
    reason: EnergyReason
    model: str | None
    """None at level 0."""
    resumable: bool
    """Whether the upstream session of the new model can be resumed."""
    requires_fallback: bool
    """Whether the new model continues from a summary."""
    again_in_s: float | None = None
    """When a better model may be used again; None if nothing is known to prevent it."""


def is_resumable(profile: LiveProfile) -> bool:
    """A model that reads the transcript is given its context with every message, which is as good as resuming."""
    return profile.resumes or not profile.keeps_context


@dataclass(eq=False, slots=True)
class Rung:
    """The model of one level, for all sessions of the process."""

    factory: ModelFactory
    monotonic: Callable[[], float]
    _cool_at_s: float = float("-inf")
    _usable_at_s: float = float("-inf")

    @property
    def name(self) -> str:
        return self.factory.profile.name

    def cool_down(self, seconds: float | None) -> None:
        """A rate limit was exceeded. Without `seconds` the provider did not say for how long."""
        wait_s = COOL_DOWN_S if seconds is None else min(max(seconds, 0.0), MAX_COOL_DOWN_S)
        self._cool_at_s = max(self._cool_at_s, self.monotonic() + wait_s)

    def cooling_s(self) -> float:
        """Returns how many seconds are left of the cool-down; 0 if there is none."""
        return max(0.0, self._cool_at_s - self.monotonic())

    def pass_over(self) -> None:
        """It could not be connected, for another reason than a rate limit."""
        self._usable_at_s = self.monotonic() + UNUSABLE_S

    def note_connected(self) -> None:
        self._usable_at_s = float("-inf")

    @property
    def is_usable(self) -> bool:
        return self.monotonic() >= self._usable_at_s


@dataclass(frozen=True, slots=True)
class Ladder:
    """The models of one mode, by level."""

    mode: Mode
    rungs: Mapping[int, Rung]
    """A rung for each level from 1 to the highest."""

    @classmethod
    def of(cls, mode: Mode, factories: Mapping[int, ModelFactory], monotonic: Callable[[], float]) -> "Ladder":
        return cls(mode, {level: Rung(factory, monotonic) for level, factory in factories.items()})

    @classmethod
    def of_one(cls, mode: Mode, factory: ModelFactory, monotonic: Callable[[], float]) -> "Ladder":
        """Makes a ladder whose levels all have the same model."""
        return cls.of(mode, {level + 1: factory for level in range(MAX_LEVELS[mode])}, monotonic)

    @property
    def max_level(self) -> int:
        return max(self.rungs)

    def best_level(self) -> int:
        """Returns the highest level whose model is not cooling down; 0 if all are."""
        return max((level for level, rung in self.rungs.items() if not rung.cooling_s()), default=0)

    def cooling_s(self, above: int) -> float | None:
        """Returns when the first model above a level has cooled down; None if none of them is cooling down."""
        waits = [wait_s for level, rung in self.rungs.items() if level > above and (wait_s := rung.cooling_s())]
        return min(waits, default=None)


@dataclass(slots=True)
class Pool:
    """The energy of one session in one mode."""

    ladder: Ladder
    level: int = field(default=-1)

    def __post_init__(self) -> None:
        if not 0 <= self.level <= self.ladder.max_level:
            self.level = self.ladder.best_level()

    @property
    def rung(self) -> Rung | None:
        """The model to use. One that cannot be reached is passed over, if a lower one can be used; None at level 0."""
        levels = [level for level in range(self.level, 0, -1) if self.ladder.rungs[level].is_usable]
        return None if self.level == 0 else self.ladder.rungs[levels[0] if levels else self.level]

    def level_of(self, rung: Rung) -> int:
        return next(level for level, each in self.ladder.rungs.items() if each is rung)

    def pass_over(self, rung: Rung) -> None:
        """The model of this rung could not be connected. Other rungs may have the same one."""
        for each in self.ladder.rungs.values():
            if each.factory is rung.factory:
                each.pass_over()

    def reset(self) -> EnergyChange | None:
        """A new call or conversation begins: the best model that is not cooling down is used again."""
        best = self.ladder.best_level()
        return None if best == self.level else self._change(best, EnergyReason.RESET)

    def note_rate_limit(self, rung: Rung, retry_after_s: float | None) -> EnergyChange:
        """A rate limit of this model was exceeded: the level falls by exactly one."""
        rung.cool_down(retry_after_s)
        return self._change(max(0, self.level - 1), EnergyReason.RATE_LIMITED)

    def set(self, level: int) -> EnergyChange:
        """An operator has chosen a level."""
        if not 0 <= level <= self.ladder.max_level:
            raise ValueError(f"the level must be from 0 to {self.ladder.max_level}")
        return self._change(level, EnergyReason.MANUAL)

    def again_in_s(self) -> float | None:
        """Returns when a better model may be used again; None if nothing is known to prevent it."""
        return self.ladder.cooling_s(above=self.level)

    def _change(self, level: int, reason: EnergyReason) -> EnergyChange:
        previous, self.level = self.level, level
        profile = self.ladder.rungs[level].factory.profile if level else None
        return EnergyChange(
            mode=self.ladder.mode,
            level=level,
            previous=previous,
            max=self.ladder.max_level,
            reason=reason,
            model=None if profile is None else profile.name,
            resumable=profile is not None and is_resumable(profile),
            requires_fallback=level == FALLBACK_LEVEL and previous > FALLBACK_LEVEL,
            again_in_s=self.again_in_s(),
        )

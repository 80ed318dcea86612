"""Statistics over several turns."""

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import quantiles
from typing import Any, Self

from msgspec import Struct

from antiphon.config import Settings


class Spread(Struct, frozen=True):
    count: int
    p50: float
    p95: float

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Self | None:
        """Returns None if there are fewer than two values. Missing values are ignored."""
        known = [value for value in values if value is not None]
        if len(known) < 2:
            return None
        cuts = quantiles(known, n=20, method="inclusive")
        return cls(len(known), cuts[9], cuts[18])


class Target(Struct, frozen=True):
    what: str
    value: float
    at_most: float

    @property
    def is_met(self) -> bool:
        return self.value <= self.at_most

    def __str__(self) -> str:
        verdict = "[green]met   [/]" if self.is_met else "[red]missed[/]"
        return f"{verdict} {self.what}: {self.value:,.2f}, at most {self.at_most:g} wanted"


def describe_run(settings: Settings, seed: int) -> dict[str, Any]:
    """Describes when, where and how the figures were measured, for the results file."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()},
        "load": os.getloadavg(),
        "seed": seed,
        "speech": settings.speech.model_dump(),
    }


def tell_load() -> str:
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"

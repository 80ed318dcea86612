"""What was found out about a model, for people and for programs."""

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct


class Mark(StrEnum):
    GOOD = "good"
    FAIR = "fair"
    """It works, but could be better. `advice` says how."""
    BAD = "bad"
    UNKNOWN = "unknown"


class Finding(Struct, frozen=True):
    """One thing that was found out."""

    check: str
    mark: Mark
    text: str
    value: float | None = None
    """The figure in the text, if there is one."""


class Report(Struct, frozen=True):
    model: str
    ok: bool
    """Whether it can be used: it answers."""
    findings: tuple[Finding, ...]
    advice: tuple[str, ...] = ()
    """What to set or change, one sentence each."""


Tell = Callable[[str], None]
"""Is told what is done next, since a step may take minutes."""

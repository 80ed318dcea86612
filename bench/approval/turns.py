"""What one turn of a contender came to."""

from collections.abc import Sequence

from msgspec import Struct


class Turn(Struct, frozen=True):
    said: str
    outcomes: Sequence[str]
    """What became of each call: `asked` (the person was asked), `refused` or `ran`."""
    runs: int
    """How often the tool's function ran in this turn, counted by the function itself."""

    def __str__(self) -> str:
        return ", ".join(self.outcomes) or "no call"

"""The figures of one contender with one number of sessions."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from bench.load.figures import Spread

INWARD: Final = "frame in"
"""A frame of the microphone, from the client to the simulator."""
OUTWARD: Final = ("transcript", "text", "audio")
"""Messages from the simulator to the client."""


class LiveFigures(Struct, frozen=True):
    contender: str
    sessions: int
    cpu: float
    """The share of its core that the contender used."""
    bench_cpu: float
    """The same for this process, which has the simulator and our clients. Near 1, the latencies are its own."""
    turns: int
    frames_a_second: float
    """How many frames of each microphone reached the simulator; 50 are made."""
    took_ms: Mapping[str, Spread]
    """From the sending of a message to its arrival, by kind."""
    problems: Sequence[str]

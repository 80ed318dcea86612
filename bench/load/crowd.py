"""Runs many sessions in one process: the clock of their microphones, and their common measurements."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, monotonic_ns
from typing import Final

from bench.load.ledger import Ledger
from bench.load.line import Line
from bench.load.microphone import FRAME_MS

SLOT_MS: Final = 1
SLOTS: Final = FRAME_MS // SLOT_MS
"""Microphones are not synchronised: the sessions are spread over the slots of a frame."""
ARRIVING: Final = 20
"""How many sessions connect at a time."""
PATIENCE_S: Final = 20.0


@dataclass(slots=True)
class Crowd:
    address: tuple[str, int]
    make_line: Callable[[tuple[str, int], Ledger], Line]
    ramp_s: float
    """People are not synchronised either: they begin to speak one after another within this time."""
    late_s: float
    """How long to wait after the window for messages that were caused in it."""
    ledger: Ledger = field(default_factory=Ledger)
    lines: list[Line] = field(default_factory=list)
    sent_late_ms: list[float] = field(default_factory=list)
    """How late the frames of each slot were sent. These delays are the load generator's own."""
    _ramped: bool = False

    async def gather(self, sessions: int) -> None:
        """Connects this many more sessions. When it returns, the server listens to all of them."""
        loop = asyncio.get_running_loop()
        for begin in range(0, sessions, ARRIVING):
            count = min(ARRIVING, sessions - begin)
            arriving = [self.make_line(self.address, self.ledger) for _ in range(count)]
            for line in arriving:
                await loop.create_connection(lambda line=line: line, *self.address)  # type: ignore[misc]
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*(line.listening for line in arriving))
            self.lines += arriving

    async def talk_for(self, seconds: float) -> None:
        """Sends the frames of all sessions in real time, from the time at which each begins."""
        begin_s = monotonic()
        for tick in range(int(seconds * 1000 / SLOT_MS)):
            due_s = begin_s + tick * SLOT_MS / 1000
            if (early_s := due_s - monotonic()) > 0:
                await asyncio.sleep(early_s)
            elif tick % SLOTS == 0:
                # Even when late, read what the server sends.
                await asyncio.sleep(0)
            if self.ledger.covers(int(due_s * 1e9)):
                self.sent_late_ms.append((monotonic() - due_s) * 1000)
            for line in self._speakers(tick):
                line.speak()

    async def talk_measured(self, warm_s: float, seconds: float) -> None:
        """Speaks, and records what is caused after the warm-up."""
        self.ledger.begin_ns = monotonic_ns() + int(warm_s * 1e9)
        self.ledger.end_ns = self.ledger.begin_ns + int(seconds * 1e9)
        await self.talk_for(warm_s + seconds + self.late_s)

    async def talk_once(self) -> None:
        """Speaks until every session has had a turn."""
        give_up_s = monotonic() + PATIENCE_S
        while any(line.turns == 0 for line in self.lines) and monotonic() < give_up_s:
            await self.talk_for(self.ramp_s)

    async def leave(self) -> None:
        for line in self.lines:
            line.leave()
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*(line.gone for line in self.lines))

    def _speakers(self, tick: int) -> Sequence[Line]:
        """Returns the sessions that have a frame to send now."""
        begun = len(self.lines) if self._ramped else int(len(self.lines) * tick * SLOT_MS / 1000 / self.ramp_s) + 1
        self._ramped = begun >= len(self.lines)
        return self.lines[tick % SLOTS : begun : SLOTS]

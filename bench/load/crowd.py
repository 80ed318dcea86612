"""Many sessions at once, from one process: their microphones' clock, and what they measured together."""

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
"""Microphones are not in step: the sessions are spread over the slots of a frame."""
ARRIVING: Final = 20
"""So many connect at a time."""
PATIENCE_S: Final = 20.0


@dataclass(slots=True)
class Crowd:
    address: tuple[str, int]
    make_line: Callable[[tuple[str, int], Ledger], Line]
    ramp_s: float
    """Neither are people in step. They begin to speak one after another in this time, and so all go on."""
    late_s: float
    """So long after the window is still waited for what was caused in it."""
    ledger: Ledger = field(default_factory=Ledger)
    lines: list[Line] = field(default_factory=list)
    sent_late_ms: list[float] = field(default_factory=list)
    """By slot in the window, how late its frames were sent. What is late here is late by our own fault."""
    _ramped: bool = False

    async def gather(self, sessions: int) -> None:
        """Connects as many sessions more. All of them are being listened to when it returns."""
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
        """Everybody speaks, frame by frame in real time, once it is his turn to begin."""
        begin_s = monotonic()
        for tick in range(int(seconds * 1000 / SLOT_MS)):
            due_s = begin_s + tick * SLOT_MS / 1000
            if (early_s := due_s - monotonic()) > 0:
                await asyncio.sleep(early_s)
            elif tick % SLOTS == 0:
                # Who is behind must still read what the server says.
                await asyncio.sleep(0)
            if self.ledger.covers(int(due_s * 1e9)):
                self.sent_late_ms.append((monotonic() - due_s) * 1000)
            for line in self._speakers(tick):
                line.speak()

    async def talk_measured(self, warm_s: float, seconds: float) -> None:
        """Speaks, and notes what is caused after the warm-up."""
        self.ledger.begin_ns = monotonic_ns() + int(warm_s * 1e9)
        self.ledger.end_ns = self.ledger.begin_ns + int(seconds * 1e9)
        await self.talk_for(warm_s + seconds + self.late_s)

    async def talk_once(self) -> None:
        """Until everybody has had a turn."""
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
        """Who has a frame to send now."""
        begun = len(self.lines) if self._ramped else int(len(self.lines) * tick * SLOT_MS / 1000 / self.ramp_s) + 1
        self._ramped = begun >= len(self.lines)
        return self.lines[tick % SLOTS : begun : SLOTS]

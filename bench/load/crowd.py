"""Many sessions at once, from one process: their microphones' clock, and what they measured together."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, monotonic_ns
from typing import Final

from bench.load.call import FRAME_MS, Call, Ledger
from bench.load.model import HEARS_MS, RESTS_MS

SLOT_MS: Final = 1
SLOTS: Final = FRAME_MS // SLOT_MS
"""Microphones are not in step: the sessions are spread over the slots of a frame."""
RAMP_S: Final = (HEARS_MS + RESTS_MS) / 1000
"""Neither are people. They begin to speak one after another, over the length of a turn, and so all go on."""
ARRIVING: Final = 20
"""So many connect at a time."""
PATIENCE_S: Final = 20.0
LATE_S: Final = 1.0
"""So long after the window is still waited for what was caused in it."""


@dataclass(slots=True)
class Crowd:
    address: tuple[str, int]
    ledger: Ledger = field(default_factory=Ledger)
    calls: list[Call] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)
    """By slot in the window, how late its frames were sent. What is late here is late by our own fault."""
    _ramped: bool = False

    async def gather(self, sessions: int) -> None:
        """Connects as many sessions more. All of them are being listened to when it returns."""
        loop = asyncio.get_running_loop()
        for begin in range(0, sessions, ARRIVING):
            arriving = [Call(self.address, self.ledger) for _ in range(begin, min(begin + ARRIVING, sessions))]
            for call in arriving:
                await loop.create_connection(lambda call=call: call, *self.address)  # type: ignore[misc]
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*(call.listening for call in arriving))
            self.calls += arriving

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
            if self.ledger.begin_ns <= int(due_s * 1e9) < self.ledger.end_ns:
                self.late_ms.append((monotonic() - due_s) * 1000)
            for call in self._speakers(tick):
                call.speak()

    async def talk_measured(self, warm_s: float, seconds: float) -> None:
        """Speaks, and notes what is caused after the warm-up."""
        self.ledger.begin_ns = monotonic_ns() + int(warm_s * 1e9)
        self.ledger.end_ns = self.ledger.begin_ns + int(seconds * 1e9)
        await self.talk_for(warm_s + seconds + LATE_S)

    async def talk_once(self) -> None:
        """Until everybody has had a turn."""
        give_up_s = monotonic() + PATIENCE_S
        while any(call.turns == 0 for call in self.calls) and monotonic() < give_up_s:
            await self.talk_for(RAMP_S)

    async def leave(self) -> None:
        for call in self.calls:
            call.leave()
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*(call.gone for call in self.calls))

    def _speakers(self, tick: int) -> Sequence[Call]:
        """Who has a frame to send now."""
        begun = len(self.calls) if self._ramped else int(len(self.calls) * tick * SLOT_MS / 1000 / RAMP_S) + 1
        self._ramped = begun >= len(self.calls)
        return self.calls[tick % SLOTS : begun : SLOTS]

"""An event loop on which waiting takes no time: when nothing is ready, the clock jumps to the next timer."""

import asyncio
import selectors
from typing import Any, Final

ARRIVAL_S: Final = 0.003


class _JumpingSelector(selectors.DefaultSelector):
    """Polls instead of waiting, and advances the loop's clock by the time that it would have waited."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # What was written to a loopback socket may take a moment to arrive, and must arrive before time passes.
        has_sockets = len(self.get_map()) > 1
        ready = super().select(ARRIVAL_S if has_sockets and timeout != 0 else 0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            # Only another thread can wake this loop, so wait for it in real time.
            return super().select(None)
        self.loop.offset_s += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """For tests without threads or child processes: those need the real clock (`real_time`).

    Sockets work if both of their ends are on this loop.
    """

    def __init__(self) -> None:
        self.offset_s = 0.0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return super().time() + self.offset_s


def new_virtual_loop() -> asyncio.AbstractEventLoop:
    return VirtualLoop()


def new_real_loop() -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop()


LOOPS: dict[bool, dict[str, Any]] = {False: {"virtual": new_virtual_loop}, True: {"real": new_real_loop}}

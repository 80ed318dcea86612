"""A virtual clock that stands still while the test computes."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from tests.fakes.virtual_loop import VirtualLoop


class SteadyLoop(VirtualLoop):
    """The same steps take the same times, however busy the machine is. Nothing on it may wait for a thread."""

    def time(self) -> float:
        return self.offset_s


STEADY: Final[Mapping[str, Callable[[], asyncio.AbstractEventLoop]]] = {"steady": SteadyLoop}

"""A bounded cache of answers, with one request for all who ask at the same time."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

from antiphon.clock import Clock

V = TypeVar("V")


class Cache(Generic[V]):
    """Keeps answers for a while. A caller that stops waiting does not stop the request: a voice turn may be over before
    the answer comes, and then the next one finds it here."""

    def __init__(self, clock: Clock, *, max_size: int, size_of: Callable[[V], int] = lambda value: 1) -> None:
        self._clock = clock
        self._max_size = max_size
        self._size_of = size_of
        self._size = 0
        self._known: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()
        """When each value was loaded, and the value. The least recently used comes first."""
        self._loading: dict[Hashable, asyncio.Task[V]] = {}

    async def get(self, key: Hashable, max_age_s: float, load: Callable[[], Awaitable[V]]) -> V:
        """Returns a value of at most this age, or loads it. An error of `load` is raised, and not kept."""
        if (found := self._known.get(key)) is not None and self._clock.monotonic() - found[0] < max_age_s:
            self._known.move_to_end(key)
            return found[1]
        task = self._loading.get(key)
        if task is None:
            task = self._loading[key] = asyncio.create_task(self._load(key, load))
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(task)

    def drop(self, key: Hashable) -> None:
        """Forgets a value that is known to have changed."""
        if (found := self._known.pop(key, None)) is not None:
            self._size -= self._size_of(found[1])

    async def aclose(self) -> None:
        loading = list(self._loading.values())
        for task in loading:
            task.cancel()
        await asyncio.gather(*loading, return_exceptions=True)

    async def _load(self, key: Hashable, load: Callable[[], Awaitable[V]]) -> V:
        value = await load()
        self.drop(key)
        self._known[key] = (self._clock.monotonic(), value)
        self._size += self._size_of(value)
        while self._size > self._max_size and self._known:
            self.drop(next(iter(self._known)))
        return value

    def _forget(self, key: Hashable, done: "asyncio.Task[Any]") -> None:
        self._loading.pop(key, None)
        if not done.cancelled():
            done.exception()  # Nobody may be waiting for it any more.

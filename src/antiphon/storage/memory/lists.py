"""Lists, and what tools keep for themselves, in memory."""

from collections.abc import Collection, Sequence

from antiphon.storage.lists import ListFull, ListItem
from antiphon.storage.tool_values import ToolStorageFull, ToolValue


class MemoryListStore:
    def __init__(self) -> None:
        self._items: dict[tuple[str, str, str], ListItem] = {}
        """The items by user, list and key, in the order in which they were added."""

    async def add(self, items: Sequence[ListItem], *, max_items: int, max_total: int) -> Sequence[ListItem]:
        new = {_place(item): item for item in items if _place(item) not in self._items}
        if new:
            user, list = items[0].user, items[0].list
            if len(self._of(user, list)) + len(new) > max_items or len(self._of(user)) + len(new) > max_total:
                raise ListFull(f"The list {list} of {user} has no room for {len(new)} more.")
        self._items |= new
        return [*new.values()]

    async def items(self, user: str, list: str | None = None) -> Sequence[ListItem]:
        return self._of(user, list)

    async def remove(self, user: str, list: str, keys: Collection[str]) -> Sequence[ListItem]:
        removed = [item for item in self._of(user, list) if item.key in keys]
        for item in removed:
            del self._items[_place(item)]
        return removed

    async def clear(self, user: str, list: str | None = None) -> int:
        cleared = self._of(user, list)
        for item in cleared:
            del self._items[_place(item)]
        return len(cleared)

    def _of(self, user: str, list: str | None = None) -> list[ListItem]:
        return [item for item in self._items.values() if item.user == user and list in (None, item.list)]


def _place(item: ListItem) -> tuple[str, str, str]:
    return item.user, item.list, item.key


class MemoryToolValueStore:
    def __init__(self) -> None:
        self._values: dict[tuple[str, str, str], ToolValue] = {}
        """The values by tool, user and key."""

    async def get(self, tool: str, user: str, key: str) -> bytes | None:
        found = self._values.get((tool, user, key))
        return None if found is None else found.value

    async def put(self, value: ToolValue, *, max_keys: int) -> None:
        place = value.tool, value.user, value.key
        if place not in self._values and len(await self.keys(value.tool, value.user)) >= max_keys:
            raise ToolStorageFull(f"{value.tool} already stores {max_keys} keys for {value.user}.")
        self._values[place] = value

    async def delete(self, tool: str, user: str, key: str) -> bool:
        return self._values.pop((tool, user, key), None) is not None

    async def keys(self, tool: str, user: str, prefix: str = "") -> Sequence[str]:
        return sorted(
            value.key
            for value in self._values.values()
            if (value.tool, value.user) == (tool, user) and value.key.startswith(prefix)
        )

    async def list(self, user: str) -> Sequence[ToolValue]:
        return [value for place, value in sorted(self._values.items()) if value.user == user]

    async def clear(self, user: str) -> int:
        cleared = await self.list(user)
        for value in cleared:
            del self._values[value.tool, value.user, value.key]
        return len(cleared)

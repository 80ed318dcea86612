"""Lists, and what tools keep for themselves."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from msgspec.structs import asdict
from sqlalchemy import Connection, bindparam, delete, func, select

from antiphon.storage.lists import ListFull, ListItem
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.locks import lock
from antiphon.storage.sql.tables import list_items, tool_values
from antiphon.storage.tool_values import ToolStorageFull, ToolValue

_ITEM: Final = [list_items.c[name] for name in ListItem.__struct_fields__]
_OF_OWNER: Final = list_items.c.user == bindparam("owner")
_OF_LIST: Final = list_items.c.list == bindparam("name")
_AMONG_KEYS: Final = list_items.c.key.in_(bindparam("keys", expanding=True))

_ALL_ITEMS: Final = select(*_ITEM).where(_OF_OWNER).order_by(list_items.c.seq)
_ITEMS: Final = _ALL_ITEMS.where(_OF_LIST)
_KNOWN_KEYS: Final = select(list_items.c.key).where(_OF_OWNER, _OF_LIST, _AMONG_KEYS)
_COUNT_ALL: Final = select(func.count()).select_from(list_items).where(_OF_OWNER)
_COUNT: Final = _COUNT_ALL.where(_OF_LIST)
_REMOVE: Final = delete(list_items).where(_OF_OWNER, _OF_LIST, _AMONG_KEYS).returning(list_items.c.seq, *_ITEM)
_CLEAR_ALL: Final = delete(list_items).where(_OF_OWNER)
_CLEAR: Final = _CLEAR_ALL.where(_OF_LIST)

_OF_TOOL: Final = (tool_values.c.tool == bindparam("of_tool"), tool_values.c.user == bindparam("owner"))
_OF_KEY: Final = (*_OF_TOOL, tool_values.c.key == bindparam("of_key"))
_VALUE: Final = select(tool_values.c.value).where(*_OF_KEY)
_HAS_KEY: Final = select(tool_values.c.key).where(*_OF_KEY)
_KEYS: Final = select(tool_values.c.key).where(*_OF_TOOL)
_COUNT_KEYS: Final = select(func.count()).select_from(tool_values).where(*_OF_TOOL)
_DELETE: Final = delete(tool_values).where(*_OF_KEY)
_OF_USER: Final = tool_values.c.user == bindparam("owner")
_VALUES: Final = select(tool_values).where(_OF_USER)
_CLEAR_VALUES: Final = delete(tool_values).where(_OF_USER)


class SqlListStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._insert = connections.insert(list_items)

    async def add(self, items: Sequence[ListItem], *, max_items: int, max_total: int) -> Sequence[ListItem]:
        if not items:
            return []
        distinct = {item.key: item for item in items}
        place = {"owner": items[0].user, "name": items[0].list}

        def add(connection: Connection) -> list[ListItem]:
            lock(connection, "list_items", place["owner"])
            known = set(connection.scalars(_KNOWN_KEYS, place | {"keys": list(distinct)}))
            new = [item for key, item in distinct.items() if key not in known]
            if not new:
                return []
            count = connection.scalar(_COUNT, place) or 0
            total = connection.scalar(_COUNT_ALL, {"owner": place["owner"]}) or 0
            if count + len(new) > max_items or total + len(new) > max_total:
                raise ListFull(f"The list {place['name']} of {place['owner']} has no room for {len(new)} more.")
            connection.execute(self._insert, [asdict(item) for item in new])
            return new

        return await self._connections.in_transaction(add)

    async def items(self, user: str, list: str | None = None) -> Sequence[ListItem]:
        statement, params = _of(user, list, _ALL_ITEMS, _ITEMS)
        return [ListItem(*row) for row in await self._connections.fetch(statement, params)]

    async def remove(self, user: str, list: str, keys: Collection[str]) -> Sequence[ListItem]:
        params = {"owner": user, "name": list, "keys": [*keys]}
        rows = await self._connections.fetch(_REMOVE, params)
        return [ListItem(*row[1:]) for row in sorted(rows, key=lambda row: int(row.seq))]

    async def clear(self, user: str, list: str | None = None) -> int:
        return await self._connections.change(*_of(user, list, _CLEAR_ALL, _CLEAR))


def _of(user: str, name: str | None, in_all: Any, in_one: Any) -> tuple[Any, dict[str, str]]:
    """Returns the statement for all lists or for one of them, with its parameters."""
    return (in_all, {"owner": user}) if name is None else (in_one, {"owner": user, "name": name})


class SqlToolValueStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        insertion = connections.insert(tool_values)
        new = insertion.excluded
        self._put = insertion.on_conflict_do_update(
            index_elements=[tool_values.c.tool, tool_values.c.user, tool_values.c.key],
            set_={tool_values.c.value: new.value, tool_values.c.updated_ms: new.updated_ms},
        )

    async def get(self, tool: str, user: str, key: str) -> bytes | None:
        rows = await self._connections.fetch(_VALUE, _key(tool, user, key))
        return rows[0].value if rows else None

    async def put(self, value: ToolValue, *, max_keys: int) -> None:
        of_key = _key(value.tool, value.user, value.key)

        def put(connection: Connection) -> None:
            lock(connection, "tool_values", value.tool, value.user)
            if connection.scalar(_HAS_KEY, of_key) is None:
                count = connection.scalar(_COUNT_KEYS, {"of_tool": value.tool, "owner": value.user}) or 0
                if count >= max_keys:
                    raise ToolStorageFull(f"{value.tool} already stores {max_keys} keys for {value.user}.")
            connection.execute(self._put, asdict(value))

        await self._connections.in_transaction(put)

    async def delete(self, tool: str, user: str, key: str) -> bool:
        return bool(await self._connections.change(_DELETE, _key(tool, user, key)))

    async def keys(self, tool: str, user: str, prefix: str = "") -> Sequence[str]:
        rows = await self._connections.fetch(_KEYS, {"of_tool": tool, "owner": user})
        # Not LIKE, which ignores case in SQLite. Nor ORDER BY, which follows the language of the database in Postgres.
        return sorted(row.key for row in rows if row.key.startswith(prefix))

    async def list(self, user: str) -> Sequence[ToolValue]:
        rows = await self._connections.fetch(_VALUES, {"owner": user})
        return sorted((ToolValue(*row) for row in rows), key=lambda value: (value.tool, value.key))

    async def clear(self, user: str) -> int:
        return await self._connections.change(_CLEAR_VALUES, {"owner": user})


def _key(tool: str, user: str, key: str) -> dict[str, str]:
    return {"of_tool": tool, "owner": user, "of_key": key}

"""What was used of the limits, on the clock of the database."""

from collections.abc import Mapping
from typing import Final

from msgspec import json
from sqlalchemy import BigInteger, Connection, bindparam, case, delete, select, update

from antiphon.storage.sql.clock import now_ms_of
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.tables import tool_uses, used_quotas

_OF_TOOL: Final = (tool_uses.c.user == bindparam("caller"), tool_uses.c.tool == bindparam("called"))
_LOCK: Final = select(tool_uses.c.times).where(*_OF_TOOL).with_for_update()
_COUNT: Final = update(tool_uses).where(*_OF_TOOL).values(times=bindparam("made"), until_ms=bindparam("last_ms"))


class SqlLimitStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        now_ms = now_ms_of(connections.dialect)
        self._now = select(now_ms)
        self._begin = connections.insert(tool_uses).on_conflict_do_nothing()
        added_ms = bindparam("added_ms", type_=BigInteger)
        insertion = connections.insert(used_quotas)
        full_at_ms = used_quotas.c.full_at_ms
        self._use = (
            insertion.values(key=bindparam("bucket"), full_at_ms=now_ms + added_ms)
            .on_conflict_do_update(
                index_elements=[used_quotas.c.key],
                set_={"full_at_ms": case((full_at_ms > now_ms, full_at_ms), else_=now_ms) + added_ms},
            )
            .returning(full_at_ms - now_ms)
        )
        self._sweep = (
            delete(used_quotas).where(full_at_ms <= now_ms),
            delete(tool_uses).where(tool_uses.c.until_ms <= now_ms),
        )

    async def admit(self, user: str, tool: str, *, calls: int, window_s: float) -> float:
        keys, window_ms = {"caller": user, "called": tool}, round(window_s * 1000)

        def write(connection: Connection) -> float:
            connection.execute(self._begin, {"user": user, "tool": tool, "times": b"[]", "until_ms": 0})
            # Another process that counts calls of this tool by this user waits here.
            times = json.decode(connection.execute(_LOCK, keys).scalar_one(), type=list[int])
            now_ms: int = connection.execute(self._now).scalar_one()
            made = [at_ms for at_ms in times if at_ms > now_ms - window_ms]
            if len(made) >= calls:
                return (made[-calls] + window_ms - now_ms) / 1000
            made.append(now_ms)
            connection.execute(_COUNT, keys | {"made": json.encode(made), "last_ms": now_ms + window_ms})
            return 0.0

        return await self._connections.in_transaction(write)

    async def use(self, uses_s: Mapping[str, float]) -> Mapping[str, float]:
        def write(connection: Connection) -> dict[str, float]:
            left_s = {}
            # In one order, so that two processes do not wait for each other.
            for key in sorted(uses_s):
                keys = {"bucket": key, "added_ms": int(uses_s[key] * 1000)}
                left_s[key] = connection.execute(self._use, keys).scalar_one() / 1000
            return left_s

        return await self._connections.in_transaction(write)

    async def sweep(self) -> int:
        return sum([await self._connections.change(statement, {}) for statement in self._sweep])

"""The pins of the tools of MCP servers."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Text, bindparam, or_, select, update

from antiphon.storage.mcp_pins import McpPin
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.tables import mcp_pins

_OF_SERVER: Final = or_(bindparam("of_server", type_=Text).is_(None), mcp_pins.c.server == bindparam("of_server"))
_OF_TOOL: Final = or_(bindparam("of_tool", type_=Text).is_(None), mcp_pins.c.tool == bindparam("of_tool"))

_LIST: Final = select(mcp_pins).where(_OF_SERVER).order_by(mcp_pins.c.server, mcp_pins.c.tool)
_MISS: Final = update(mcp_pins).where(_OF_SERVER, _OF_TOOL).values(is_offered=False)
_APPROVE: Final = (
    update(mcp_pins)
    .where(_OF_SERVER, _OF_TOOL, mcp_pins.c.digest != mcp_pins.c.seen_digest)
    .values(digest=mcp_pins.c.seen_digest, definition=mcp_pins.c.seen_definition)
    .returning(mcp_pins.c.tool)
)


class SqlMcpPinStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        insertion = connections.insert(mcp_pins)
        new = insertion.excluded
        self._see = insertion.on_conflict_do_update(
            index_elements=[mcp_pins.c.server, mcp_pins.c.tool],
            set_={
                mcp_pins.c.seen_digest: new.seen_digest,
                mcp_pins.c.seen_definition: new.seen_definition,
                mcp_pins.c.is_offered: new.is_offered,
            },
        ).returning(*mcp_pins.c)

    async def list(self, server: str | None = None) -> Sequence[McpPin]:
        return [McpPin(*row) for row in await self._connections.fetch(_LIST, {"of_server": server})]

    async def see(self, server: str, tool: str, digest: str, definition: bytes, now_ms: int) -> McpPin:
        row = {
            "server": server,
            "tool": tool,
            "digest": digest,
            "definition": definition,
            "seen_digest": digest,
            "seen_definition": definition,
            "is_offered": True,
            "first_seen_ms": now_ms,
        }
        [pin] = await self._connections.fetch(self._see, row)
        return McpPin(*pin)

    async def miss(self, server: str, tool: str) -> None:
        await self._connections.change(_MISS, {"of_server": server, "of_tool": tool})

    async def approve(self, server: str, tool: str | None = None) -> Sequence[str]:
        rows = await self._connections.fetch(_APPROVE, {"of_server": server, "of_tool": tool})
        return sorted(row.tool for row in rows)

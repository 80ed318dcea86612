"""The pins of the tools of MCP servers, in memory."""

from collections.abc import Sequence

from msgspec.structs import replace

from antiphon.storage.mcp_pins import McpPin


class MemoryMcpPinStore:
    def __init__(self) -> None:
        self._pins: dict[tuple[str, str], McpPin] = {}

    async def list(self, server: str | None = None) -> Sequence[McpPin]:
        return [pin for key, pin in sorted(self._pins.items()) if server in (None, key[0])]

    async def see(self, server: str, tool: str, digest: str, definition: bytes, now_ms: int) -> McpPin:
        first = McpPin(server, tool, digest, definition, digest, definition, True, now_ms)
        known = self._pins.get((server, tool), first)
        pin = replace(known, seen_digest=digest, seen_definition=definition, is_offered=True)
        self._pins[server, tool] = pin
        return pin

    async def miss(self, server: str, tool: str) -> None:
        if (server, tool) in self._pins:
            self._pins[server, tool] = replace(self._pins[server, tool], is_offered=False)

    async def approve(self, server: str, tool: str | None = None) -> Sequence[str]:
        waiting = [pin for pin in await self.list(server) if pin.is_quarantined and tool in (None, pin.tool)]
        for pin in waiting:
            self._pins[server, pin.tool] = replace(pin, digest=pin.seen_digest, definition=pin.seen_definition)
        return [pin.tool for pin in waiting]

"""The interface of the store of pins: the tools of MCP servers as they were first seen, or as the operator approved
them."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class McpPin(Struct, frozen=True):
    server: str
    """The name of the server in the settings."""
    tool: str
    """The server's name for the tool."""
    digest: str
    """The hash of the approved definition."""
    definition: bytes
    """The approved definition, as JSON."""
    seen_digest: str
    """The hash of the definition that the server offered last. If it differs, the tool is quarantined."""
    seen_definition: bytes
    is_offered: bool
    """Whether the server listed the tool when it was last asked."""
    first_seen_ms: int

    @property
    def is_quarantined(self) -> bool:
        return self.digest != self.seen_digest


class McpPinStore(Protocol):
    async def list(self, server: str | None = None) -> Sequence[McpPin]:
        """Returns the pins of a server, or of all servers, ordered by server and tool."""
        ...

    async def see(self, server: str, tool: str, digest: str, definition: bytes, now_ms: int) -> McpPin:
        """Notes what a server offers, and returns the pin. What is seen for the first time is approved by that."""
        ...

    async def miss(self, server: str, tool: str) -> None:
        """Notes that a server no longer lists a tool. Its pin stays, so that it cannot come back as something else."""
        ...

    async def approve(self, server: str, tool: str | None = None) -> Sequence[str]:
        """Approves what was last seen of a tool, or of all tools of a server. Returns those that were quarantined."""
        ...

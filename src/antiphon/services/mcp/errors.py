"""What can go wrong with an MCP server, for the operator."""

from antiphon.errors import AntiphonError


class McpServerError(AntiphonError):
    """A server cannot be used now. The message says why, and what to do."""

    code = "mcp_server"


class McpMissing(AntiphonError):
    """MCP servers are configured, and the package for them is not installed."""

    code = "mcp_missing"

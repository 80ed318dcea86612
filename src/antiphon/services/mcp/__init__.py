"""Tools of other MCP servers: connected in the background, pinned by their content, and run through the gate."""

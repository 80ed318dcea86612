"""The house's doors: HTTP and WebSocket."""

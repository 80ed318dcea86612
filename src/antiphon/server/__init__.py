"""The HTTP and WebSocket server."""

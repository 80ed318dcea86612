"""The brains: what a session talks to, whatever is behind it."""

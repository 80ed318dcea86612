"""The system prompt: its parts, and the composer."""

"""Parses and phrases times, places and numbers. Several tools share this code; it has no side effects."""

"""Checks of a tool's directory. All of them run, and everything they find is reported."""

"""Secrets by name, from the environment."""

from typing import Protocol


class Secrets(Protocol):
    """The secrets that the tool's schema names in `"secrets"`."""

    def get(self, name: str) -> str:
        """Returns the value of the environment variable.

        Raises `ToolError` PERMANENT if it is not set, and `PermissionError` if the schema does not name it. A value is
        replaced by *** wherever the tool's results, messages, audit lines and the log would show it.
        """
        ...

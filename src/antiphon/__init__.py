"""Antiphon: a self-hosted voice-and-text agent server."""

from typing import Final

__version__: Final = "0.1.0"

"""What another process needs to go on with the upstream sessions of a session."""

from collections.abc import Mapping

from msgspec import Struct


class UpstreamHandle(Struct, frozen=True):
    """The newest handle of an upstream session that can be resumed."""

    handle: str
    level: int
    """The energy level of the model that gave it."""
    model: str
    """The name of that model, which alone can use it."""


class UpstreamState(Struct, frozen=True):
    """The upstream sessions and the energy of a session, by mode."""

    handles: Mapping[str, UpstreamHandle] = {}
    energy: Mapping[str, int] = {}

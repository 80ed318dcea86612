"""What another process needs to go on with the upstream sessions of a session."""

from collections.abc import Mapping

from msgspec import Struct

from antiphon.tools.spec import Mode


class UpstreamHandle(Struct, frozen=True):
    """The newest handle of an upstream session that can be resumed."""

    handle: str
    level: int
    """The energy level of the model that gave it."""
    model: str
    """The name of that model."""


class UpstreamState(Struct, frozen=True):
    """The upstream sessions and the energy of a session, by mode."""

    handles: Mapping[Mode, UpstreamHandle] = {}
    energy: Mapping[Mode, int] = {}

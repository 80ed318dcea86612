"""The devices of a Home Assistant."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Protocol

from msgspec import Struct

GUARDED_DOMAINS: Final = frozenset(
    {
        "lock",
        "alarm_control_panel",
        "script",
        "scene",
        "automation",
        "group",
        "button",
        "input_button",
        "siren",
        "valve",
    }
)
"""What opens, locks or alarms a house; and what may do so behind a name, since nobody can see what a script moves."""
GUARDED_COVERS: Final = frozenset({"garage", "gate", "door", "window"})
"""The classes of covers that let people in."""
GUARDED_WORDS: Final = frozenset(
    [
        "lock",
        "locks",
        "door",
        "doors",
        "gate",
        "gates",
        "garage",
        "alarm",
        "alarms",
        "security",
        "siren",
        "safe",
        "entrance",
        "script",
        "scene",
        "automation",
    ]
)
_PLAIN_DOMAINS: Final = frozenset(
    {"light", "climate", "media_player", "fan", "humidifier", "vacuum", "number", "input_number"}
)
"""What is harmless whatever it is called: the garage light opens no garage."""


class Action(StrEnum):
    ON = "on"
    OFF = "off"
    TOGGLE = "toggle"
    OPEN = "open"
    CLOSE = "close"
    STOP = "stop"
    LOCK = "lock"
    UNLOCK = "unlock"
    ARM = "arm"
    DISARM = "disarm"
    DIM = "dim"
    SET = "set"


class Device(Struct, frozen=True):
    """An entity of Home Assistant."""

    id: str
    """The entity id, such as "light.kitchen"."""
    name: str
    area: str
    """The room, or empty."""
    state: str
    attributes: Mapping[str, Any]
    moves_guarded: bool = False
    """Whether it is a group with a guarded device in it."""

    @property
    def domain(self) -> str:
        return self.id.partition(".")[0]

    @property
    def device_class(self) -> str:
        return str(self.attributes.get("device_class") or "")

    @property
    def is_connected(self) -> bool:
        return self.state != "unavailable"

    @property
    def members(self) -> frozenset[str]:
        """The ids of the devices that it moves if it is a group, such as "all covers"."""
        ids = self.attributes.get("entity_id")
        return frozenset(map(str, ids)) if isinstance(ids, list | tuple) else frozenset()

    @property
    def is_guarded(self) -> bool:
        """Whether a person must approve every change of it."""
        if (
            self.moves_guarded
            or self.domain in GUARDED_DOMAINS
            or (self.domain == "cover" and self.device_class in GUARDED_COVERS)
        ):
            return True
        if self.domain in _PLAIN_DOMAINS:
            return False
        words = re.findall(r"[a-z]+", f"{self.name} {self.id.partition('.')[2]}".casefold())
        return not GUARDED_WORDS.isdisjoint(words)


class Home(Protocol):
    """The devices of a Home Assistant. All methods raise `ToolError`."""

    async def look(
        self, entity: str | None, area: str | None, *, domains: frozenset[str] = frozenset()
    ) -> list[Device]:
        """Finds the devices that the words mean: one by its name, or all of a kind ("lights") or of an area.

        `domains` limits what can be meant. Raises VALIDATION with the candidates if several devices could be meant,
        and NOT_FOUND if none could. The states are at most two seconds old.
        """
        ...

    async def targets(self, action: Action, entity: str | None, area: str | None) -> list[Device]:
        """Finds the devices to which an action can be applied, as `look` does. If the words mean guarded devices among
        others, such as everything in a room, the guarded ones are left out."""
        ...

    async def act(self, devices: Sequence[Device], action: Action, value: float | None) -> None:
        """Makes the change and returns when Home Assistant has confirmed it.

        Raises VALIDATION if a device cannot do it, or not with this value, and TRANSIENT if it is not connected; then
        nothing is changed.
        """
        ...

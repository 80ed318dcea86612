"""Which service of Home Assistant does what to which kind of device. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from antiphon.tools.capabilities.home import Action, Device
from antiphon.tools.errors import ErrorType, ToolError

DIMMED_PERCENT: Final = 30
"""How bright a light is after "dim the light"."""

_SWITCHED: Final = (
    "light",
    "switch",
    "fan",
    "input_boolean",
    "media_player",
    "climate",
    "humidifier",
    "siren",
    "group",
    "script",
    "automation",
    "remote",
    "water_heater",
)
_ON_OFF: Final = dict.fromkeys(_SWITCHED, ("turn_on", "turn_off", "toggle"))
_SERVICES: Final[Mapping[Action, Mapping[str, str]]] = {
    Action.ON: {
        **{domain: on for domain, (on, _, _) in _ON_OFF.items()},
        "group": "turn_on",
        "scene": "turn_on",
        "vacuum": "start",
        "button": "press",
        "input_button": "press",
    },
    Action.OFF: {**{domain: off for domain, (_, off, _) in _ON_OFF.items()}, "vacuum": "return_to_base"},
    Action.TOGGLE: {
        **{domain: toggle for domain, (_, _, toggle) in _ON_OFF.items() if domain not in ("water_heater",)},
        "cover": "toggle",
    },
    Action.OPEN: {"cover": "open_cover", "valve": "open_valve"},
    Action.CLOSE: {"cover": "close_cover", "valve": "close_valve"},
    Action.STOP: {"cover": "stop_cover", "valve": "stop_valve", "media_player": "media_stop", "vacuum": "stop"},
    Action.LOCK: {"lock": "lock"},
    Action.UNLOCK: {"lock": "unlock"},
    Action.ARM: {"alarm_control_panel": "alarm_arm_away"},
    Action.DISARM: {"alarm_control_panel": "alarm_disarm"},
    Action.DIM: {"light": "turn_on"},
    Action.SET: {
        "light": "turn_on",
        "climate": "set_temperature",
        "water_heater": "set_temperature",
        "cover": "set_cover_position",
        "valve": "set_valve_position",
        "fan": "set_percentage",
        "humidifier": "set_humidity",
        "media_player": "volume_set",
        "number": "set_value",
        "input_number": "set_value",
    },
}
_PERCENT: Final = {
    "light": "brightness_pct",
    "cover": "position",
    "valve": "position",
    "fan": "percentage",
    "humidifier": "humidity",
    "media_player": "volume_level",
}
_DOMAIN_OF: Final = {"group": "homeassistant"}
"""Domains whose services belong to another one."""


def domains_for(action: Action) -> frozenset[str]:
    """Returns the domains of the devices that can be asked for this."""
    return frozenset(_SERVICES[action])


def plan(device: Device, action: Action, value: float | None) -> tuple[str, str, Mapping[str, Any]]:
    """Returns the domain and the name of a service, and its data without the device. Raises `ToolError` VALIDATION."""
    service = _SERVICES[action].get(device.domain)
    if service is None:
        raise _refused(f"{device.name} can't do that.", f"It is a {device.domain}.")
    data: dict[str, Any] = {}
    if action is Action.DIM or (action is Action.SET and device.domain == "light"):
        value = DIMMED_PERCENT if value is None and action is Action.DIM else value
        data = {"brightness_pct": _percent(device, value)}
    elif action is Action.SET and device.domain in _PERCENT:
        percent = _percent(device, value)
        data = {_PERCENT[device.domain]: percent / 100 if device.domain == "media_player" else percent}
    elif action is Action.SET:
        low, high = _limits(device)
        if value is None:
            raise _refused(f"What should {device.name} be set to?", "Give a value.")
        if not low <= value <= high:
            raise _refused(
                f"{device.name} can only be set from {low:g} to {high:g}.", "Choose a value within these limits."
            )
        data = {"temperature" if service == "set_temperature" else "value": value}
    return _DOMAIN_OF.get(device.domain, device.domain), service, data


def _percent(device: Device, value: float | None) -> int:
    if value is None:
        raise _refused(f"To how many percent should {device.name} be set?", "Give a value from 0 to 100.")
    if not 0 <= value <= 100:
        raise _refused(f"{device.name} can only be set from 0 to 100 percent.", "Give a value from 0 to 100.")
    return round(value)


def _limits(device: Device) -> tuple[float, float]:
    """Returns the limits that the device states for its value."""
    names = ("min_temp", "max_temp") if device.domain in ("climate", "water_heater") else ("min", "max")
    low, high = (device.attributes.get(name) for name in names)
    return (
        float(low) if isinstance(low, int | float) else float("-inf"),
        float(high) if isinstance(high, int | float) else float("inf"),
    )


def _refused(message: str, suggestion: str) -> ToolError:
    return ToolError(ErrorType.VALIDATION, message, suggestion=suggestion)

"""Puts the states of Home Assistant into words."""

from typing import Any, Final, TypeGuard

from antiphon.tools.capabilities.home import Device

_OPENINGS: Final = frozenset({"door", "window", "garage_door", "opening"})
_OF_SENSORS: Final = {
    "lock": ("unlocked", "locked"),
    "motion": ("detecting motion", "detecting no motion"),
    "occupancy": ("occupied", "empty"),
    "presence": ("at home", "away"),
    "moisture": ("wet", "dry"),
    "smoke": ("detecting smoke", "detecting no smoke"),
    "gas": ("detecting gas", "detecting no gas"),
    "battery": ("low", "fine"),
    "problem": ("reporting a problem", "fine"),
    "connectivity": ("connected", "disconnected"),
    "plug": ("plugged in", "unplugged"),
    **dict.fromkeys(_OPENINGS, ("open", "closed")),
}
"""What a binary sensor of a class means by on and off."""
_WORDS: Final = {
    "unavailable": "not responding",
    "unknown": "in an unknown state",
    "home": "at home",
    "not_home": "away",
    "armed_away": "armed",
    "armed_home": "armed for when you are at home",
    "armed_night": "armed for the night",
    "heat_cool": "on automatic",
}


def state_of(device: Device) -> str:
    """Returns the state as it is said: "open" for a door sensor that is on."""
    if device.domain == "binary_sensor" and device.state in ("on", "off"):
        on, off = _OF_SENSORS.get(device.device_class, ("on", "off"))
        return on if device.state == "on" else off
    return _WORDS.get(device.state, device.state.replace("_", " "))


def details_of(device: Device) -> dict[str, Any]:
    """Returns the numbers that belong to the state."""
    attributes = device.attributes
    found: dict[str, Any] = {}
    if (unit := attributes.get("unit_of_measurement")) and isinstance(unit, str):
        found["unit"] = unit
    if device.domain == "light" and device.state == "on" and _is_number(level := attributes.get("brightness")):
        found["brightness_percent"] = round(level / 255 * 100)
    if _is_number(position := attributes.get("current_position")):
        found["position_percent"] = position
    if _is_number(target := attributes.get("temperature")) and device.domain in ("climate", "water_heater"):
        found["target_temperature"] = target
    if _is_number(current := attributes.get("current_temperature")):
        found["current_temperature"] = current
    return found


def describe(device: Device) -> str:
    """Completes "the lamp is …"."""
    state, details = state_of(device), details_of(device)
    match device.domain:
        case "light" if "brightness_percent" in details:
            return f"{state} at {details['brightness_percent']} percent"
        case "cover" if state == "open" and 0 < details.get("position_percent", 100) < 100:
            return f"{details['position_percent']:g} percent open"
        case "climate" | "water_heater":
            target, current = details.get("target_temperature"), details.get("current_temperature")
            told = f"set to {target:g} degrees" if target is not None and state != "off" else state
            return f"{told}, and it is {current:g} degrees there" if current is not None else told
        case "sensor" if "unit" in details and _number(device) is not None:
            return say_measure(device)
    return state


def say_measure(device: Device) -> str:
    """Returns a measured value with its unit."""
    number = _number(device)
    shown = device.state if number is None else f"{number:g}"
    unit = str(device.attributes.get("unit_of_measurement") or "")
    if unit in ("°C", "°F", "°"):
        return f"{shown} degrees"
    return f"{shown} percent" if unit == "%" else f"{shown} {unit}".strip()


def _number(device: Device) -> float | None:
    try:
        return float(device.state)
    except ValueError:
        return None


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)

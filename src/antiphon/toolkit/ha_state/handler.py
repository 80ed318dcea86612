"""Tells the state of devices in the user's home."""

from collections.abc import Sequence
from typing import Final

from antiphon.tools.capabilities.home import Device
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.reported import join

from .states import describe, details_of, say_measure, state_of

MAX_DEVICES: Final = 50
SPOKEN_DEVICES: Final = 4
_SWITCHED: Final = frozenset(
    [
        "light",
        "switch",
        "fan",
        "media_player",
        "climate",
        "humidifier",
        "input_boolean",
        "vacuum",
        "binary_sensor",
        "automation",
        "siren",
        "remote",
    ]
)
_DOMAINS: Final = {
    "on": _SWITCHED,
    "off": _SWITCHED,
    "open": frozenset({"cover", "binary_sensor", "valve"}),
    "closed": frozenset({"cover", "binary_sensor", "valve"}),
    "locked": frozenset({"lock", "binary_sensor"}),
    "unlocked": frozenset({"lock", "binary_sensor"}),
}
"""The domains of devices that can be in a state."""
_OF_A_ROOM: Final = frozenset(
    ["light", "switch", "fan", "media_player", "climate", "cover", "lock", "vacuum", "humidifier"]
)
"""What people mean by the devices of a room."""
_IDLE: Final = frozenset(
    {"off", "closed", "locked", "idle", "standby", "docked", "not responding", "in an unknown state"}
)


async def execute(args: Args, context: Context) -> ToolResult:
    entity, area, expected, about = args.get("entity"), args.get("area"), args.get("expected"), args["about"]
    if about != "state":
        return await _measure(context, entity, area, about)
    if entity is None and area is None:
        return fail(
            ErrorType.VALIDATION, "Which device or which room do you mean?", suggestion="Give `entity` or `area`."
        )
    domains = _DOMAINS[expected] if expected else _OF_A_ROOM if entity is None else frozenset()
    devices = await context.home.look(entity, area, domains=domains)
    if expected in ("locked", "unlocked"):
        # A door may have a lock and a sensor; the lock knows.
        devices = [device for device in devices if device.domain == "lock"] or devices
    spoken = _answer(devices, expected) if expected else _report(devices, None if entity else area)
    return _result(devices, spoken)


async def _measure(context: Context, entity: str | None, area: str | None, about: str) -> ToolResult:
    found = await context.home.look(entity, area, domains=frozenset({"sensor", "climate"}))
    sensors = [device for device in found if device.domain == "sensor" and device.device_class == about]
    devices = [device for device in sensors if device.is_connected]
    if not devices and about == "temperature":
        devices = [device for device in found if "current_temperature" in details_of(device)]
    if not devices:
        where = f"in the {area}" if area else "there"
        return fail(ErrorType.NOT_FOUND, f"I don't know of anything that measures the {about} {where}.")
    values = [
        f"{details_of(device)['current_temperature']:g} degrees" if device.domain == "climate" else say_measure(device)
        for device in devices
    ]
    if len(devices) == 1:
        room = devices[0].area or area
        return _result(devices, f"The {about}{f' in the {room}' if room else ''} is {values[0]}.")
    told = [f"{value} by {device.name}" for value, device in zip(values, devices, strict=True)]
    return _result(devices, f"The {about} is {join(told[:SPOKEN_DEVICES])}.")


def _result(devices: Sequence[Device], spoken: str) -> ToolResult:
    listed = [
        {"id": each.id, "name": each.name, "area": each.area, "state": state_of(each), **details_of(each)}
        for each in devices[:MAX_DEVICES]
    ]
    return ok({"devices": listed}, spoken=spoken)


def _answer(devices: Sequence[Device], expected: str) -> str:
    """Answers whether devices are in a state."""
    if not devices:
        return "I don't know any such device there."
    matching = [device for device in devices if _is(device, expected)]
    if len(devices) == 1:
        [device] = devices
        if not device.is_connected or device.state == "unknown":
            return f"I can't tell: {_name(device)} is {state_of(device)}."
        return f"{'Yes' if matching else 'No'}, {_name(device)} is {describe(device)}."
    if not matching:
        return f"No, none of the {len(devices)} is {expected}."
    if len(matching) == len(devices):
        return f"Yes, all {len(devices)} are {expected}."
    names = [device.name for device in matching]
    shown = f": {join(names)}" if len(names) <= SPOKEN_DEVICES else ""
    return f"{len(matching)} of {len(devices)} {'is' if len(matching) == 1 else 'are'} {expected}{shown}."


def _is(device: Device, expected: str) -> bool:
    state = state_of(device)
    if expected in ("on", "off") and device.domain in ("media_player", "climate", "vacuum"):
        return (state not in _IDLE) is (expected == "on")
    return state == expected


def _report(devices: Sequence[Device], area: str | None) -> str:
    """Tells the states of devices; for a room, of those that do something."""
    if not devices:
        return f"I don't know any devices in the {area}." if area else "I don't know any such device."
    active = [device for device in devices if state_of(device) not in _IDLE] if area else list(devices)
    if not active:
        return f"Everything in the {area} is off."
    told = [f"{_name(device)} is {describe(device)}" for device in active[:SPOKEN_DEVICES]]
    rest = len(active) - len(told)
    more = f" There {'is one more' if rest == 1 else f'are {rest} more'}." if rest else ""
    sentence = join(told)
    where = f"In the {area}, " if area else ""
    return f"{where}{sentence if where else sentence[:1].upper() + sentence[1:]}.{more}"


def _name(device: Device) -> str:
    name = device.name
    return name if "'s " in name or "’s " in name or name.casefold().startswith("the ") else f"the {name}"

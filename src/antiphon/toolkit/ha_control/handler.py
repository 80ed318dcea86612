"""Changes devices in the user's home."""

import re
from collections.abc import Sequence
from typing import Any, Final

from antiphon.tools.capabilities.home import GUARDED_COVERS, GUARDED_WORDS, Action, Device
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.result import Prepared, ToolResult, fail, ok
from antiphon.words.reported import join

GUARDED_ACTIONS: Final = frozenset({"lock", "unlock", "arm", "disarm"})
HARMLESS_WORDS: Final = frozenset(
    ["light", "lights", "lamp", "lamps", "fan", "heating", "heater", "thermostat", "radiator", "speaker", "tv"]
)
"""The garage light opens no garage."""
_DONE: Final = {
    Action.ON: "turned on",
    Action.OFF: "turned off",
    Action.TOGGLE: "switched",
    Action.OPEN: "opened",
    Action.CLOSE: "closed",
    Action.STOP: "stopped",
    Action.LOCK: "locked",
    Action.UNLOCK: "unlocked",
    Action.ARM: "armed",
    Action.DISARM: "disarmed",
    Action.DIM: "dimmed",
    Action.SET: "set",
}
_KINDS: Final = {"alarm_control_panel": "alarm", "input_button": "button"}
_NAMED_KINDS: Final = frozenset({"scene", "script", "automation", "group", "button", "input_button"})
"""Kinds that a question says, since their names sound like something else."""
MAX_ASKED: Final = 6
"""How many devices a question names."""
WHOLE_HOME: Final = frozenset({"everything", "all devices", "every device", "devices"})
_UP_OR_DOWN: Final = {"up": 1, "down": -1}
_TO_A_VALUE: Final = frozenset({"on", "open", "close", "up", "down"})
"""Actions that are "set" with a value: "open the blinds to forty percent"."""
_STEPS: Final = {
    "climate": ("temperature", 1.0, 1.0),
    "water_heater": ("temperature", 1.0, 1.0),
    "light": ("brightness", 100 / 255, 20.0),
    "fan": ("percentage", 1.0, 20.0),
    "media_player": ("volume_level", 100.0, 10.0),
    "humidifier": ("humidity", 1.0, 5.0),
    "cover": ("current_position", 1.0, 20.0),
}
"""For each domain: the attribute that "up" and "down" change, its unit in percent or degrees, and the step."""
_DEGREES: Final = frozenset({"climate", "water_heater"})


async def prepare(args: Args, context: Context) -> Prepared:
    """Finds the devices, so that the user is asked about them, and a yes is for exactly these."""
    devices = await _find(args, context)
    action, value = _action(args), args.get("value")
    settled: dict[str, Any] = {name: args[name] for name in ("action", "value") if name in args}
    settled |= {
        "ids": [device.id for device in devices],
        "security": args["security"] or any(device.is_guarded for device in devices),
    }
    return Prepared(settled, _question(devices, action, value))


async def execute(args: Args, context: Context) -> ToolResult:
    devices = await _find(args, context)
    guarded = next((device for device in devices if device.is_guarded), None)
    # The gate has asked the user if `is_guarded` is true. Only then may such a device be changed.
    if guarded is not None and not is_guarded(args):
        kind = _kind(guarded)
        return fail(
            ErrorType.VALIDATION,
            f"{guarded.name} is a {kind}, so I have to ask you first. Please say it again, and call it the {kind}.",
            suggestion='Call again with "security": true. The user is then asked.',
        )
    asked, value = _action(args), args.get("value")
    if asked in _UP_OR_DOWN:
        values = {device.id: _stepped(device, asked) for device in devices}
        for device in devices:
            await context.home.act([device], Action.SET, values[device.id])
        value = values[devices[0].id] if len(set(values.values())) == 1 else None
        done = f"turned {asked} {_name(devices)}{_to(devices, Action.SET, value)}"
    else:
        action = Action(asked)
        await context.home.act(devices, action, value)
        done = f"{_DONE[action]} {_name(devices)}{_to(devices, action, value)}"
    return ok(
        {
            "action": asked,
            "value": value,
            "devices": [{"id": each.id, "name": each.name, "area": each.area} for each in devices],
        },
        spoken=f"I've {done}.",
    )


def _action(args: Args) -> str:
    return "set" if args.get("value") is not None and args["action"] in _TO_A_VALUE else str(args["action"])


def _stepped(device: Device, way: str) -> float:
    """Returns the value that is a step above or below what the device is set to."""
    attribute, unit, step = _STEPS.get(device.domain, ("", 0.0, 0.0))
    now = device.attributes.get(attribute)
    if device.domain == "light" and now is None:
        now = 0
    if not isinstance(now, int | float):
        message = f"I don't know what {_with_article(device.name)} is set to now. To what should I set it?"
        raise ToolError(ErrorType.VALIDATION, message, suggestion='Call with "set" and a value.')
    value = now * unit + _UP_OR_DOWN[way] * step
    return value if device.domain in _DEGREES else float(min(100, max(1, round(value))))


async def _find(args: Args, context: Context) -> list[Device]:
    """Returns the devices that are meant. Raises `ToolError` if there are none, or if it is not clear which."""
    entity, area, ids = args.get("entity"), args.get("area"), args.get("ids")
    if ids is not None:
        by_id = {device.id: device for device in await context.home.look(None, None)}
        if not by_id.keys() >= set(ids):
            message = "I can't find that device any more." if len(ids) == 1 else "Some of those devices are gone."
            raise ToolError(ErrorType.NOT_FOUND, message, suggestion="Call again with the name of the device.")
        return [by_id[id] for id in dict.fromkeys(ids)]
    if entity is None and area is None:
        raise ToolError(
            ErrorType.VALIDATION,
            "Which device or which room do you mean?",
            suggestion="Give `entity` or `area`.",
        )
    asked = _action(args)
    action = Action.SET if asked in _UP_OR_DOWN else Action(asked)
    devices = await context.home.targets(action, entity, area)
    if asked in _UP_OR_DOWN and any(device.domain in _STEPS for device in devices):
        devices = [device for device in devices if device.domain in _STEPS]
    return devices


def needs_confirmation(args: Args, untrusted: bool) -> bool:
    # The fridge may hang on one of the plugs.
    is_whole_home = "area" not in args and args.get("entity", "").casefold() in WHOLE_HOME
    return untrusted or is_whole_home or is_guarded(args)


def is_guarded(args: Args) -> bool:
    """Whether the arguments say that this is about a lock, a door, an alarm or the like."""
    if args["security"] or args["action"] in GUARDED_ACTIONS:
        return True
    named = " ".join([args.get("entity", ""), args.get("area", ""), *args.get("ids", ())])
    words = set(re.findall(r"[a-z]+", named.casefold()))
    return not GUARDED_WORDS.isdisjoint(words) and HARMLESS_WORDS.isdisjoint(words)


def _question(devices: Sequence[Device], action: str, value: float | None) -> str:
    named = [_describe(device) for device in devices[:MAX_ASKED]]
    more = len(devices) - len(named)
    what = join([*named, f"{more} more"] if more else named)
    do = f"Turn {action}" if action in (Action.ON, Action.OFF, *_UP_OR_DOWN) else action.capitalize()
    return f"{do} {what}{_to(devices, action, value)}?"


def _describe(device: Device) -> str:
    """Returns the name of a device with its kind and its room, unless the name says them already."""
    name = device.name.casefold()
    says_kind = device.domain in _NAMED_KINDS or device.device_class in GUARDED_COVERS
    kind = f" {_kind(device)}" if says_kind and _kind(device) not in name else ""
    area = "" if device.area.casefold() in name else f" in {_with_article(device.area)}"
    return f"{_with_article(device.name)}{kind}{area}"


def _with_article(name: str) -> str:
    return name if "'s " in name or "’s " in name or name.casefold().startswith("the ") else f"the {name}"


def _kind(device: Device) -> str:
    if device.domain == "cover":
        return "garage door" if device.device_class == "garage" else device.device_class or "door"
    if device.domain in ("switch", "input_boolean"):
        return "security switch"
    return _KINDS.get(device.domain, device.domain)


def _name(devices: Sequence[Device]) -> str:
    if len(devices) == 1:
        return _with_article(devices[0].name)
    kind = "lights" if all(device.domain == "light" for device in devices) else "devices"
    areas = {device.area for device in devices}
    area = areas.pop() if len(areas) == 1 else ""
    return f"{len(devices)} {kind} in the {area}" if area else f"{len(devices)} {kind}"


def _to(devices: Sequence[Device], action: str, value: float | None) -> str:
    if value is None or action not in (Action.SET, Action.DIM):
        return ""
    domain = devices[0].domain
    unit = " degrees" if domain in _DEGREES else "" if domain in ("number", "input_number") else " percent"
    return f" to {value:g}{unit}"

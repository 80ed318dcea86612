"""Finds devices by what people call them. Pure."""

import re
from collections.abc import Sequence
from typing import Final

from rapidfuzz import fuzz, process

from antiphon.tools.capabilities.home import Device
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.words import sounds
from antiphon.words.reported import join

CLOSE_ENOUGH: Final = 80
"""The similarity from which a name can be meant, out of 100. A recogniser's "kichen light" has 96."""
CLEARLY_CLOSER: Final = 6
MAX_NAMED: Final = 4
"""How many devices a question names."""

KINDS: Final = {
    "light": frozenset({"light"}),
    "lamp": frozenset({"light"}),
    "blind": frozenset({"cover"}),
    "curtain": frozenset({"cover"}),
    "shade": frozenset({"cover"}),
    "shutter": frozenset({"cover"}),
    "cover": frozenset({"cover"}),
    "awning": frozenset({"cover"}),
    "window": frozenset({"cover", "binary_sensor"}),
    "door": frozenset({"lock", "cover", "binary_sensor"}),
    "fan": frozenset({"fan"}),
    "plug": frozenset({"switch"}),
    "outlet": frozenset({"switch"}),
    "switch": frozenset({"switch"}),
    "lock": frozenset({"lock"}),
    "speaker": frozenset({"media_player"}),
    "tv": frozenset({"media_player"}),
    "television": frozenset({"media_player"}),
    "thermostat": frozenset({"climate"}),
    "heating": frozenset({"climate"}),
    "heater": frozenset({"climate", "switch"}),
    "radiator": frozenset({"climate"}),
    "air conditioning": frozenset({"climate"}),
    "temperature": frozenset({"climate", "sensor"}),
    "humidity": frozenset({"humidifier", "sensor"}),
    "vacuum": frozenset({"vacuum"}),
    "alarm": frozenset({"alarm_control_panel"}),
    "alarm system": frozenset({"alarm_control_panel"}),
    "garage": frozenset({"cover"}),
    "garage door": frozenset({"cover"}),
    "gate": frozenset({"cover"}),
    "scene": frozenset({"scene"}),
    "script": frozenset({"script"}),
    "automation": frozenset({"automation"}),
    "group": frozenset({"group"}),
    "button": frozenset({"button", "input_button"}),
    "valve": frozenset({"valve"}),
    "siren": frozenset({"siren"}),
}
"""Words for a kind of device, and the domains that it can have."""
_SUN_SHADES: Final = frozenset({"blind", "curtain", "shade", "shutter", "awning", ""})
_CLASSES: Final = {
    **dict.fromkeys(_SUN_SHADES - {""}, _SUN_SHADES),
    "garage": frozenset({"garage"}),
    "garage door": frozenset({"garage"}),
    "gate": frozenset({"gate"}),
    "window": frozenset({"window"}),
    "door": frozenset({"door", "garage", "garage_door", "opening", ""}),
}
"""The device classes of a kind, if not every device of its domains is one."""
_OFTEN_SEVERAL: Final = frozenset({"heating", "air conditioning"})
"""Kinds whose singular means all devices of the kind."""
_ALL: Final = re.compile(r"^(?:all(?: of)?|every|each|both) ")
_SMALL: Final = re.compile(r"^(?:the|my|our|a|an|any|this|that) ")
EVERYTHING: Final = frozenset({"everything", "all devices", "every device", "devices"})


def normalize(said: str) -> str:
    """Returns lower case words without articles, and without "all"."""
    words = " ".join(re.sub(r"[^\w\s']", " ", said.casefold().replace("_", " ")).split())
    for pattern in (_SMALL, _ALL, _SMALL):
        words = pattern.sub("", words)
    return words


def choose_area(said: str, devices: Sequence[Device]) -> str:
    """Returns the area that is meant. Raises `ToolError`: VALIDATION if several could be, NOT_FOUND if none could."""
    areas = sorted({device.area for device in devices if device.area})
    scored = sorted(((_area_similarity(said, area), area) for area in areas), reverse=True)
    if not scored or scored[0][0] < CLOSE_ENOUGH:
        known = f"The areas are {join(areas[:10])}." if areas else "No areas are known."
        raise ToolError(ErrorType.NOT_FOUND, f"I don't know a room called {said}.", suggestion=known)
    best = scored[0][0]
    near = sorted(area for score, area in scored if best - score < CLEARLY_CLOSER and score < 100) if best < 100 else []
    if len(near) > 1:
        message = f"Which room do you mean: {join_or(near[:MAX_NAMED])}?"
        raise ToolError(ErrorType.VALIDATION, message, suggestion="Ask the user.", details={"areas": near})
    return scored[0][1]


def _area_similarity(said: str, area: str) -> float:
    """Compares with and without "room", and without spaces: "the bed room" is the Bedroom, "living" the Living Room."""
    ours, theirs = normalize(said), normalize(area)
    return max(
        sounds.similarity(ours, theirs),
        sounds.similarity(ours.removesuffix(" room"), theirs.removesuffix(" room")),
        fuzz.ratio(ours.replace(" ", ""), theirs.replace(" ", "")),
    )


def choose(said: str, devices: Sequence[Device]) -> list[Device]:
    """Returns the devices that are meant: one by its name, or all of a kind or an area.

    Raises `ToolError`: VALIDATION with the candidates if several could be meant, NOT_FOUND if none could.
    """
    wanted = normalize(said)
    by_id = [device for device in devices if device.id == said.strip().casefold()]
    exact = by_id or [device for device in devices if normalize(device.name) == wanted]
    if len(exact) == 1:
        return exact
    if not exact and (several := _of_kind_or_area(wanted, devices)):
        return several
    scored = [(device, similarity(wanted, device)) for device in exact or devices]
    scored = sorted(((d, s) for d, s in scored if s >= CLOSE_ENOUGH), key=lambda pair: (-pair[1], pair[0].id))
    if not scored:
        if (named := _after_kind(wanted, devices)) is not None:
            return named
        raise _unknown(said, devices)
    near = [device for device, score in scored if scored[0][1] - score < CLEARLY_CLOSER]
    if len(near) == 1:
        return near
    raise _ambiguous(near)


def is_area(said: str, devices: Sequence[Device]) -> bool:
    """Whether the words are the name of an area, and of nothing else."""
    return normalize(said) in {normalize(device.area) for device in devices}


def similarity(wanted: str, device: Device) -> float:
    """Compares with the name, with the name after its area, and with the id."""
    name, area = normalize(device.name), normalize(device.area)
    names = [name, normalize(device.id.partition(".")[2])]
    if area:
        names += [f"{area} {name}", f"{name} {area}", f"{name} in {area}", f"{name} in the {area}"]
        # "the kitchen light" is the only light of the kitchen, whatever it is called.
        names += [f"{area} {kind}" for kind in KINDS if _is_of_kind(kind, device)]
    return max(max(sounds.similarity(wanted, each), fuzz.token_sort_ratio(wanted, each)) for each in names)


def _of_kind_or_area(wanted: str, devices: Sequence[Device]) -> list[Device]:
    """Returns all devices for "lights", "the kitchen lights", "everything" or "the kitchen"; none for other words."""
    if wanted in EVERYTHING:
        return list(devices)
    areas = {normalize(device.area) for device in devices if device.area}
    if wanted in areas:
        return [device for device in devices if normalize(device.area) == wanted]
    for kind in sorted(KINDS, key=len, reverse=True):
        rest = _before(wanted, kind)
        if rest is None:
            continue
        of_kind = [device for device in devices if _is_of_kind(kind, device)]
        if not rest:
            # One thing is asked for in the singular: with several of them, somebody must choose.
            if len(of_kind) > 1 and wanted == kind and kind not in _OFTEN_SEVERAL:
                raise _ambiguous(of_kind)
            return of_kind
        if wanted.endswith("s") and rest in areas:
            return [device for device in of_kind if normalize(device.area) == rest]
    return []


def _after_kind(wanted: str, devices: Sequence[Device]) -> list[Device] | None:
    """Reads "garage door car port" or "movie night scene" as a device of that kind; None if it is none."""
    for kind in sorted(KINDS, key=len, reverse=True):
        rest = wanted.removeprefix(f"{kind} ").removesuffix(f" {kind}")
        of_kind = [device for device in devices if _is_of_kind(kind, device)]
        if rest != wanted and of_kind:
            return choose(rest, of_kind)
    return None


def _before(wanted: str, kind: str) -> str | None:
    """Returns what comes before a word for a kind, in the singular or the plural; None if it is not there."""
    for form in (kind, f"{kind}s", f"{kind}es"):
        if wanted == form:
            return ""
        if wanted.endswith(f" {form}"):
            return wanted.removesuffix(f" {form}").strip()
    return None


def _is_of_kind(kind: str, device: Device) -> bool:
    return device.domain in KINDS[kind] and (kind not in _CLASSES or device.device_class in _CLASSES[kind])


def _ambiguous(devices: Sequence[Device]) -> ToolError:
    names = list(dict.fromkeys(describe(device, devices) for device in devices))
    candidates = [{"id": device.id, "name": device.name, "area": device.area} for device in devices[:10]]
    return ToolError(
        ErrorType.VALIDATION,
        f"Which one do you mean: {join_or(names[:MAX_NAMED])}?",
        suggestion="Ask the user, then call again with the name or the id.",
        details={"candidates": candidates},
    )


def _unknown(said: str, devices: Sequence[Device]) -> ToolError:
    names = [device.name for device in devices]
    near = process.extract(normalize(said), names, processor=normalize, limit=5, score_cutoff=45)
    return ToolError(
        ErrorType.NOT_FOUND,
        f"I don't know a device called {said}.",
        suggestion=f"Similar names: {join([name for name, _, _ in near])}." if near else "Ask the user for its name.",
    )


def join_or(names: Sequence[str]) -> str:
    """Joins names: "a", "a or b", "a, b or c"."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def describe(device: Device, others: Sequence[Device]) -> str:
    """Returns the name, with the area if another device has the same one."""
    is_alone = sum(each.name == device.name for each in others) == 1
    return device.name if is_alone or not device.area else f"{device.name} in the {device.area}"

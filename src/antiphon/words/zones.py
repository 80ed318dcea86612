"""Finds time zones by the names people use: a city, a country, an abbreviation, or the IANA key itself."""

import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final
from zoneinfo import ZoneInfo

from rapidfuzz import process
from rapidfuzz.distance import OSA

from antiphon.words.places import AMBIGUOUS, PLACES

MAX_NAME_CHARS: Final = 100

# Legacy groups such as US/Eastern or Brazil/West are found by their full key only: "west" alone names no place.
_REGIONS: Final = frozenset(
    {"Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"}
)
_AROUND: Final = re.compile(
    r"^(?:(?:over|in|at|for|the|city of) )+|(?: (?:time|time zone|right now|now|today|please))+$"
)
_BETWEEN: Final = re.compile(r"\s*(?:,|&|\band(?: also)?\b)\s*", re.IGNORECASE)
_OFFSET: Final = re.compile(r"(?:utc|gmt) ?([+-]|plus |minus ) ?0?(\d{1,2})(?::?00)?")


@dataclass(frozen=True, slots=True)
class Place:
    """A named place and its time zone."""

    name: str
    """The name to use in an answer: a question about San Francisco is not answered with Los Angeles."""
    zone: ZoneInfo


def find_place(name: str) -> Place | None:
    """Finds the place that a name or an abbreviation stands for; None if it is unknown or ambiguous."""
    if len(name) > MAX_NAME_CHARS:
        return None
    parts = [_strip(part) for part in _fold(name).split(",")]
    parts = [part for part in parts if part]
    if not parts:
        return None
    words = " ".join(parts)
    key = _known().get(words) or _offset_key(words) or _qualified(parts) or _near(words)
    if not key:
        return None
    zone = ZoneInfo(key.zone)
    return Place(key.name or speak_zone(zone), zone)


def is_place_name(name: str) -> bool:
    """Whether exactly this is the name of a place, without a guess at slips."""
    words = _strip(_fold(name))
    return words in _known() or words in _ambiguous()


def find_places(names: str) -> list[Place]:
    """Finds the places that are named one after the other ("Tokyo and London"); none if one of them is unknown."""
    # "Paris, Texas" is one place, and so is "Trinidad and Tobago".
    if re.search(r" and |&", names, re.IGNORECASE):
        parts = [part for part in _BETWEEN.split(names[:MAX_NAME_CHARS]) if part.strip()]
        found = [place for part in parts if (place := find_place(part)) is not None]
        if len(found) == len(parts) > 1:
            return found
    whole = find_place(names)
    return [] if whole is None else [whole]


def speak_zone(zone: ZoneInfo) -> str:
    """Returns the place a zone is named after: "New York" for America/New_York."""
    key = zone.key
    if fixed := re.fullmatch(r"Etc/GMT([+-])(\d+)", key):
        # The database counts these from the other side: Etc/GMT-2 is two hours ahead of UTC.
        return f"UTC {'plus' if fixed[1] == '-' else 'minus'} {fixed[2]}"
    if key in ("UTC", "Etc/UTC", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal"):
        return "UTC"
    region, _, rest = key.partition("/")
    if not rest:
        return key
    city = rest.rpartition("/")[2].replace("_", " ")
    return city if region in _REGIONS or region == "Etc" else f"{region} {city}"


@dataclass(frozen=True, slots=True)
class _Entry:
    zone: str
    name: str | None = None
    """None: named after the zone."""


def _fold(text: str) -> str:
    """Converts to lower case without accents, apostrophes or full stops. Only commas remain as separators."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    plain = re.sub(r"['’‘.?!]", "", plain.casefold())
    return plain.replace("_", " ").replace("&", "and")


def _strip(text: str) -> str:
    """Removes the words around a name: "in", "the", and "time", so that "tokyo time" is heard like "tokyo"."""
    return re.sub(r"\bsaint\b", "st", _AROUND.sub("", " ".join(text.split())))


@cache
def _known() -> dict[str, _Entry]:
    """Builds the index of every name with a single zone, in about 12 ms.

    `zoneinfo.available_timezones()` would take 35 ms: it opens all the files. The tzdata package has a list.
    """
    data = resources.files("tzdata")
    known: dict[str, _Entry] = {}
    for key in data.joinpath("zones").read_text().split():
        entry = _Entry(key)
        region, _, rest = key.partition("/")
        known[_fold(key)] = entry
        if region in _REGIONS:
            city = _fold(rest.rpartition("/")[2])
            known.setdefault(city, entry)
            known.setdefault(city.replace("-", " "), entry)
    known.update(_countries())
    for zone, names in PLACES.items():
        for name in names.split(", "):
            known[_strip(_fold(name))] = _Entry(zone, name)
    for name in _ambiguous():
        known.pop(name, None)
    return known


def _countries() -> dict[str, _Entry]:
    """Returns the countries that have a single zone."""
    tables = resources.files("tzdata").joinpath("zoneinfo")
    zones: dict[str, list[str]] = defaultdict(list)
    for row in _rows(tables.joinpath("zone.tab").read_text(encoding="utf-8")):
        zones[row[0]].append(row[2])
    found: dict[str, _Entry] = {}
    for code, name in _rows(tables.joinpath("iso3166.tab").read_text(encoding="utf-8")):
        if len(zones[code]) == 1 and "(" not in name:
            found[_strip(_fold(name))] = _Entry(zones[code][0], name.replace("&", "and"))
    return found


def _rows(table: str) -> list[list[str]]:
    return [line.split("\t") for line in table.splitlines() if line and not line.startswith("#")]


@cache
def _ambiguous() -> frozenset[str]:
    return frozenset(_fold(name) for name in AMBIGUOUS.split(", "))


def _offset_key(words: str) -> _Entry | None:
    """Parses "utc+2" and the like, for the whole hours that the database has zones for."""
    match = _OFFSET.fullmatch(words)
    if not match:
        return None
    ahead, hours = match[1].strip() in ("+", "plus"), int(match[2])
    if hours > (14 if ahead else 12):
        return None
    return _Entry(f"Etc/GMT{'-' if ahead else '+'}{hours}" if hours else "UTC")


def _qualified(parts: list[str]) -> _Entry | None:
    """Finds "tokyo, japan", with or without the comma."""
    known = _known()
    if len(parts) > 1:
        splits = [(parts[0], parts[-1])]
    else:
        words = parts[0].split()
        splits = [(" ".join(words[:cut]), " ".join(words[cut:])) for cut in range(len(words) - 1, 0, -1)]
    for city, country in splits:
        first, second = known.get(city), known.get(country)
        if first and second and first.zone.partition("/")[0] != second.zone.partition("/")[0]:
            # Paris, Texas. Within a continent the city knows better: El Paso does not keep the rest of Texas' time.
            return _Entry(second.zone, city.title())
        if first and (second or country in _ambiguous() or len(parts) > 1):
            return first
    return None


def _near(words: str) -> _Entry | None:
    """Finds the only name within a small edit distance."""
    if len(words) < 5 or words in _ambiguous():
        return None
    # Two edits only in long names: "atlantis" is two away from "atlanta".
    slips = 1 if len(words) < 9 else 2
    known = _known()
    close = process.extract(words, known.keys(), scorer=OSA.distance, score_cutoff=slips, limit=None)
    best = min((distance for _, distance, _ in close), default=None)
    nearest = {known[name].zone: known[name] for name, distance, _ in close if distance == best}
    return nearest.popitem()[1] if len(nearest) == 1 else None

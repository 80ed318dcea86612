"""How people name rooms and devices of a home, and how they say what level something is set to."""

import re
from collections.abc import Callable, Sequence
from typing import Final

ROOM_LIST: Final = (
    "bedroom|bed room|living room|kitchen|bathroom|bath room|dining room|office|study|hallway|hall|nursery|garage|"
    "basement|"
    "cellar|attic|loft|guest room|guest bedroom|master bedroom|spare room|kids'? room|kid's room|children's room|"
    "playroom|"
    "laundry room|utility room|pantry|conservatory|sunroom|workshop|shed|greenhouse|corridor|toilet|lounge|den|"
    "porch|garden|"
    "patio|terrace|balcony|stairs|upstairs|downstairs"
)
ROOM: Final = re.compile(rf"(?:{ROOM_LIST})", re.IGNORECASE)
KIND: Final = (
    r"lights?|lamps?|heating|heater|thermostat|radiators?|fans?|tv|telly|television|radio|blinds?|curtains?|shutters?|"
    r"doors?|gates?|windows?|plugs?|switch|oven|vacuum|air conditioning|speakers?|alarm|locks?|kettle|dishwasher|"
    r"(?:coffee|washing) machine"
)
_IS: Final = re.compile(
    rf"\b(?P<thing>{KIND}|{ROOM_LIST})['’]s(?=\s+(?:(?:still|already|a bit|a little|far|way|much|really)\s+)?"
    r"(?:on|off|open|closed|shut|locked|unlocked|running|too|getting)\b)",
    re.IGNORECASE,
)
_AFTER: Final = re.compile(
    r"\s+(?:(?:by )?(?:a|just a|only a) (?:little bit|bit|little|touch|notch|tad|lot)|slightly|somewhat|some|much|"
    r"still|already|"
    r"currently|right now|now|again|please|too|as well|also|for (?:me|us|(?:the|my|our) \w+)|(?:on|off|open|"
    r"closed|shut|locked|"
    r"unlocked)(?: or(?: not)?)?|"
    r"or(?: not)?|is|are|all)\Z",
    re.IGNORECASE,
)
_BEFORE: Final = re.compile(r"\A(?:up|down|of|all of|the|my|our)\s+", re.IGNORECASE)
_NO_NAME_LIST: Final = """
    i me you he she it they them us is are was were am be been do does did have has had will would can could should
    my your his her their and but because if when while so that which who turn switch set put open close lock too
"""
_NO_NAME: Final = frozenset(_NO_NAME_LIST.split())
"""Words that are not part of a device's name: a slot with one of them took more of the sentence than its own."""
MAX_NAME_WORDS: Final = 6
_IN_ROOM: Final = re.compile(rf"(?P<name>.+?) in (?:the |my |our )?(?P<room>{ROOM_LIST})", re.IGNORECASE)
WARMTH: Final = re.compile(
    r"\b(?:warm(?:er)?|cold(?:er)?|cool(?:er)?|hot(?:ter)?|heat|chilly|chillier|freezing|degrees?)\b", re.IGNORECASE
)
"""Words that tell that the heating of a room is meant, and not its lights."""

_AMOUNT: Final = r"(?:\d+(?:[.,]\d+)?|(?:[a-z]+)(?:[ -](?:one|two|three|four|five|six|seven|eight|nine|and a half))?)"
_LEVEL: Final = re.compile(
    rf"\b(?P<exact>{_AMOUNT})\s*(?P<unit>percent|per cent|%|degrees?)|"
    rf"\b(?:to|at|on)\s+(?P<bare>{_AMOUNT})(?=[\s.!?]*\Z|\s+(?:in|please|now|for)\b)|"
    r"\b(?P<half>half[ -]?way|half (?:brightness|power|volume|open)|to half)\b|"
    r"\b(?P<full>(?:full|maximum|max) (?:brightness|power|volume)|to (?:the )?(?:full|maximum|max))\b",
    re.IGNORECASE,
)


def write_out(text: str) -> str:
    """Writes "the garage door's open" as "the garage door is open"."""
    return _IS.sub(r"\g<thing> is", text)


def trim_name(said: str) -> str | None:
    """Returns the name of a device or a room without words that say how much or whether: "kitchen light a bit"; None if
    it is no name. "The lights in the kitchen" are the kitchen lights."""
    name = said.strip(" ,.!?")
    while (shorter := _BEFORE.sub("", _AFTER.sub("", name))) != name:
        name = shorter
    if placed := _IN_ROOM.fullmatch(name):
        name = f"{placed['room']} {placed['name']}"
    words = name.lower().split()
    return name if 0 < len(words) <= MAX_NAME_WORDS and _NO_NAME.isdisjoint(words) else None


def find_room(words: str) -> str | None:
    """Returns the room if the words are one: "in the kitchen", "the kitchen one"."""
    bare = re.sub(r"^(?:(?:in|the|my|our)\s+)+", "", words.strip(), flags=re.IGNORECASE)
    bare = re.sub(r"\s+ones?$", "", bare, flags=re.IGNORECASE)
    return bare if ROOM.fullmatch(bare) is not None else None


def find_levels(text: str, is_number: Callable[[str], bool]) -> Sequence[tuple[str, int, int]]:
    """Finds what something is to be set to, and where that is said: "thirty percent", "at 21", "halfway"."""
    found = []
    for match in _LEVEL.finditer(text):
        number = match["exact"] or match["bare"]
        if match["half"] or match["full"]:
            found.append(("50" if match["half"] else "100", match.start(), match.end()))
        elif is_number(number):
            found.append((number, match.start(), match.end()))
    return found

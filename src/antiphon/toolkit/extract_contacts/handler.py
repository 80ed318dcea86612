"""Finds the contacts in a text."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok

from .addresses import Found, digits, find_emails, find_links, find_phones, is_linkedin, with_scheme
from .names import find_people

SPOKEN_KINDS: Final = {
    "people": ("name", "names"),
    "emails": ("e-mail address", "e-mail addresses"),
    "phones": ("phone number", "phone numbers"),
    "linkedin": ("LinkedIn link", "LinkedIn links"),
    "urls": ("web link", "web links"),
}


async def execute(args: Args, context: Context) -> ToolResult:
    text: str = args["text"]
    links = list(find_links(text))
    # An address inside a link is not a contact of its own, and digits inside an address are not a phone number.
    text = _blank_out(text, links)
    emails = list(find_emails(text))
    phones = find_phones(_blank_out(text, emails))
    people = dict.fromkeys(find_people(text, emails))
    data: dict[str, list[Any]] = {
        "people": [{"name": name, "email": email} if email else {"name": name} for name, email in people],
        "emails": _distinct((found.text for found in emails), str.casefold),
        "phones": _distinct((found.text for found in phones), digits),
        "linkedin": _distinct((with_scheme(found.text) for found in links if is_linkedin(found.text)), str),
        "urls": _distinct((found.text for found in links if not is_linkedin(found.text)), str),
    }
    return ok(data, spoken=_speak(data))


def _blank_out(text: str, places: Iterable[Found]) -> str:
    """Blanks out the places. The text keeps its length, so that positions stay valid."""
    parts: list[str] = []
    at = 0
    for _, start, end in places:
        parts += [text[at:start], " " * (end - start)]
        at = end
    return "".join([*parts, text[at:]])


def _distinct(values: Iterable[str], identity: Callable[[str], str]) -> list[str]:
    first: dict[str, str] = {}
    for value in values:
        first.setdefault(identity(value), value)
    return list(first.values())


def _speak(data: Mapping[str, list[Any]]) -> str:
    counts = [f"{len(found)} {SPOKEN_KINDS[kind][len(found) > 1]}" for kind, found in data.items() if found]
    if not counts:
        return "I didn't find any contacts in that text."
    return f"I found {' and '.join(filter(None, [', '.join(counts[:-1]), counts[-1]]))}."

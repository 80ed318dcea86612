"""How lists and their items are named, told apart and said."""

import re
from collections.abc import Sequence
from typing import Final

NOTES: Final = "notes"
SHOPPING: Final = "shopping"
TO_DO: Final = "to do"

_ALIASES: Final = {
    **dict.fromkeys(("note", "notes", "notebook", "notepad"), NOTES),
    **dict.fromkeys(("shop", "shopping", "grocery", "groceries", "supermarket"), SHOPPING),
    **dict.fromkeys(("to do", "todo", "to dos", "todos", "task", "tasks", "things to do", "chore", "chores"), TO_DO),
}
LIST_ALIASES: Final = frozenset(_ALIASES)
"""Words that name a list without the word "list"."""
_OWNER: Final = re.compile(r"^(?:(?:my|our|the|a|an)\s+)+")
_LIST: Final = re.compile(r"\s+lists?$")

_QUOTED: Final = re.compile(r'["“]([^"“”]+)["”]')
_BETWEEN: Final = re.compile(r"\s*(?:[;\n]|,(?!\d{3}\b))\s*(?:and\s+)?", re.IGNORECASE)
_AND: Final = re.compile(r"\s+(?:and|plus)\s+", re.IGNORECASE)
_ARTICLE: Final = re.compile(r"^(?:some|the|my|an?)\s+(?=\S)", re.IGNORECASE)
_LEADING: Final = re.compile(r"^(?:some|the)\s+(?=\S)")
"""Words that people say before an item and would not write down. Only in lower case: "The Economist" is a title."""
_TOGETHER: Final = frozenset(
    {
        "bread and butter pickles",
        "fish and chips",
        "half and half",
        "head and shoulders",
        "mac and cheese",
        "macaroni and cheese",
        "oil and vinegar dressing",
        "peanut butter and jelly",
        "rice and beans",
        "salt and vinegar chips",
        "salt and vinegar crisps",
        "sour cream and onion chips",
    }
)
"""What is one thing although it has an "and". Anything else can be kept together with quotation marks."""
MAX_WORDS_OF_A_THING: Final = 4
"""A longer part is a clause: "call the bank and ask about the loan" is one item."""


def list_name(said: str) -> str:
    """Returns the name of a list in its one form: "my Shopping list" and "groceries" are both "shopping"."""
    words = " ".join(said.casefold().replace("-", " ").replace("_", " ").split())
    bare = _LIST.sub("", _OWNER.sub("", words)) or words
    return _ALIASES.get(bare, bare)


def speak_list(name: str) -> str:
    """Phrases a list: "your shopping list", "your notes", "your wishlist"."""
    return f"your {name}" if name == NOTES or name.endswith("list") else f"your {name} list"


def split_items(said: str, name: str) -> list[str]:
    """Splits what was said into items: a note is one, tasks are separated by commas, other things also by "and"."""
    if name == NOTES:
        return _tidy([said], keep_articles=True)
    # What is in quotation marks stays as it is; the pieces at odd places are those.
    pieces = _QUOTED.split(said)
    found: list[str] = []
    for place, piece in enumerate(pieces):
        found += [piece] if place % 2 else _split(piece, at_and=name != TO_DO)
    return _tidy(found)


def _split(said: str, *, at_and: bool) -> list[str]:
    parts = [part for part in _BETWEEN.split(said) if part]
    return [thing for part in parts for thing in (_split_at_and(part) if at_and else [part])]


def _split_at_and(part: str) -> list[str]:
    things = _AND.split(part)
    is_one = item_key(part) in _TOGETHER or any(len(thing.split()) > MAX_WORDS_OF_A_THING for thing in things)
    return [part] if is_one else things


def _tidy(items: Sequence[str], *, keep_articles: bool = False) -> list[str]:
    plain = (" ".join(item.split()).strip(" .,;") for item in items)
    return [text if keep_articles else _LEADING.sub("", text) for text in plain if text and text.casefold() != "and"]


def item_key(text: str) -> str:
    """Returns what is equal for two ways of saying one item: "The milk." and "milk"."""
    words = " ".join(re.sub(r"[^\w\s'&%+/-]", " ", text.casefold()).split())
    return _ARTICLE.sub("", words) or words or text.casefold()


def enumerate_words(items: Sequence[str], word: str = "and") -> str:
    """Joins words as people do: "milk, eggs and bread"."""
    return f"{', '.join(items[:-1])} {word} {items[-1]}" if len(items) > 1 else "".join(items)

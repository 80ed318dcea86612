"""Whether a text is a complete request, as far as its words can tell."""

import re
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

_END: Final = r"[\s.,!?…—\"”-]*$"

_FILLER: Final = re.compile(rf"\b(?:u+m+|u+h+|er+m?|hm+|h+m+){_END}", re.IGNORECASE)
"""Nobody ends a request with one of these."""

_HANGING: Final = re.compile(
    r"\b(?:an?|the|my|your|his|our|their|some|any|every|to|of|for|in|at|by|with|from|about|into|until|till|than|between|"
    r"and|or|but|if|because|whether|plus|minus|times|divided|multiplied|percent of|remind me,? too|i'?m|i'd|i'll|let's|"
    rf"called|named|saying|say that|said that|think that|number is|code is|address is|name is){_END}",
    re.IGNORECASE,
)
"""Another word must follow these, except where a question ends with its preposition."""

_ENDS_WITH_PREPOSITION: Final = re.compile(
    r"^(?:\W|\w+\W+)?(?:what|what's|who|who's|whom|where|which)\b.*"
    r"\b(?:it|that|this|you|they|we|he|she|i|those|these|one|(?:com|talk|think|look|ask|wait)ing)\s+"
    r"(?:for|from|about|with|to|of)[\s.!?\"”]*$",
    re.IGNORECASE,
)
"""As in "what is it for", "where are you from" and "who are you talking about"."""

_UNFINISHED: Final = re.compile(
    r"\b(?:her|on|as|that|is|are|was|were|be|i|over|can you|could you|would you)[\s.!?\"”]*$|[,…—-]\s*$",
    re.IGNORECASE,
)
"""A request rarely ends with one of these words, so the user is given a little more time."""

_CONTINUABLE: Final = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december|"
    r"hundred|thousand|million|billion|\d+00)[\s.!?]*$",
    re.IGNORECASE,
)
"""Days follow months, and smaller numbers follow hundreds: "until March … the sixteenth", "two hundred … and five"."""

_DIGIT: Final = r"(?:\d|zero|oh|one|two|three|four|five|six|seven|eight|nine)"
_DIGITS: Final = re.compile(rf"(?:^|[\s:])({_DIGIT}(?:[\s,.-]*{_DIGIT})+){_END}", re.IGNORECASE)
_ONE_DIGIT: Final = re.compile(_DIGIT, re.IGNORECASE)
_GROUPED: Final = re.compile(
    rf"\d-\d|\d-$|{_DIGIT}\s+{_DIGIT}|\b(?:number|code|pin|phone|call me|account|zip)\b", re.IGNORECASE
)
_WHOLE_NUMBERS: Final = frozenset({7, 10, 11, 16})
"""How many digits a telephone number has, without and with its prefixes, and a card."""
_LIST: Final = re.compile(r"\w+,\s+(?!and\b|or\b|please\b|then\b)\w+[\s.]*$", re.IGNORECASE)

_STEM: Final = re.compile(
    r"^\W*(?:(?:please|so|well|ok|okay|hey|and)\W+)?(?:"
    r"i (?:was wondering|need|want|wonder|think)|i(?:'d| would) like|do you (?:know|think)|"
    r"(?:can|could|would|will) you(?: please)?(?: \w+)?(?: me)?|"
    r"(?:tell|show|give|read|remind|wake) me(?: something| up)?|"
    r"how (?:do|can|should) (?:i|you|we)|(?:who|what) (?:wrote|made|did|does)|(?:when|where|who|what|how)(?: is|'s)?|"
    r"(?:what|who)(?:'s| is) the (?:\w+ )?\w+"
    rf"){_END}",
    re.IGNORECASE,
)
"""The beginning of a request that says nothing yet: "could you read me", "what's the capital"."""
_HALF: Final = re.compile(
    rf"\bbetween\b(?!.*\b(?:and|people|persons|friends|us|them)\b).*$|\bfrom\b(?!.*\b(?:to|until|till|now)\b)\W+\w+{_END}",
    re.IGNORECASE,
)
"""What "between" and "from" begin, another word ends."""
MANY_WORDS: Final = 6
"""From this many words on, an unknown request is more often whole than not: 87 of 96 pauses of 14 Kokoro voices were
ends. Of those after fewer words, 17 of 31 were."""

_CONTINUATION: Final = re.compile(
    r"(?:in|at|on|for|from|to|until|till|about|with|between|by|of|than|into|as|plus|minus|times|divided|multiplied|"
    r"called|named)\b",
    re.IGNORECASE,
)
"""What begins like this often belongs to what was said before."""
MAX_CONTINUATION_WORDS: Final = 5


class Completeness(Enum):
    COMPLETE = auto()
    """A complete request. No known request begins with it and continues."""
    EXTENDABLE = auto()
    """A complete request that could continue: "what time is it" (in Tokyo), or "until March" (the sixteenth)."""
    UNKNOWN = auto()
    """No known request has these words."""
    BRIEF = auto()
    """The same, and they are few: more often the beginning of a request than a whole one."""
    PARTIAL = auto()
    """The beginning of a request."""
    LISTING = auto()
    """Digits or items of which more may follow: "555" (1234), "milk, eggs" (and bread)."""
    HANGING = auto()
    """It ends with a word that needs another: "what time is it in", "set an alarm for um"."""


def ends_with_filler(text: str) -> bool:
    """Whether the last word is an "um"."""
    return _FILLER.search(text) is not None


def is_hanging(text: str) -> bool:
    """Whether another word must follow the last one.

    A full stop or a question mark means nothing: recognisers put it after unfinished sentences too.
    """
    return _HANGING.search(text) is not None and _ENDS_WITH_PREPOSITION.search(text) is None


def without_last_word(text: str) -> str:
    """Returns the text before its last word."""
    return re.sub(rf"\W*[\w']+{_END}", "", text)


def is_listing(text: str) -> bool:
    """Whether it ends with digits or items of which more may follow."""
    if _LIST.search(text) is not None:
        return True
    digits = _DIGITS.search(text)
    if digits is None or _GROUPED.search(text) is None:
        return False
    return len(_ONE_DIGIT.findall(digits[1])) not in _WHOLE_NUMBERS


def is_stem(text: str) -> bool:
    """Whether it only begins a request, or half of what it names is missing."""
    return _STEM.search(text) is not None or _HALF.search(text) is not None


def is_unfinished(text: str) -> bool:
    """Whether the text ends with a word after which another is likely, or with a comma, which recognisers write if the
    pitch did not fall."""
    return ends_with_filler(text) or is_hanging(text) or _UNFINISHED.search(text) is not None


def can_continue(text: str) -> bool:
    """Whether the last word is often only the beginning of a date or of a number."""
    return _CONTINUABLE.search(text) is not None


def continue_request(before: str, text: str, judge: Callable[[str], Completeness]) -> str | None:
    """Returns both as one request, if the text does not stand alone and only completes what was said before it: "what
    time is it" and "in Tokyo", "what time is it in" and "Tokyo"."""
    requests = (Completeness.COMPLETE, Completeness.EXTENDABLE)
    if len(text.split()) > MAX_CONTINUATION_WORDS or judge(text) in requests:
        return None
    begins_like_one = _CONTINUATION.match(text) is not None
    if not begins_like_one and judge(before) is not Completeness.HANGING:
        return None
    rest = text[:1].lower() + text[1:] if begins_like_one else text
    joined = f"{before.rstrip(' .,!?…-')} {rest}"
    return joined if judge(joined) in requests else None

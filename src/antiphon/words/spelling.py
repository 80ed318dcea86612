"""Reads what people say digit by digit or letter by letter: numbers, spelled words and e-mail addresses.

Recognisers write such answers as if they were sentences: "five" and "5", "for" and "four", "see" and "C" stand side by
side. Each function reads a whole answer that is known to be of its kind, and returns None rather than a part of it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final


def _words(text: str) -> list[str]:
    return text.split()


_DIGIT_WORDS: Final = {
    **{word: str(digit) for digit, word in enumerate(_words("zero one two three four five six seven eight nine"))},
    **dict.fromkeys(["oh", "o", "nought", "naught", "nil", "zeros", "zeroes"], "0"),
    **dict.fromkeys(["won", "ones"], "1"),
    **dict.fromkeys(["to", "too", "tu", "twos"], "2"),
    **dict.fromkeys(["tree", "free", "threes"], "3"),
    **dict.fromkeys(["for", "fore", "fours"], "4"),
    **dict.fromkeys(["fife", "fives", "hive"], "5"),
    **dict.fromkeys(["sex", "sicks", "sixes", "sick"], "6"),
    **dict.fromkeys(["sevens", "heaven"], "7"),
    **dict.fromkeys(["ate", "aight", "eights"], "8"),
    **dict.fromkeys(["niner", "nines", "mine", "nein", "line"], "9"),
}
"""The words for a digit, and what recognisers write for them."""
_TEENS: Final = {
    word: str(10 + place)
    for place, word in enumerate(
        _words("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
    )
}
_TENS: Final = {
    word: str(2 + place) for place, word in enumerate(_words("twenty thirty forty fifty sixty seventy eighty ninety"))
} | {"fourty": "4"}
_SCALES: Final = {"hundred": "00", "thousand": "000"}
_REPEATS: Final = {"double": 2, "triple": 3, "treble": 3, "quadruple": 4}

_LETTER_NAMES: Final[Mapping[str, str]] = {
    **{letter: letter for letter in "abcdefghijklmnopqrstuvwxyz"},
    **dict.fromkeys(["ay", "eh", "hey"], "a"),
    **dict.fromkeys(["be", "bee"], "b"),
    **dict.fromkeys(["see", "sea", "cee", "si"], "c"),
    **dict.fromkeys(["dee", "the"], "d"),
    **dict.fromkeys(["ee", "he"], "e"),
    **dict.fromkeys(["ef", "eff", "if"], "f"),
    **dict.fromkeys(["gee", "jee", "ji"], "g"),
    **dict.fromkeys(["aitch", "haitch", "age", "each"], "h"),
    **dict.fromkeys(["eye", "aye", "hi"], "i"),
    **dict.fromkeys(["jay", "jaye"], "j"),
    **dict.fromkeys(["kay", "okay", "ok", "cay"], "k"),
    **dict.fromkeys(["el", "ell", "elle", "hell"], "l"),
    **dict.fromkeys(["em", "am", "hem", "um"], "m"),
    **dict.fromkeys(["en", "an", "and", "in", "end"], "n"),
    **dict.fromkeys(["oh", "owe", "ow"], "o"),
    **dict.fromkeys(["pea", "pee", "pe"], "p"),
    **dict.fromkeys(["cue", "queue", "kew", "q"], "q"),
    **dict.fromkeys(["are", "ar", "our"], "r"),
    **dict.fromkeys(["ess", "es", "as", "yes"], "s"),
    **dict.fromkeys(["tea", "tee", "ti"], "t"),
    **dict.fromkeys(["you", "yew", "ewe"], "u"),
    **dict.fromkeys(["vee", "we"], "v"),
    **dict.fromkeys(["ex", "eggs", "axe"], "x"),
    **dict.fromkeys(["why", "wye", "wy"], "y"),
    **dict.fromkeys(["zee", "zed", "said", "ze"], "z"),
}
"""The names of letters, and what recognisers write for them."""
_SPELLING_ALPHABET: Final = {
    word: word[0]
    for word in _words(
        "alpha alfa bravo charlie delta echo foxtrot golf hotel india juliet juliett kilo lima mike november oscar papa"
        " quebec romeo sierra tango uniform victor whiskey whisky xray yankee zulu"
    )
}
_SYMBOLS: Final = {
    **dict.fromkeys(["dash", "hyphen", "minus"], "-"),
    **dict.fromkeys(["dot", "point", "period"], "."),
    "underscore": "_",
    "apostrophe": "'",
    "plus": "+",
}
_AS_IN: Final = (("as", "in"), ("like", "in"), ("is", "in"), ("for",), ("like",), ("of",))
_CAPITALS: Final = frozenset(["capital", "uppercase", "cap"])
_SMALLS: Final = frozenset(["lowercase", "small"])

_FILLERS: Final = frozenset(
    _words(
        "it it's its is that's thats that the a my number code phone telephone mobile zip postcode pin account and then"
        " um uh er erm hm well so sure okay ok yes yeah please area space comma dash hyphen of course you want i said"
        " again no sorry i'm dot period point"
    )
)
"""Words in an answer of digits that are not digits."""
_INTRODUCTION: Final = re.compile(
    r"^(?:(?:um+|uh+|er+m?|well|sure|okay|ok|yes|yeah|so|no|sorry|of course|please|hi|hello)[\s,.]+)*"
    r"(?:(?:(?:my|the|his|her|their) )?(?:(?:e-?mail|mail|full|first|last|second|sur|user)? ?"
    r"(?:address|name|e-?mail|word|spelling|surname|username) )?"
    r"(?:it is|it's|its|it’s|is|that is|that's|that’s|this is|i am|i'm|call me|you spell it|spelled|that would be)"
    r"(?: spelled| called)?[\s,:]+)?",
    re.IGNORECASE,
)

_TOKEN: Final = re.compile(r"[a-z]+(?:['’][a-z]+)?|\d+(?:,\d{3})*|[@+_]", re.IGNORECASE | re.ASCII)
_MAIL_TOKEN: Final = re.compile(r"[a-z]+|\d+|[@.+_-]", re.IGNORECASE | re.ASCII)
_ADDRESS: Final = re.compile(r"[a-z0-9][a-z0-9._+-]*@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}", re.ASCII)
_CASED: Final = re.compile(r"^[A-Z][a-z]+$")

MIN_SPELLED: Final = 2
"""How many letters in a row are a spelled word."""
MAX_CHARS: Final = 300


def read_digits(text: str) -> str | None:
    """Reads "five five five, double oh, fifty-five" as digits. A leading plus is kept."""
    digits = ""
    words = [word.lower() for word in _TOKEN.findall(text[:MAX_CHARS])]
    at = 0
    while at < len(words):
        word = words[at]
        repeat = _REPEATS.get(word)
        found = _read_number(words, at + 1 if repeat else at)
        if found is not None:
            value, at = found
            digits += value[0] * (repeat - 1) + value if repeat else value
        elif _is_eight(words, at, bool(digits)):
            digits, at = f"{digits}8", at + 1
        elif word in ("plus", "+") and not digits:
            digits, at = "+", at + 1
        elif word in _FILLERS:
            at += 1
        else:
            return None
    return digits if digits.strip("+") else None


def _is_eight(words: Sequence[str], at: int, has_digits: bool) -> bool:
    """Whether the word is what recognisers write for an eight: "3 A3" for three eight three, "93, it" for nine three
    eight. In "it's a six" and "that's it" it is what it says."""
    if words[at] == "a":
        return has_digits or (at == 0 and len(words) > 1)
    return has_digits and words[at] in ("it", "at") and words[at - 1] not in ("that's", "that’s", "is", "said")


def _read_number(words: Sequence[str], at: int) -> tuple[str, int] | None:
    """Reads one number of an answer, and returns its digits and where the next word is."""
    if at >= len(words):
        return None
    word, following = words[at], words[at + 1] if at + 1 < len(words) else ""
    if word[0].isdigit():
        digits = word.replace(",", "")
    elif word in _TENS:
        unit = _DIGIT_WORDS.get(following, "0")
        if unit != "0" and following not in ("to", "for", "too"):
            return _TENS[word] + unit, at + 2
        digits = f"{_TENS[word]}0"
    else:
        digits = _TEENS.get(word) or _DIGIT_WORDS.get(word, "")
    if not digits:
        return None
    # "Eight hundred" in a telephone number is 800.
    scale = _SCALES.get(following)
    return (digits + scale, at + 2) if scale else (digits, at + 1)


def read_spelling(text: str) -> str | None:
    """Reads "S M I T H", "a as in apple, double n", "capital bravo, oh, bee" as a word.

    If the word is said before it is spelled ("Smith, S M I T H"), the letters count.
    """
    text = _INTRODUCTION.sub("", text[:MAX_CHARS].strip())
    tokens = _TOKEN.findall(_join_letter_names(text))
    runs: list[str] = [""]
    words: list[str] = []
    at = 0
    while at < len(tokens):
        found = _read_letter(tokens, at)
        if found is None:
            words.append(tokens[at])
            runs.append("")
            at += 1
            continue
        letter, at = found
        runs[-1] += letter
    spelled = max(reversed(runs), key=len)
    if len(spelled) >= MIN_SPELLED:
        return spelled
    joined = "".join(tokens)
    return joined.lower() if len(tokens) == 1 and joined.isalpha() else None


def _join_letter_names(text: str) -> str:
    """Returns the text with the names of letters that have two words as one."""
    return re.sub(r"\bx-ray\b", "xray", re.sub(r"\bdouble[ -](?:u|you)\b", "w", text, flags=re.I), flags=re.I)


def _read_letter(tokens: Sequence[str], at: int) -> tuple[str, int] | None:
    """Reads one letter, digit or symbol, and returns it and where the next token is."""
    words = [token.lower() for token in tokens[at : at + 4]]
    first, following = words[0], words[1] if len(words) > 1 else ""
    if first in _CAPITALS or first in _SMALLS or (first in ("upper", "lower") and following == "case"):
        found = _read_letter(tokens, at + (2 if following == "case" else 1)) if following else None
        is_capital = first in _CAPITALS or first == "upper"
        return None if found is None else (found[0].upper() if is_capital else found[0].lower(), found[1])
    if (repeat := _REPEATS.get(first)) and following:
        found = _read_letter(tokens, at + 1)
        return None if found is None else (found[0][0] * (repeat - 1) + found[0], found[1])
    for joint in _AS_IN:
        if len(words) > len(joint) + 1 and tuple(words[1 : 1 + len(joint)]) == joint:
            example = words[1 + len(joint)]
            # "M for Nancy" was an N: a word is recognised better than a letter. "B for see" is three letters.
            if len(example) > 2 and example.isalpha() and first in _LETTER_NAMES and example not in _LETTER_NAMES:
                return example[0], at + 2 + len(joint)
    if first in _SPELLING_ALPHABET:
        return _SPELLING_ALPHABET[first], at + 1
    if first in _LETTER_NAMES:
        return _LETTER_NAMES[first], at + 1
    if first in _SYMBOLS:
        return _SYMBOLS[first], at + 1
    if first.isdigit() or first in _DIGIT_WORDS:
        return _DIGIT_WORDS.get(first, first), at + 1
    # Recognisers write letters that are said quickly as one word: "SMI TH".
    return (first, at + 1) if tokens[at].isupper() else None


def read_email(text: str) -> str | None:
    """Reads "ann dot smith at example dot com", spelled or not, as an address in lower case."""
    said = _join_letter_names(_INTRODUCTION.sub("", text[:MAX_CHARS].strip()).rstrip(".!? "))
    if address := _ADDRESS.search(said.lower().replace(" ", "")) if "@" in said else None:
        return address.group()
    parts = list(_mail_parts([token.lower() for token in _MAIL_TOKEN.findall(said)]))
    if "@" not in parts:
        return None
    at = len(parts) - 1 - parts[::-1].index("@")
    written = "".join(part for part in parts[:at] if part != "@") + "@" + "".join(parts[at + 1 :])
    # Where somebody pauses, a recogniser writes a full stop: "ann. smith at example. com".
    written = re.sub(r"\.{2,}", ".", written)
    return written if _ADDRESS.fullmatch(written) else None


def _mail_parts(words: Sequence[str]) -> Iterator[str]:
    """Yields the characters of an address, piece by piece."""
    at = 0
    while at < len(words):
        word, following = words[at], words[at + 1] if at + 1 < len(words) else ""
        if word in ("at", "@") and following:
            yield "@"
            at += 1
        elif word in _SYMBOLS or word in "@.+_-":
            # "a-n-n" is spelled; "ann-smith" has a hyphen.
            is_between_letters = word == "-" and at > 0 and len(words[at - 1]) == len(following) == 1
            yield "" if is_between_letters else _SYMBOLS.get(word, word)
            at += 1
        elif word in _REPEATS and following:
            found = _read_letter(words, at)
            yield found[0] if found else word
            at = found[1] if found else at + 1
        elif _is_spelled(words, at) and (found := _read_letter(words, at)) is not None:
            yield found[0]
            at = found[1]
        elif word in _TENS or word in _TEENS or (word in _DIGIT_WORDS and len(word) > 2 and word not in _NOT_DIGITS):
            value, at = _read_number(words, at) or (word, at + 1)
            yield value
        else:
            yield word
            at += 1


_NOT_DIGITS: Final = frozenset(["for", "too", "free", "won", "mine", "tree", "hive", "heaven", "ate", "sex", "sick"])


def _is_spelled(words: Sequence[str], at: int) -> bool:
    """Whether the word is one of several letters in a row, or has an example ("a as in apple")."""
    following = tuple(words[at + 1 : at + 3])
    if following in (("as", "in"), ("like", "in")) or words[at] in _CAPITALS:
        return True
    if words[at] not in _LETTER_NAMES and words[at] not in _SPELLING_ALPHABET:
        return False
    near = [*words[max(0, at - 2) : at], *words[at + 1 : at + 3]]
    return any(len(word) == 1 and word.isalpha() for word in near) and words[at] not in ("at", "as", "in")


def read_name(text: str) -> str | None:
    """Reads "my name is ann smith" or "Smith, S M Y T H" as a name."""
    said = _INTRODUCTION.sub("", text[:MAX_CHARS].strip()).strip(" .,!?")
    words = re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*\.?", said)
    letters = [word for word in words if len(word.strip(".")) == 1]
    if len(letters) >= MIN_SPELLED + 1 or re.search(r"\b\w as in \w|\b\w-\w-\w", said):
        spelled = read_spelling(said)
        return spelled if spelled is None or not spelled.islower() else spelled.capitalize()
    if not 1 <= len(words) <= MAX_NAME_WORDS:
        return None
    return " ".join(word if any(map(str.isupper, word)) else word.capitalize() for word in words)


MAX_NAME_WORDS: Final = 5


def group_digits(digits: str) -> list[str]:
    """Divides digits as telephone numbers are written: 3 and 4, 3, 3 and 4, or threes."""
    plus, digits = ("+", digits[1:]) if digits.startswith("+") else ("", digits)
    if len(digits) <= 4:
        groups = [digits]
    elif len(digits) == 11 and digits[0] == "1":
        # With the country code of North America.
        groups = [digits[0], digits[1:4], digits[4:7], digits[7:]]
    else:
        last = {1: 4, 2: 2, 0: 3}[len(digits) % 3]
        threes = digits[: len(digits) - last]
        groups = [*(threes[at : at + 3] for at in range(0, len(threes), 3)), digits[len(digits) - last :]]
    return [plus + groups[0], *groups[1:]]


def say_digits(digits: str) -> str:
    """Writes digits to be read aloud one by one: "5 5 5, 1 2 3 4"."""
    return ", ".join(" ".join(group) for group in group_digits(digits))


_SYMBOL_NAMES: Final = {"-": "dash", ".": "dot", "_": "underscore", "'": "apostrophe", "+": "plus", "@": "at"}


def say_spelling(word: str) -> str:
    """Writes a word to be read aloud letter by letter: "S, M, I, T, H"."""
    return ", ".join(_SYMBOL_NAMES.get(letter, letter.upper()) for letter in word)


def say_email(address: str) -> str:
    """Writes an address to be read aloud: "ann dot smith at example dot com"."""
    return re.sub(r"[-._+@]", lambda symbol: f" {_SYMBOL_NAMES[symbol.group()]} ", address)

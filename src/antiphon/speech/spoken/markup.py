"""Turns Markdown, the little HTML that comes with it, and addresses into plain sentences."""

import re
from collections.abc import Iterator
from typing import Final

CODE_SHOWN: Final = "I've put the code on the screen."
"""Said in place of a code block."""

_FENCE: Final = re.compile(r"(`{3,}|~{3,})[^`]*\Z")
_RULE: Final = re.compile(r"[-*_=~:|+\s]{2,}")
"""A line, the underline of a heading, or that of a table's head."""
_BLOCK: Final = re.compile(r"(?:(?:#{1,6}|[-*+•‣◦▪–]|[0-9]{1,3}[.)])\s+(?:\[[ xX]\]\s+)?|>\s*)+")
_CLOSED: Final = re.compile(r"[.!?…:;,][\"'”’)\]}»*_`]*\Z")

_LINK_TARGET: Final = r"\((?:[^()\s]|\([^()\s]{0,200}\)){0,2000}+(?:\s[^()]{0,200})?\)"
_LINK: Final = re.compile(rf"!?\[(?!\^?[0-9]{{1,3}}\]\[)([^\[\]]{{0,500}})\](?:{_LINK_TARGET}|\[[^\[\]]{{0,100}}\])")
_NOTE: Final = re.compile(r"\[\^?[0-9]{1,3}\]")
_ANGLED: Final = re.compile(r"<((?:https?://|mailto:)[^\s<>]{1,2000}|[^\s<>@]{1,64}@[^\s<>]{1,255})>")
_ENTITY: Final = re.compile(r"&(?:amp;)*(?:nbsp|lt|gt|quot|apos|#39);")
_AMPERSAND: Final = re.compile(r"&(?:amp;)+")
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")

_CODE: Final = re.compile(r"(`{1,2})([^`]{1,500})\1(?!`)")
_CODE_MARKS: Final = re.compile(r"[_(){}\[\]\"';]+|(?<=[a-z])(?=[A-Z])")
_CODE_DOT: Final = re.compile(r"(?<=[A-Za-z])\.(?=[A-Za-z])")
_PRODUCT: Final = re.compile(r"(?<=[0-9])\s?\*\s?(?=[0-9])")
_BETWEEN_WORDS: Final = re.compile(r"(?<=\w)_+(?=\w)")
_LEFT_OVER: Final = re.compile(r"[*_`\\|]+|~~+")


def strip_lines(text: str) -> str:
    """Joins all lines. Headings, list items and table rows become sentences."""
    said: list[str] = []
    lines = list(_read_lines(text))
    for place, (line, is_sentence) in enumerate(lines):
        following = lines[place + 1][0] if place + 1 < len(lines) else ""
        goes_on = not is_sentence and (not following or following[:1].islower())
        said.append(line if goes_on or _CLOSED.search(line[-8:]) else f"{line}.")
    return " ".join(said)


def _read_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yields the lines that have text, and whether each is a sentence whatever follows."""
    fence, has_code = None, False
    for line in map(str.strip, text.split("\n")):
        if fence is not None:
            fence = None if line and not line.strip(fence[0]) and len(line) >= len(fence) else fence
        elif opening := _FENCE.match(line):
            fence = opening[1]
            if not has_code:
                yield CODE_SHOWN, True
            has_code = True
        elif not _RULE.fullmatch(line):
            block = _BLOCK.match(line)
            rest = line[block.end() :] if block else line
            is_sentence = block is not None and block[0].strip("> \t") != ""
            if rest.startswith("|"):
                rest = ", ".join(filter(None, map(str.strip, rest.split("|"))))
                is_sentence = True
            if rest := rest.strip():
                yield rest, is_sentence


def unlink(text: str) -> str:
    """Replaces links and images by their texts."""
    text = _LINK.sub(r"\1", text)
    return _ANGLED.sub(r"\1", _NOTE.sub("", text))


def strip_inline(text: str) -> str:
    text = _CODE.sub(lambda code: _CODE_DOT.sub(" dot ", _CODE_MARKS.sub(" ", code[2])), text)
    text = _AMPERSAND.sub("&", _ENTITY.sub(" ", _TAG.sub(" ", text)))
    text = _PRODUCT.sub(" times ", text)
    return _LEFT_OVER.sub("", _BETWEEN_WORDS.sub(" ", text))


_PAGE: Final = re.compile(
    r"(?<![\w.])(?:(?:https?|ftp|wss?)://|www\.)[^\s<>\"'`)\]}”’]+(?<![.,;:!?…*_])", re.IGNORECASE
)
_HOST: Final = re.compile(r"(?:\w{2,5}://)?(?:[^/@?#]*@)?(?:www\.)?([^/:?#]*)", re.IGNORECASE)
_BARE_HOST: Final = re.compile(
    r"(?<![\w.@/-])(?:[A-Za-z0-9][A-Za-z0-9-]{1,62}\.){1,8}[a-z]{2,63}(?:/[\w.?=&%~/-]{0,200})?(?<![.?])(?![\w@/-]|\.\w)"
)
"""A host without a scheme, "example.org/help", or a file, "main.py": both are said with "dot"."""
_DOTTED_NUMBER: Final = re.compile(r"(?<![0-9.])[0-9]{1,9}(?:\.[0-9]{1,9}){2,8}(?![\w-]|\.[0-9])")
"""A version, or the address of a machine. Voices leave its dots out."""
_IPV6: Final = re.compile(
    r"(?<![\w:.])(?=\S{0,40}::|(?:[0-9a-f]{1,4}:){7})(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])"
)
_MAIL: Final = re.compile(r"(?<![\w.+-])(?:mailto:)?([\w.+-]{1,64})@([\w-]{1,63}(?:\.[\w-]{1,63}){1,8})")
_IN_ADDRESS: Final = {".": " dot ", "-": " dash ", "_": " underscore ", "+": " plus "}

_PHONE: Final = re.compile(
    r"(?<![\w+.-])(?:(?:\+[0-9]{1,3}[ .-]?)?(?:\([0-9]{3}\) ?|[0-9]{3}[-. ])[0-9]{3}[-. ][0-9]{4}|[0-9]{3}-[0-9]{4})"
    r"(?![\w-]|\.[0-9])"
)
_DIGITS: Final = re.compile(r"\+?[0-9]+")


def speak_addresses(text: str) -> str:
    """Reduces the address of a page to its host: the rest is useless in speech."""
    text = _PAGE.sub(lambda page: _spell(_host(page[0])), text)
    text = _MAIL.sub(lambda mail: f"{_spell(mail[1])} at {_spell(mail[2])}", text)
    text = _BARE_HOST.sub(lambda host: _spell(host[0].partition("/")[0]), text)
    text = _IPV6.sub("a numeric address", text)
    text = _PHONE.sub(_speak_phone, text)
    return _DOTTED_NUMBER.sub(lambda number: _spell(number[0]), text)


def _host(page: str) -> str:
    found = _HOST.match(page)
    return found[1] if found else ""


def _spell(part: str) -> str:
    return "".join(_IN_ADDRESS.get(each, each) for each in part).strip()


def _speak_phone(phone: re.Match[str]) -> str:
    """Speaks a phone number digit by digit, in groups."""
    return ", ".join(" ".join(group) for group in _DIGITS.findall(phone[0])).replace("+", "plus")

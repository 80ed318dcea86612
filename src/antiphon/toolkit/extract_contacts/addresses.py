"""Finds e-mail addresses, phone numbers and links in a text.

No pattern can take long, whatever the text: repetitions are bounded or possessive, and a match begins only where the
thing itself can begin.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit


class Found(NamedTuple):
    text: str
    start: int
    end: int


_LOCAL: Final = r"[A-Za-z0-9._%+'-]"
_EMAIL: Final = re.compile(
    rf"(?<!{_LOCAL})({_LOCAL}{{1,64}}+)@((?:[A-Za-z0-9-]{{1,63}}+\.){{1,8}}[A-Za-z]{{2,63}})(?!-?[A-Za-z0-9_])"
)

_LINK: Final = re.compile(r"(?<![A-Za-z0-9])https?://[^\s<>\"`]{1,2000}+", re.IGNORECASE)
_LINKEDIN: Final = re.compile(
    r"(?<![\w./@-])(?:[a-z]{2,3}\.)?linkedin\.com/[^\s<>\"`]{1,500}+", re.IGNORECASE | re.ASCII
)
_AFTER_LINK: Final = ".,;:!?'*_"
_BRACKETS: Final = {")": "(", "]": "[", "}": "{"}

_BEFORE_PHONE: Final = r"(?<![\w.,/+-])"
_EXTENSION: Final = r"(?:[ ]{0,2}(?:x|ext\.?|extension)[ ]?\d{1,6})?"
_PHONE: Final = re.compile(
    rf"""
    (?P<labelled>
        \b(?:tel|telephone|phone|mobile|cell|fax|call|whatsapp)\b[ .:#]{{0,4}}(?:number[ :]{{1,3}})?
        (?P<number>[+(]?\d[\d ()./-]{{4,22}}\d{_EXTENSION})(?!\d)
    )
    | {_BEFORE_PHONE}(?:
        \+1[ .-]?\(?\d{{3}}\)?[ .-]?\d{{3}}[ .-]?\d{{4}}{_EXTENSION}   # North America, with the country
        | \+(?!1)\d[\d ()./-]{{6,22}}\d{_EXTENSION}                    # anywhere else, with the country
        | (?:1[ .-])?(?:\(\d{{3}}\)\ ?|\d{{3}}[ .-])\d{{3}}[ .-]\d{{4}}{_EXTENSION}
        | (?:\(0\d{{1,5}}\)|0\d{{1,5}}[ /-])\ ?\d[\d -]{{3,12}}\d{_EXTENSION}   # with the zero of most other countries
    )
    (?![\w/]|[.,-]\d)
    """,
    re.IGNORECASE | re.VERBOSE | re.ASCII,
)
_DATE: Final = re.compile(r"\d{1,4}[-/. ]\d{1,2}[-/. ]\d{1,4}", re.ASCII)
_PHONE_DIGITS: Final = range(6, 16)


def find_links(text: str) -> Iterator[Found]:
    """Yields the links in order. Links to LinkedIn may lack their scheme."""
    both = [*_LINK.finditer(text), *_LINKEDIN.finditer(text)]
    end = 0
    for match in sorted(both, key=re.Match.start):
        link = _trim(match[0])
        if match.start() >= end and _host(link):
            end = match.start() + len(link)
            yield Found(link, match.start(), end)


def is_linkedin(link: str) -> bool:
    host = _host(link)
    return host == "linkedin.com" or host.endswith(".linkedin.com")


def with_scheme(link: str) -> str:
    return link if link.lower().startswith(("http://", "https://")) else f"https://{link}"


def _host(link: str) -> str:
    try:
        return urlsplit(with_scheme(link)).hostname or ""
    except ValueError:
        return ""


def _trim(link: str) -> str:
    """Removes the full stop or bracket of the sentence around the link; "/Ulm_(city)" keeps its own."""
    while link:
        last = link[-1]
        opening = _BRACKETS.get(last)
        if last not in _AFTER_LINK and (opening is None or link.count(last) <= link.count(opening)):
            break
        link = link[:-1]
    return link


def find_emails(text: str) -> Iterator[Found]:
    for match in _EMAIL.finditer(text):
        # A quotation mark before an address is not part of it.
        address = match[0].lstrip("'")
        local, domain = address.split("@")
        labels_stand = all(label.strip("-") == label for label in domain.split("."))
        if local and local.strip(".") == local and ".." not in local and labels_stand:
            yield Found(address, match.end() - len(address), match.end())


def find_phones(text: str) -> Iterator[Found]:
    for match in _PHONE.finditer(text):
        group = "number" if match["labelled"] else 0
        number = match[group]
        count = len(digits(number.lower().partition("x")[0]))
        if count in _PHONE_DIGITS and not _DATE.fullmatch(number) and number.count("(") == number.count(")"):
            yield Found(number, match.start(group), match.end(group))


def digits(phone: str) -> str:
    """Returns the digits, which two ways of writing the same number have in common."""
    return "".join(char for char in phone if char.isdigit())

"""Addresses of pages, people and telephones."""

import re
from typing import Final

_PAGE: Final = re.compile(
    r"(?<![\w.])(?:(?:https?|ftp|wss?)://|www\.)[^\s<>\"'`)\]}”’]+(?<![.,;:!?…*_])", re.IGNORECASE
)
_HOST: Final = re.compile(r"(?:\w{2,5}://)?(?:[^/@?#]*@)?(?:www\.)?([^/:?#]*)", re.IGNORECASE)
_BARE_HOST: Final = re.compile(r"(?<![\w.@/-])(?:[A-Za-z0-9][A-Za-z0-9-]{1,62}\.){1,8}[a-z]{2,63}(?![\w@/-]|\.\w)")
"""A host without a scheme, "example.org", or a file, "main.py": both are said with "dot"."""
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
    """Of a page, its host: nobody can use the rest by ear."""
    text = _PAGE.sub(lambda page: _spell(_host(page[0])), text)
    text = _MAIL.sub(lambda mail: f"{_spell(mail[1])} at {_spell(mail[2])}", text)
    text = _BARE_HOST.sub(lambda host: _spell(host[0]), text)
    text = _IPV6.sub("a numeric address", text)
    return _PHONE.sub(_speak_phone, text)


def _host(page: str) -> str:
    found = _HOST.match(page)
    return found[1] if found else ""


def _spell(part: str) -> str:
    return "".join(_IN_ADDRESS.get(each, each) for each in part).strip()


def _speak_phone(phone: re.Match[str]) -> str:
    """Digit by digit, in its groups."""
    return ", ".join(" ".join(group) for group in _DIGITS.findall(phone[0])).replace("+", "plus")

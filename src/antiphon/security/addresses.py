"""Parses the addresses of other servers in the settings, and their API keys. Pure."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from antiphon.errors import AntiphonError
from antiphon.security.origin import is_loopback

OPENAI_URL: Final = "https://api.openai.com/v1"
OPENAI_KEY: Final = "OPENAI_API_KEY"
"""The environment variable for the API key of OpenAI, or of a compatible server."""


_OWN_DOMAINS: Final = (".local", ".lan", ".internal", ".home.arpa")


class AddressError(AntiphonError):
    """An address, a name or a key is invalid. The text contains no secret."""

    code = "address"


def parse_place(text: str) -> tuple[str | None, str]:
    """Splits `URL#MODEL`, or `MODEL` alone, into the address and the name, which may be missing.

    Raises `AddressError`.
    """
    url, model = None, text
    if "://" in text:
        url, _, model = text.partition("#")
        _check(url)
        url = url.rstrip("/")
    if not model.isprintable() or " " in model:
        raise AddressError(f"{model!r} is not a valid model name: it contains spaces or control characters.")
    return url, model


def split(address: str) -> SplitResult:
    """Splits an address. Raises `AddressError` also for an invalid port, which `urlsplit` reports only on access."""
    try:
        parts = urlsplit(address)
        parts.port  # noqa: B018 - raises if the port is not a number
    except ValueError as error:
        raise AddressError(f'"{_hide(address)}" is not the address of a server: {error}.') from error
    return parts


def leads_here(url: str) -> bool:
    """Returns whether the server is on this machine."""
    host = urlsplit(url).hostname or ""
    return is_loopback(host) or host.endswith(".localhost")


def is_own(url: str) -> bool:
    """Returns whether the server is on this machine or in its own network, where requests cost nothing."""
    host = urlsplit(url).hostname or ""
    try:
        return leads_here(url) or ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith(_OWN_DOMAINS)


def read_key(env: Mapping[str, str], variable: str) -> str | None:
    """Returns None if there is no key. Raises `AddressError` for a key that cannot be sent in a header."""
    key = env.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise AddressError(f"{variable} contains characters that an API key cannot have. Set it again.")
    return key or None


def _check(url: str) -> None:
    parts = split(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", url):
        form = "It must start with http:// or https:// and a host."
        raise AddressError(f'"{_hide(url)}" is not the address of a server. {form}')
    if "@" in parts.netloc or parts.query:
        raise AddressError(
            f"the address of a server contains a user or a query. Remove it; a key belongs in {OPENAI_KEY}."
        )


def _hide(address: str) -> str:
    """Hides what may be a secret, even if the address cannot be parsed."""
    return re.sub(r"(?<=//).*@|(?<=\?).*", "…", address, flags=re.DOTALL)

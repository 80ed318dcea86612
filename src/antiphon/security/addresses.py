"""Servers of others, as the settings name them: their addresses, and the keys that open them. Pure."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from antiphon.errors import AntiphonError
from antiphon.security.origin import is_loopback

OPENAI_URL: Final = "https://api.openai.com/v1"
OPENAI_KEY: Final = "OPENAI_API_KEY"
"""The environment's variable for the key of OpenAI's server, or of one that imitates it."""


class AddressError(AntiphonError):
    """An address, a name or a key that cannot be meant. There is no secret in its text."""

    code = "address"


def parse_place(text: str) -> tuple[str | None, str]:
    """Where a model is: the address and the name of `URL#MODEL`, or of `MODEL` alone. The name may be missing.

    Raises `AddressError`.
    """
    url, model = None, text
    if "://" in text:
        url, _, model = text.partition("#")
        _check(url)
        url = url.rstrip("/")
    if not model.isprintable() or " " in model:
        raise AddressError(f"{model!r} is no name of a model: it has blanks or control characters in it.")
    return url, model


def split(address: str) -> SplitResult:
    """Raises `AddressError` where `urlsplit` would wait with it until somebody asks for the port."""
    try:
        parts = urlsplit(address)
        parts.port  # noqa: B018 - raises for a port that is no number
    except ValueError as error:
        raise AddressError(f'"{_hide(address)}" is no address of a server: {error}.') from error
    return parts


def leads_here(url: str) -> bool:
    """Whether the server is on this machine."""
    host = urlsplit(url).hostname or ""
    return is_loopback(host) or host.endswith(".localhost")


def read_key(env: Mapping[str, str], variable: str) -> str | None:
    """None if there is no key. Raises `AddressError` for one that no header can carry."""
    key = env.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise AddressError(f"{variable} holds characters that no API key has. Set it again.")
    return key or None


def _check(url: str) -> None:
    parts = split(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", url):
        form = "It must start with http:// or https:// and a host."
        raise AddressError(f'"{_hide(url)}" is no address of a server. {form}')
    if "@" in parts.netloc or parts.query:
        raise AddressError(
            f"the address of a server holds a user or a query. Leave it out; a key belongs in {OPENAI_KEY}."
        )


def _hide(address: str) -> str:
    """Without what may be a secret, even where the address is so wrong that it has no parts."""
    return re.sub(r"(?<=//).*@|(?<=\?).*", "…", address, flags=re.DOTALL)

"""Access tokens and resume handles. Only their hashes are stored."""

import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Final

ACCESS: Final = "apn_"
HANDLE: Final = "apr_"
"""The prefixes tell people, and scanners for leaked secrets, what a string is."""

RANDOM_BYTES: Final = 32
_SHAPE: Final = re.compile(ACCESS + r"[A-Za-z0-9_-]{43}")
_BEARER: Final = re.compile(r"bearer +([A-Za-z0-9._~+/-]+=*) *", re.IGNORECASE)

RandomBytes = Callable[[int], bytes]


def make_token(random_bytes: RandomBytes = secrets.token_bytes) -> str:
    """Makes a new access token, which is shown to its owner once."""
    return ACCESS + _encode(random_bytes(RANDOM_BYTES))


def make_handle(random_bytes: RandomBytes = secrets.token_bytes) -> str:
    """Makes a new handle for resuming a session."""
    return HANDLE + _encode(random_bytes(RANDOM_BYTES))


def hash_token(secret: str) -> str:
    """Returns the hash that is stored and looked up instead of the secret.

    A plain SHA-256 without salt or stretching is enough, since 256 random bits cannot be guessed. The time of a lookup
    depends on the hash, but an attacker cannot choose the hash or learn the secret from it, so the store does not need
    comparisons in constant time.
    """
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def is_token(secret: str) -> bool:
    """Returns whether a string has the form of an access token. Nothing else is looked up."""
    return _SHAPE.fullmatch(secret) is not None


def bearer(header: str | None) -> str | None:
    """Returns the token in an Authorization header; None if there is none, or if the scheme is not Bearer."""
    found = _BEARER.fullmatch(header) if header is not None else None
    return found[1] if found else None


def _encode(random: bytes) -> str:
    return urlsafe_b64encode(random).rstrip(b"=").decode("ascii")

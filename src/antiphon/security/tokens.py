"""Secrets that we hand out: access tokens and resume handles. Only their hashes are stored."""

import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Final

ACCESS: Final = "apn_"
HANDLE: Final = "apr_"
"""The prefixes tell a person, and a scanner of leaked secrets, what a string is."""

RANDOM_BYTES: Final = 32
_SHAPE: Final = re.compile(ACCESS + r"[A-Za-z0-9_-]{43}")
_BEARER: Final = re.compile(r"bearer +([A-Za-z0-9._~+/-]+=*) *", re.IGNORECASE)

RandomBytes = Callable[[int], bytes]


def make_token(random_bytes: RandomBytes = secrets.token_bytes) -> str:
    """A new access token, which is shown to its owner once."""
    return ACCESS + _encode(random_bytes(RANDOM_BYTES))


def make_handle(random_bytes: RandomBytes = secrets.token_bytes) -> str:
    """A new handle with which a client takes up its session again."""
    return HANDLE + _encode(random_bytes(RANDOM_BYTES))


def hash_token(secret: str) -> str:
    """What is stored, and looked up, in place of the secret.

    A plain SHA-256, without salt or stretching: those protect secrets that can be guessed, and 256 random bits cannot.
    Looking the hash up in an index takes a time that depends on it, but whoever measures that learns digits of a hash
    that he cannot steer, and nothing of the secret; so a store needs no comparison in constant time.
    """
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def is_token(secret: str) -> bool:
    """Whether it has the shape of an access token, so that nothing else is looked up or taken for one."""
    return _SHAPE.fullmatch(secret) is not None


def bearer(header: str | None) -> str | None:
    """The secret in an Authorization header; None if there is none, or if it is of another scheme."""
    found = _BEARER.fullmatch(header) if header is not None else None
    return found[1] if found else None


def _encode(random: bytes) -> str:
    return urlsafe_b64encode(random).rstrip(b"=").decode("ascii")

"""Locks for what one row cannot protect, such as a limit on the number of rows."""

from hashlib import blake2b
from typing import Final

from sqlalchemy import Connection, text

_LOCK: Final = text("SELECT pg_advisory_xact_lock(:key)")


def lock(connection: Connection, *names: str) -> None:
    """Keeps other transactions that take this lock waiting until this one ends. Call it before the first statement.

    In SQLite, a transaction keeps out all others in any case.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK, {"key": key_of(*names)})


def key_of(*names: str) -> int:
    """Returns the number of a lock. Different names may get the same one, and then wait without need."""
    hashed = blake2b("\0".join(names).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(hashed.digest(), signed=True)

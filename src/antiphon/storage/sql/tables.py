"""The tables. Where a row is a struct of `base`, its columns are the struct's fields, in the struct's order.

A change here needs a step in `migrations/versions/`; a test compares the two.
"""

from typing import Final

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, Table, Text, UniqueConstraint

metadata: Final = MetaData()

# Only a column of exactly the type INTEGER is SQLite's own row number.
_SEQUENCE: Final = BigInteger().with_variant(Integer, "sqlite")

# NULLs are distinct to a unique constraint, in both dialects: any number of calls may lack one of the keys.
calls: Final = Table(
    "calls",
    metadata,
    Column("id", Text, primary_key=True),
    Column("session_id", Text, nullable=False),
    Column("provider_key", Text),
    Column("hash_key", Text),
    Column("fingerprint", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("lease_until_ms", BigInteger, nullable=False),
    Column("result", LargeBinary),
    UniqueConstraint("session_id", "provider_key", name="calls_provider_key"),
    UniqueConstraint("session_id", "hash_key", name="calls_hash_key"),
)

confirmations: Final = Table(
    "confirmations",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True),
    Column("token_hash", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("tool_digest", Text, nullable=False),
    Column("args", LargeBinary, nullable=False),
    Column("call_id", Text),
    Column("occurrence", Integer, nullable=False),
    Column("mode", Text, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("preview", Text, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    UniqueConstraint("token_hash", name="confirmations_token_hash"),
    Index("confirmations_owner", "session_id", "user"),
)

audit: Final = Table(
    "audit",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True),
    Column("ts_ms", BigInteger, nullable=False),
    Column("line", Text, nullable=False),
    # A reader goes on after the last number it saw, so a number must not come back when old lines are deleted.
    sqlite_autoincrement=True,
)

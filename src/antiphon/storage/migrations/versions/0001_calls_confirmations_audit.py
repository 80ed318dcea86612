"""Calls, confirmations and the audit."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0001"
down_revision: Final = None


def upgrade() -> None:
    op.create_table(
        "calls",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("provider_key", sa.Text),
        sa.Column("hash_key", sa.Text),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("started_ms", sa.BigInteger, nullable=False),
        sa.Column("lease_until_ms", sa.BigInteger, nullable=False),
        sa.Column("result", sa.LargeBinary),
        sa.UniqueConstraint("session_id", "provider_key", name="calls_provider_key"),
        sa.UniqueConstraint("session_id", "hash_key", name="calls_hash_key"),
    )
    sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "confirmations",
        sa.Column("seq", sequence, primary_key=True),
        sa.Column("token_hash", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("tool_digest", sa.Text, nullable=False),
        sa.Column("args", sa.LargeBinary, nullable=False),
        sa.Column("call_id", sa.Text),
        sa.Column("occurrence", sa.Integer, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("preview", sa.Text, nullable=False),
        sa.Column("expires_ms", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("token_hash", name="confirmations_token_hash"),
    )
    op.create_index("confirmations_owner", "confirmations", ["session_id", "user"])
    op.create_table(
        "audit",
        sa.Column("seq", sequence, primary_key=True),
        sa.Column("ts_ms", sa.BigInteger, nullable=False),
        sa.Column("line", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )

"""Admin tokens, events of sessions, and columns by which the audit is searched."""

import json
from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0011"
down_revision: Final = "0010"

_SEARCHED: Final = ("session", "user", "conversation", "tool", "outcome")
_INDEXED: Final = ("session", "user", "conversation", "tool")
_BATCH: Final = 1_000


def upgrade() -> None:
    op.add_column("tokens", sa.Column("is_admin", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        "session_events",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("data", sa.JSON, nullable=False),
    )
    op.create_index("session_events_of_conversation", "session_events", ["conversation_id", "seq"])
    op.create_index("conversations_updated", "conversations", ["updated_ms"])
    for name in _SEARCHED:
        op.add_column("audit", sa.Column(name, sa.Text))
    _fill()
    for name in _INDEXED:
        op.create_index(f"audit_of_{name}", "audit", [name, "seq"])


def _fill() -> None:
    """Copies what the audit is searched by out of the lines that are there already."""
    names = [sa.column(name, sa.Text) for name in _SEARCHED]
    audit = sa.table("audit", sa.column("seq", sa.BigInteger), sa.column("line", sa.Text), *names)
    fill = sa.update(audit).where(audit.c.seq == sa.bindparam("number"))
    fill = fill.values({name: sa.bindparam(f"new_{name}") for name in _SEARCHED})
    connection, last = op.get_bind(), 0
    page = sa.select(audit.c.seq, audit.c.line).where(audit.c.seq > sa.bindparam("last")).order_by(audit.c.seq)
    while rows := connection.execute(page.limit(_BATCH), {"last": last}).fetchall():
        filled = []
        for number, text in rows:
            line = {"outcome": "ok", **json.loads(text)}
            filled.append({"number": number} | {f"new_{name}": line.get(name) for name in _SEARCHED})
        connection.execute(fill, filled)
        last = rows[-1][0]

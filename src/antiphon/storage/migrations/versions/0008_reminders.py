"""Reminders, timers and alarms."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0008"
down_revision: Final = "0007"


def upgrade() -> None:
    op.create_table(
        "reminders",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("due_ms", sa.BigInteger, nullable=False),
        sa.Column("zone", sa.Text, nullable=False),
        sa.Column("repeat", sa.Text),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("reminders_due", "reminders", ["due_ms"])
    op.create_index("reminders_of_user", "reminders", ["user", "due_ms"])
    op.create_table(
        "rings",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("reminder_id", sa.Text, nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("due_ms", sa.BigInteger, nullable=False),
        sa.Column("zone", sa.Text, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("rung_ms", sa.BigInteger, nullable=False),
        sa.Column("heard_ms", sa.BigInteger),
    )
    op.create_index("rings_of_user", "rings", ["user", "rung_ms"])
    op.create_index("rings_of_reminder", "rings", ["reminder_id"])
    op.create_table(
        "ring_deliveries",
        sa.Column("ring_id", sa.Text, sa.ForeignKey("rings.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("announcement", sa.Text),
    )

"""Recordings of calls."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0012"
down_revision: Final = "0011"


def upgrade() -> None:
    op.create_table(
        "recordings",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("started_ms", sa.BigInteger, nullable=False),
        sa.Column("duration_ms", sa.BigInteger),
        sa.Column("channels", sa.Integer, nullable=False),
        sa.Column("size_bytes", sa.BigInteger),
        sa.Column("format", sa.Text, nullable=False),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("marks", sa.JSON, nullable=False),
        sa.UniqueConstraint("file", name="recordings_file"),
    )
    op.create_index("recordings_of_conversation", "recordings", ["conversation_id"])
    op.create_index("recordings_of_user", "recordings", ["user", "started_ms"])
    op.create_index("recordings_oldest", "recordings", ["started_ms"])

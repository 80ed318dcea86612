"""Images, the sound of recordings that several servers share, and an index of the sessions of a conversation."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0014"
down_revision: Final = "0013"


def upgrade() -> None:
    op.create_table(
        "images",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("prompt", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_index("images_of_user", "images", ["user", "at_ms"])
    op.create_index("images_oldest", "images", ["at_ms"])
    op.add_column("recordings", sa.Column("is_stored", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        "recording_parts",
        sa.Column("recording_id", sa.Text, sa.ForeignKey("recordings.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_index("sessions_conversation", "sessions", ["conversation_id"])

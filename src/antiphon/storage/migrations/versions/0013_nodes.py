"""What several processes share: commands for each other's sessions, and what was used of the limits."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0013"
down_revision: Final = "0012"


def upgrade() -> None:
    op.create_table(
        "session_commands",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("expires_ms", sa.BigInteger, nullable=False),
        sa.Column("is_taken", sa.Boolean, nullable=False),
        sa.Column("result", sa.LargeBinary),
    )
    op.create_index("session_commands_session", "session_commands", ["session_id"])
    op.create_table(
        "tool_uses",
        sa.Column("user", sa.Text, primary_key=True),
        sa.Column("tool", sa.Text, primary_key=True),
        sa.Column("times", sa.LargeBinary, nullable=False),
        sa.Column("until_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "used_quotas",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("full_at_ms", sa.BigInteger, nullable=False),
    )

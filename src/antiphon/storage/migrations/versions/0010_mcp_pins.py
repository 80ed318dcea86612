"""The tools of MCP servers as they were approved."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0010"
down_revision: Final = "0009"


def upgrade() -> None:
    op.create_table(
        "mcp_pins",
        sa.Column("server", sa.Text, primary_key=True),
        sa.Column("tool", sa.Text, primary_key=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("definition", sa.LargeBinary, nullable=False),
        sa.Column("seen_digest", sa.Text, nullable=False),
        sa.Column("seen_definition", sa.LargeBinary, nullable=False),
        sa.Column("is_offered", sa.Boolean, nullable=False),
        sa.Column("first_seen_ms", sa.BigInteger, nullable=False),
    )

"""Lists, and what tools keep for themselves."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0009"
down_revision: Final = "0008"


def upgrade() -> None:
    op.create_table(
        "list_items",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("list", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("added_ms", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("user", "list", "key", name="list_items_key"),
    )
    op.create_table(
        "tool_values",
        sa.Column("tool", sa.Text, primary_key=True),
        sa.Column("user", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.Column("updated_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("tool_values_user", "tool_values", ["user"])

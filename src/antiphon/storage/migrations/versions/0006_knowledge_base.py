"""The records of the knowledge base."""

from typing import Final

import sqlalchemy as sa
from alembic import op

from antiphon.storage.sql.full_text import index_of

revision: Final = "0006"
down_revision: Final = "0005"


def upgrade() -> None:
    sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "kb_records",
        sa.Column("seq", sequence, primary_key=True),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("url", sa.Text),
        sa.Column("source_type", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("last_updated_ms", sa.BigInteger, nullable=False),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("batch", sa.Text, nullable=False),
        sa.UniqueConstraint("id", "owner", "batch", name="kb_records_key"),
    )
    op.create_index("kb_records_newest", "kb_records", ["batch", "last_updated_ms"])
    op.create_table(
        "kb_passages",
        sa.Column("seq", sequence, primary_key=True),
        sa.Column("record_seq", sequence, sa.ForeignKey("kb_records.seq", ondelete="CASCADE"), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("vector", sa.LargeBinary),
        sqlite_autoincrement=True,
    )
    op.create_index("kb_passages_record", "kb_passages", ["record_seq"])
    state = op.create_table(
        "kb_state",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("embedder", sa.Text, nullable=False),
    )
    op.bulk_insert(state, [{"id": 1, "version": 0, "epoch": 0, "embedder": ""}])
    connection = op.get_bind()
    index_of(connection).create(connection)

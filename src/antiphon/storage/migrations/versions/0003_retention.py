"""Finds old calls and old lines of the audit without reading all of them."""

from typing import Final

from alembic import op

revision: Final = "0003"
down_revision: Final = "0002"


def upgrade() -> None:
    op.create_index("calls_oldest", "calls", ["started_ms"])
    op.create_index("audit_oldest", "audit", ["ts_ms"])

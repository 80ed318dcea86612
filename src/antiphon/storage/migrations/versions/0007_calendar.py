"""The events of local calendars, and the prepared arguments of calls that wait for confirmation."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0007"
down_revision: Final = "0006"


def upgrade() -> None:
    op.create_table(
        "calendar_events",
        sa.Column("user", sa.Text, primary_key=True),
        sa.Column("uid", sa.Text, primary_key=True),
        sa.Column("calendar", sa.Text, nullable=False),
        sa.Column("ics", sa.Text, nullable=False),
        sa.Column("first_ms", sa.BigInteger, nullable=False),
        sa.Column("last_ms", sa.BigInteger),
    )
    op.create_index("calendar_events_range", "calendar_events", ["user", "first_ms"])
    op.add_column("confirmations", sa.Column("prepared", sa.LargeBinary))

"""The handle before the newest one, which stays valid until the client has the newest."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0004"
down_revision: Final = "0003"


def upgrade() -> None:
    op.add_column("sessions", sa.Column("previous_handle_hash", sa.Text))
    op.create_index("sessions_previous_handle_hash", "sessions", ["previous_handle_hash"])

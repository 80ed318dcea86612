"""The energy levels that a call was answered at."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0005"
down_revision: Final = "0004"


def upgrade() -> None:
    op.add_column("voice_calls", sa.Column("energy_path", sa.JSON, nullable=False, server_default="[]"))

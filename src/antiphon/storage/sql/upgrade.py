"""Brings a database to the tables that this version knows. One that is up to date costs one query."""

import time
from typing import Final

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import OperationalError

from antiphon.storage.base import StorageError
from antiphon.storage.migrations import FOLDER, HEAD
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.sqlite import BUSY_TIMEOUT_S

_RETRY_S: Final = 0.02


async def upgrade(connections: Connections, name: str) -> None:
    def is_current(connection: Connection) -> bool:
        return _version(connection, name) == HEAD

    def migrate(connection: Connection) -> None:
        # Other processes are kept out only now: of two, the second finds the work done.
        if not is_current(connection):
            _migrate(connection)

    await connections.each(_write_ahead)
    if not await connections.each(is_current):
        await connections.together(migrate)


def _write_ahead(connection: Connection) -> None:
    """The file remembers this mode. The change to it needs the file alone, and does not always wait for that by itself:

    of four processes that opened a new file together, one in fifteen was told "database is locked" within 6 ms.
    """
    for retries_left in reversed(range(round(BUSY_TIMEOUT_S / _RETRY_S))):
        try:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            return
        except OperationalError as error:
            if "locked" not in str(error.orig) or not retries_left:
                raise
            time.sleep(_RETRY_S)


def _version(connection: Connection, name: str) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    if version is not None and version > HEAD:
        raise StorageError(
            f"{name} was written by a newer Antiphon (tables {version}, this one knows {HEAD}). "
            "Update Antiphon, or choose another database."
        )
    return version


def _migrate(connection: Connection) -> None:
    # Imported only when there is work: alembic takes longer to load than an up-to-date database to open.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)

"""Brings a database to the tables that this version knows. One that is up to date costs one query."""

import asyncio
from typing import Final

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from antiphon.storage.base import StorageError
from antiphon.storage.migrations import FOLDER, HEAD
from antiphon.storage.sql.connections import BUSY_TIMEOUT_S

_RETRY_S: Final = 0.02


async def upgrade(engine: AsyncEngine, name: str) -> None:
    async with engine.connect() as connection:
        await _write_ahead(connection)
        if await _version(connection, name) == HEAD:
            return
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="SERIALIZABLE")
        # The lock is taken before the version is read again: of two processes, the second finds the work done.
        await connection.exec_driver_sql("BEGIN IMMEDIATE")
        if await _version(connection, name) != HEAD:
            await connection.run_sync(_migrate)
        await connection.commit()


async def _write_ahead(connection: AsyncConnection) -> None:
    """The file remembers this mode. The change to it needs the file alone, and does not always wait for that by itself:

    of four processes that opened a new file together, one in fifteen was told "database is locked" within 6 ms.
    """
    for retries_left in reversed(range(round(BUSY_TIMEOUT_S / _RETRY_S))):
        try:
            await connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            return
        except OperationalError as error:
            if "locked" not in str(error.orig) or not retries_left:
                raise
            await asyncio.sleep(_RETRY_S)


async def _version(connection: AsyncConnection, name: str) -> str | None:
    version = await connection.run_sync(_stored_version)
    if version is not None and version > HEAD:
        raise StorageError(
            f"{name} was written by a newer Antiphon (tables {version}, this one knows {HEAD}). "
            "Update Antiphon, or choose another database."
        )
    return version


def _stored_version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return version


def _migrate(connection: Connection) -> None:
    # Imported only when there is work: alembic takes longer to load than an up-to-date database to open.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)

"""Deletes what is old, some rows at a time: all of them at once would keep every session waiting."""

from typing import Final

from sqlalchemy import ColumnElement, Delete, Table, delete, select

from antiphon.storage.sql.connections import Connections, Params

ROWS: Final = 500
FAMILIES: Final = 20
"""Of rows that take others with them. 20 conversations of 20 turns took 6 ms, 200 of them 88."""


def some(table: Table, where: ColumnElement[bool], most: int = ROWS) -> Delete:
    """A DELETE of at most so many of the rows. The table's key must be one column."""
    (key,) = table.primary_key
    return delete(table).where(key.in_(select(key).where(where).limit(most)))


async def delete_all(connections: Connections, some: Delete, params: Params) -> int:
    """Deletes some until there are no more, and says how many there were."""
    deleted = 0
    while found := await connections.change(some, params):
        deleted += found
    return deleted

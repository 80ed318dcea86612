"""Deleting rows that are no longer needed: in batches, and not after every write."""

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


SESSIONS_COUNTED: Final = 10_000


class Tally:
    """How much each session has added since it was last tidied, in this process.

    The least recently seen sessions are forgotten. They start again from nothing, which only puts the tidying off.
    """

    def __init__(self, due: int, sessions_counted: int = SESSIONS_COUNTED) -> None:
        self._due = due
        self._sessions_counted = sessions_counted
        self._added: dict[str, int] = {}

    def add(self, session_id: str, amount: int = 1) -> bool:
        """Whether it is time to tidy; then the count starts again."""
        added = self._added.pop(session_id, 0) + amount
        if added >= self._due:
            return True
        self._added[session_id] = added
        if len(self._added) > self._sessions_counted:
            del self._added[next(iter(self._added))]
        return False

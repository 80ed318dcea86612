"""When to tidy up after a session: not after each of its rows, but before they are too many."""

from typing import Final

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

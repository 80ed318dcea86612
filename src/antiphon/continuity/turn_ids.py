"""The ids that a connection gives to turns, where the session knows them by other ones or not at all."""

from msgspec.structs import replace

from antiphon.models.live import TurnStarted


class TurnIds:
    def __init__(self) -> None:
        self._ours: dict[str, str] = {}
        """By the connection's ids. An earlier connection had given the turn the id that the session knows."""
        self._unasked: set[str] = set()
        """Turns of the model that answer nothing. The session does not know them."""

    def clear(self) -> None:
        """Another connection is used from now on."""
        self._ours.clear()
        self._unasked.clear()

    def join(self, theirs: str, ours: str) -> None:
        self._ours[theirs] = ours

    def ignore(self, theirs: str) -> None:
        self._unasked.add(theirs)

    def is_ignored(self, theirs: str | None) -> bool:
        return theirs in self._unasked

    def ours(self, turn: str | None) -> str | None:
        """Returns the id by which the session knows a turn of the connection."""
        return self._ours.get(turn, turn) if turn is not None else None

    def rename(self, event: TurnStarted) -> TurnStarted:
        """Gives the turns that an event refers to the ids by which the session knows them."""
        return replace(event, continues=self.ours(event.continues), completes=self.ours(event.completes))

    def theirs(self, turn: str) -> str:
        """Returns the id by which the connection knows a turn."""
        return next((theirs for theirs, ours in self._ours.items() if ours == turn), turn)

"""Follows one typed message to the end of its answer. No input or output."""

from typing import Final

from antiphon.client.errors import TurnLost
from antiphon.client.events import Incoming, NewSession, Resumed
from antiphon.protocol.errors import ErrorCode
from antiphon.protocol.server_messages import Error, State, StateChanged

RESTING: Final = (State.IDLE, State.LISTENING)
OF_OTHER_THINGS: Final = (
    ErrorCode.RESUME_REJECTED,
    ErrorCode.UNKNOWN_CONVERSATION,
    ErrorCode.HELLO_LATE,
    ErrorCode.UNKNOWN_TYPE,
    ErrorCode.BAD_SETTINGS,
    ErrorCode.BAD_AUDIO,
)
"""Errors that no typed message can cause."""


class Turn:
    def __init__(self) -> None:
        self.over = False
        self._begun = False
        self._resumed_n: int | None = None
        self._older_n = 0

    def follow(self, incoming: Incoming, *, came_back: bool) -> None:
        """`came_back`: over a later connection than the one that the message was sent on. Raises `TurnLost`."""
        match incoming:
            case StateChanged(n=n) | Error(n=n) if n <= self._older_n:
                return
            case StateChanged(state=state) if state not in RESTING:
                self._begun = True
            case StateChanged() if self._begun:
                self.over = True
            case StateChanged(n=n) if self._resumed_n is not None and n > self._resumed_n:
                # All that was missed has been repeated, and the server has never begun to answer.
                raise TurnLost
            case Error(code=code) if not self._begun:
                # Once the answer has begun, the state says when it is over, after an error too.
                self.over = code not in OF_OTHER_THINGS
            case Resumed(n=n) if came_back:
                self._resumed_n = n
            case Resumed(n=n):
                # Sent in the first moment of this connection: what is repeated now was said before.
                self._older_n = n
            case NewSession() if came_back:
                raise TurnLost

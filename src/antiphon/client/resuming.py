"""Resuming after a lost connection: how long to wait, where to continue, and whether a typed message was answered.

No input or output here."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from antiphon.client.events import Incoming, NewSession, Resumed, TurnLost
from antiphon.protocol.client_messages import Hello
from antiphon.protocol.errors import ErrorCode
from antiphon.protocol.server_messages import (
    Error,
    GoAway,
    History,
    ServerMessage,
    Session,
    SpeechFrame,
    State,
    StateChanged,
    Transcript,
)

STEADY_S: Final = 10.0
"""After a connection that lasted this long, the next backoff starts from the shortest wait again."""


@dataclass(frozen=True, slots=True)
class Backoff:
    first_s: float = 0.5
    longest_s: float = 30.0
    jitter: Callable[[], float] = random.random
    """Returns 0 to 1, so that the clients of a restarted server do not all reconnect at the same moment."""

    def delay_s(self, attempt: int) -> float:
        """Returns the wait before an attempt, counted from 1. It doubles each time, less up to half at random."""
        # Beyond 32 doublings only the size of the number would grow.
        whole_s = min(self.longest_s, self.first_s * 2.0 ** min(attempt - 1, 32))
        return whole_s * (0.5 + 0.5 * self.jitter())


class ResumePosition:
    """Where a client is in its session: the handle for resuming it, and the last message that was received."""

    def __init__(self, hello: Hello) -> None:
        self.handle = hello.resume
        self.last_n = hello.last_n or 0
        self.session: Session | None = None
        """The newest `session` message."""
        self._hello = hello
        self._is_stored = False
        self._opened = False
        self._is_return = False
        self._introduced = False
        self._held: list[Incoming] = []

    def open(self) -> Hello:
        """Returns the hello for the next connection."""
        self._is_return = self._opened or self.handle is not None
        self._opened = True
        self._introduced = False
        self._held = []
        hello = replace(self._hello, resume=self.handle, last_n=self.last_n if self.handle else None)
        if self.session is not None and self._is_stored:
            # If the session cannot be resumed, at least the conversation continues. It has the initial messages.
            return replace(hello, conversation_id=self.session.conversation_id, initial_messages=())
        return hello

    def take(self, message: ServerMessage | SpeechFrame) -> Sequence[Incoming]:
        """Returns what to report now: nothing twice, and first whether the session was resumed."""
        match message:
            case Session() if not self._introduced:
                return self._introduce(message)
            case Session() if self.session is not None and message.n < self.session.n:
                # A repeated message of an earlier connection, whose handle is used up.
                self.last_n = max(self.last_n, message.n)
                return ()
            case Session():
                self.session, self.handle = message, message.resume
            case GoAway(resume=str(handle)):
                self.handle = handle
            case Transcript(is_final=True) | History():
                self._is_stored = True
        if not self._introduced:
            return self._hold(message)
        if 0 < message.n <= self.last_n:
            return ()
        self.last_n = max(self.last_n, message.n)
        return (message,)

    def close(self) -> Sequence[Incoming]:
        """Returns what was held back when the connection was lost."""
        held, self._held = self._held, []
        return held

    def _hold(self, message: Incoming) -> Sequence[Incoming]:
        """Holds messages back until the `session` message: their numbers may belong to a new session."""
        if self.handle is None:
            return (message,)
        self._held.append(message)
        return ()

    def _introduce(self, session: Session) -> Sequence[Incoming]:
        held, self._held = self._held, []
        self._introduced = True
        self.session, self.handle = session, session.resume
        if session.resumed:
            # Its number is higher than those of the repeated messages that follow, so it is not counted yet.
            return (Resumed(session.session_id, session.n), *held, session)
        self.last_n = session.n
        self._is_stored = any(isinstance(each, History) for each in held)
        if not self._is_return:
            return (*held, session)
        refusals = [each.message for each in held if isinstance(each, Error) and each.code == ErrorCode.RESUME_REJECTED]
        return (NewSession(session.session_id, "".join(refusals[:1])), *held, session)


RESTING: Final = (State.IDLE, State.LISTENING)
CLOSING: Final = (ErrorCode.UNAUTHENTICATED, ErrorCode.BLOCKED)
"""The server closes the connection right after these."""
OF_OTHER_THINGS: Final = (
    ErrorCode.RESUME_REJECTED,
    ErrorCode.UNKNOWN_CONVERSATION,
    ErrorCode.HELLO_LATE,
    ErrorCode.UNKNOWN_TYPE,
    ErrorCode.BAD_SETTINGS,
    ErrorCode.BAD_AUDIO,
)
"""Errors that a typed message cannot cause."""


class TypedTurn:
    """Follows one typed message to the end of its answer."""

    def __init__(self) -> None:
        self.over = False
        self._begun = False
        self._resumed_n: int | None = None
        self._older_n = 0

    def follow(self, incoming: Incoming, *, came_back: bool) -> None:
        """Takes what arrives. `came_back`: on a later connection than the message was sent on. Raises `TurnLost`."""
        match incoming:
            case StateChanged(n=n) | Error(n=n) if n <= self._older_n:
                return
            case StateChanged(state=state) if state not in RESTING:
                self._begun = True
            case StateChanged() if self._begun:
                self.over = True
            case StateChanged(n=n) if self._resumed_n is not None and n > self._resumed_n:
                # All missed messages were repeated, and the server has never begun to answer.
                raise TurnLost
            case Error(code=code) if not self._begun:
                # Once the answer has begun, the state tells when it is over, also after an error.
                self.over = code not in (*OF_OTHER_THINGS, *CLOSING)
            case Resumed(n=n) if came_back:
                self._resumed_n = n
            case Resumed(n=n):
                # Sent before the session was resumed on this connection: the repeated messages are older.
                self._older_n = n
            case NewSession() if came_back:
                raise TurnLost

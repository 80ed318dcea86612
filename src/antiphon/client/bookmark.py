"""Where a client stands in its session: the handle to come back with, and the last message that it has seen.

Both stay in memory. No input or output here: messages in, what to tell the caller out.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from antiphon.client.events import Incoming, NewSession, Resumed
from antiphon.protocol.client_messages import Hello
from antiphon.protocol.errors import ErrorCode
from antiphon.protocol.server_messages import Error, GoAway, History, ServerMessage, Session, SpeechFrame, Transcript


class Bookmark:
    def __init__(self, hello: Hello) -> None:
        self.handle = hello.resume
        self.last_n = hello.last_n or 0
        self.session: Session | None = None
        """The newest introduction of the session."""
        self._hello = hello
        self._is_stored = False
        self._opened = False
        self._is_return = False
        self._greeted = False
        self._held: list[Incoming] = []

    def open(self) -> Hello:
        """How to begin the next connection."""
        self._is_return = self._opened or self.handle is not None
        self._opened = True
        self._greeted = False
        self._held = []
        hello = replace(self._hello, resume=self.handle, last_n=self.last_n if self.handle else None)
        if self.session is not None and self._is_stored:
            # If the session cannot be resumed, at least the conversation goes on, and it has what was brought along.
            return replace(hello, conversation_id=self.session.conversation_id, initial_messages=())
        return hello

    def take(self, message: ServerMessage | SpeechFrame) -> Sequence[Incoming]:
        """What to tell the caller now: nothing twice, and first of all whether the session was resumed."""
        match message:
            case Session() if not self._greeted:
                return self._greet(message)
            case Session() if self.session is not None and message.n < self.session.n:
                # Repeated from an earlier connection: its handle was used up.
                self.last_n = max(self.last_n, message.n)
                return ()
            case Session():
                self.session, self.handle = message, message.resume
            case GoAway(resume=str(handle)):
                self.handle = handle
            case Transcript(is_final=True) | History():
                self._is_stored = True
        if not self._greeted:
            return self._hold(message)
        if 0 < message.n <= self.last_n:
            return ()
        self.last_n = max(self.last_n, message.n)
        return (message,)

    def close(self) -> Sequence[Incoming]:
        """What was held back when the connection went."""
        held, self._held = self._held, []
        return held

    def _hold(self, message: Incoming) -> Sequence[Incoming]:
        """Before the introduction, numbers say nothing: they may be those of a new session."""
        if self.handle is None:
            return (message,)
        self._held.append(message)
        return ()

    def _greet(self, session: Session) -> Sequence[Incoming]:
        held, self._held = self._held, []
        self._greeted = True
        self.session, self.handle = session, session.resume
        if session.resumed:
            # Its number is ahead of what is repeated after it, so it counts only with the message that follows that.
            return (Resumed(session.session_id, session.n), *held, session)
        self.last_n = session.n
        self._is_stored = any(isinstance(each, History) for each in held)
        if not self._is_return:
            return (*held, session)
        refusals = [each.message for each in held if isinstance(each, Error) and each.code == ErrorCode.RESUME_REJECTED]
        return (NewSession(session.session_id, "".join(refusals[:1])), *held, session)

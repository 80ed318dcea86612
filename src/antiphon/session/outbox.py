"""What a session says to its client: numbered, kept for a while, sent while there is a socket."""

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Final, Generic, Protocol, TypeVar

from antiphon.protocol import codec
from antiphon.protocol.client_messages import AudioForm
from antiphon.protocol.closing import Close
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.protocol.server_messages import Audio, ServerMessage

KEPT_MESSAGES: Final = 1_000
KEPT_BYTES: Final = 1 << 20
"""A client that has missed more than this gets the newest part, and the history for the rest."""
MAX_AHEAD: Final = 1 << 20
"""A client cannot have seen more messages than this that a process said and did not live to store."""

Frame = str | bytes

Text = TypeVar("Text", str, Frame)


class Link(Protocol):
    """A socket, as a session sees it. Neither method waits: a client that reads too slowly is the socket's to close."""

    def send(self, frame: Frame) -> None: ...

    def close(self, close: Close) -> None: ...


class Newest(Generic[Text]):
    """Numbered frames; when there are too many, the oldest are forgotten."""

    def __init__(self) -> None:
        self._frames: deque[tuple[int, Text]] = deque()
        self._bytes = 0
        self.forgotten_n = 0
        """The number of the last that was forgotten."""

    def __iter__(self) -> Iterator[tuple[int, Text]]:
        return iter(self._frames)

    def add(self, n: int, frame: Text) -> None:
        self._frames.append((n, frame))
        self._bytes += len(frame)
        while len(self._frames) > KEPT_MESSAGES or (self._bytes > KEPT_BYTES and len(self._frames) > 1):
            self.forgotten_n, forgotten = self._frames.popleft()
            self._bytes -= len(forgotten)


class Outbox:
    def __init__(self, last_n: int = 0, *, keeps: bool = True) -> None:
        """Without `keeps`, nothing is said twice: the client will not come back for what it has missed."""
        self.last_n = last_n
        self._keeps = keeps
        self._kept = Newest[Frame]()
        self._unsaved = Newest[str]()
        self._unheard = Newest[Frame]()
        """Speech, for as long as the client may not have played it."""
        self._first_n = 0
        """Where an earlier process has left off, if there was one."""
        self._link: Link | None = None
        self._form = AudioForm.JSON

    @property
    def link(self) -> Link | None:
        return self._link

    def send(self, message: ServerMessage, *, once: bool = False, secret: bool = False) -> None:
        """What is sent `once` is neither kept nor stored: it holds a secret, or is worth nothing later.

        What is `secret` is kept in memory for a client that comes back to this process, and not stored.
        """
        self.last_n += 1
        frame = codec.encode(message, self.last_n)
        if self._keeps and not once:
            self._kept.add(self.last_n, frame)
            if not secret:
                self._unsaved.add(self.last_n, frame)
        self._deliver(frame)

    def send_audio(self, turn: int, seq: int, pcm: bytes, *, last: bool = False, once: bool = False) -> None:
        """Speech at the wire's rate. It is kept in memory only: a session that wakes elsewhere makes it again."""
        self.last_n += 1
        frame: Frame
        if self._form is AudioForm.BINARY:
            frame = codec.encode_audio(self.last_n, turn, seq, pcm)
        else:
            message = Audio(data=codec.wav_base64(pcm, SPEECH_HZ), turn=turn, seq=seq, last=last)
            frame = codec.encode(message, self.last_n)
        if not once:
            self._unheard.add(self.last_n, frame)
        self._deliver(frame)

    def forget_speech(self) -> None:
        """The client has played it, or never will. Speech is most of what a session holds."""
        self._unheard = Newest[Frame]()

    def attach(self, link: Link, form: AudioForm) -> Link | None:
        """From now on the client is there. Gives the link that was there before, if any."""
        before, self._link, self._form = self._link, link, form
        return before

    def detach(self, link: Link) -> bool:
        """Whether this was the client's link: one that was taken over is long forgotten."""
        if self._link is not link:
            return False
        self._link = None
        return True

    def restore(self, frames: Sequence[tuple[int, str]], seen_n: int) -> None:
        """What an earlier process said and stored.

        The client may have seen more, if that process was killed: those numbers are not used again.
        """
        for n, frame in frames:
            self._kept.add(n, frame)
            self.last_n = max(self.last_n, n)
        self.last_n = max(self.last_n, min(seen_n, self.last_n + MAX_AHEAD))
        self._first_n = self.last_n + 1

    def lacks(self, after_n: int) -> bool:
        """Whether a replay from that number on is not all: some is forgotten, or was said by a process that died."""
        return after_n < max(self._kept.forgotten_n, self._unheard.forgotten_n, self._first_n)

    def replay(self, after_n: int, up_to_n: int) -> None:
        """Sends again what the client has not seen."""
        if self._link is not None:
            for n, frame in merge(self._kept, self._unheard):
                if after_n < n <= up_to_n:
                    self._link.send(frame)

    def take_unsaved(self) -> list[tuple[int, str]]:
        """What was said since the last time this was asked, for the store."""
        unsaved, self._unsaved = self._unsaved, Newest[str]()
        return list(unsaved)

    def _deliver(self, frame: Frame) -> None:
        if self._link is not None:
            self._link.send(frame)

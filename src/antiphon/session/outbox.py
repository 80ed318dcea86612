"""What a session says to its client: numbered, kept for a while, sent while there is a socket."""

from collections import deque
from typing import Final, Protocol

from antiphon.protocol import codec
from antiphon.protocol.client_messages import AudioForm
from antiphon.protocol.closing import Close
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.protocol.server_messages import Audio, ServerMessage

KEPT_MESSAGES: Final = 1_000
KEPT_BYTES: Final = 1 << 20
"""A client that has missed more than this gets the newest part, and the history for the rest."""

Frame = str | bytes


class Link(Protocol):
    """A socket, as a session sees it. Neither method waits: a client that reads too slowly is the socket's to close."""

    def send(self, frame: Frame) -> None: ...

    def close(self, close: Close) -> None: ...


class Outbox:
    def __init__(self, last_n: int = 0) -> None:
        self.last_n = last_n
        self._kept: deque[tuple[int, Frame]] = deque()
        self._kept_bytes = 0
        self._unsaved: list[tuple[int, str]] = []
        self._link: Link | None = None
        self._form = AudioForm.JSON

    @property
    def link(self) -> Link | None:
        return self._link

    def send(self, message: ServerMessage) -> None:
        self.last_n += 1
        frame = codec.encode(message, self.last_n)
        self._unsaved.append((self.last_n, frame))
        self._deliver(frame)

    def send_audio(self, turn: int, seq: int, pcm: bytes) -> None:
        """Speech at the wire's rate. It is kept in memory only: a session that wakes elsewhere makes it again."""
        if self._form is AudioForm.BINARY:
            self.last_n += 1
            self._deliver(codec.encode_audio(self.last_n, turn, seq, pcm))
        else:
            self.last_n += 1
            message = Audio(data=codec.wav_base64(pcm, SPEECH_HZ), turn=turn, seq=seq)
            self._deliver(codec.encode(message, self.last_n))

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

    def restore(self, frames: list[tuple[int, str]]) -> None:
        """What an earlier process said and stored."""
        for n, frame in frames:
            self._keep(n, frame)
            self.last_n = max(self.last_n, n)

    def replay(self, after_n: int, up_to_n: int) -> None:
        """Sends again what the client has not seen."""
        if self._link is not None:
            for n, frame in self._kept:
                if after_n < n <= up_to_n:
                    self._link.send(frame)

    def take_unsaved(self) -> list[tuple[int, str]]:
        """What was said since the last time this was asked, for the store."""
        unsaved, self._unsaved = self._unsaved, []
        return unsaved

    def _deliver(self, frame: Frame) -> None:
        self._keep(self.last_n, frame)
        if self._link is not None:
            self._link.send(frame)

    def _keep(self, n: int, frame: Frame) -> None:
        self._kept.append((n, frame))
        self._kept_bytes += len(frame)
        while len(self._kept) > KEPT_MESSAGES or (self._kept_bytes > KEPT_BYTES and len(self._kept) > 1):
            self._kept_bytes -= len(self._kept.popleft()[1])

"""One session with the scripted voice, which streams its microphone and records how long each message took."""

from time import monotonic_ns
from typing import Final

from bench.load import wire
from bench.load.ledger import Ledger
from bench.load.line import SPEECH_HEAD, Line, Message
from bench.load.microphone import FRAME_BYTES
from bench.load.model import PIECE_MS, STAMP

_QUIET: Final = bytes(FRAME_BYTES - STAMP.size)


class Call(Line):
    """Sends audio all the time, as an open microphone does."""

    def __init__(self, address: tuple[str, int], ledger: Ledger) -> None:
        super().__init__(address, ledger)
        self._state_since_ns = 0
        """When the state arrived that causes the next message."""
        self._play_until_s = 0.0
        self._played_ns = 0

    def speak(self) -> None:
        """Sends a frame with a timestamp, so that the scripted voice can say which frame it answers."""
        self.write(wire.frame(wire.BINARY, b"\0" + STAMP.pack(monotonic_ns()) + _QUIET))

    def read(self, message: Message, now_ns: int) -> None:
        note = self.ledger.note
        match message:
            case Message(type="state", state="listening"):
                self.turns += 1
                self.ledger.turns += self.ledger.covers(self._played_ns)
                note("listening", self._played_ns, now_ns)
            case Message(type="state"):
                self._state_since_ns = now_ns
            case Message(type="transcript"):
                cause_ns = int(message.text)
                note("processing", cause_ns, self._state_since_ns)
                note("transcript", cause_ns, now_ns)
            case Message(type="response_chunk"):
                note("response_chunk", int(message.text), now_ns)
            case Message(type="response"):
                note("response", int(message.text.split()[-1]), now_ns)
            case Message(type="generation_complete"):
                self.play_until(self._play_until_s, message.turn or 0)

    def hear(self, payload: bytes, now_ns: int) -> None:
        _, _, _, piece = SPEECH_HEAD.unpack_from(payload)
        (cause_ns,) = STAMP.unpack_from(payload, SPEECH_HEAD.size)
        self.ledger.note("audio", cause_ns, now_ns)
        if piece == 0:
            self.ledger.note("speaking", cause_ns, self._state_since_ns)
            self._play_until_s = now_ns / 1e9
        self._play_until_s += PIECE_MS / 1000

    def finish_playing(self, now_ns: int) -> None:
        self._played_ns = now_ns

"""One session of our server with Gemini Live behind it, which streams its microphone and times what arrives."""

from functools import partial
from time import monotonic_ns
from typing import Final

from bench.live.simulator import PIECE_MS, PIECES, STAMP, Simulator, find_place
from bench.load import wire
from bench.load.crowd import Crowd
from bench.load.ledger import Ledger
from bench.load.line import SPEECH_HEAD, Line, Message
from bench.load.microphone import FRAME_BYTES

QUIET: Final = bytes(FRAME_BYTES - STAMP.size)
"""A frame of the microphone after its stamp."""


class LiveCall(Line):
    def __init__(self, address: tuple[str, int], ledger: Ledger, *, simulator: Simulator) -> None:
        super().__init__(address, ledger)
        self._simulator = simulator
        self._asked_ns = 0
        """The stamp of the question's transcription."""
        self._place = -1
        """The last piece of audio that has arrived."""
        self._begun_ns = 0

    def speak(self) -> None:
        self.write(wire.frame(wire.BINARY, b"\0" + STAMP.pack(monotonic_ns()) + QUIET))

    def read(self, message: Message, now_ns: int) -> None:
        match message:
            case Message(type="state", state="listening"):
                self.turns += 1
                self.ledger.turns += self.ledger.covers(now_ns)
            case Message(type="transcript", text=text):
                asked_ns = int(text.split()[-1])
                if asked_ns != self._asked_ns:
                    # The final transcript is the same text again, later.
                    self._asked_ns, self._place = asked_ns, -1
                    self.ledger.note("transcript", asked_ns, now_ns)
            case Message(type="response_chunk", text=text):
                for stamp in text.split():
                    self.ledger.note("text", int(stamp), now_ns)
            case Message(type="generation_complete"):
                self.play_until((self._begun_ns / 1e6 + PIECES * PIECE_MS) / 1000, message.turn or 0)

    def hear(self, payload: bytes, now_ns: int) -> None:
        middle = SPEECH_HEAD.size + (len(payload) - SPEECH_HEAD.size) // 4 * 2
        place = find_place(int.from_bytes(payload[middle : middle + 2], "little", signed=True))
        if place == self._place:
            return  # The rest of a piece that the resampler held back.
        sent_ns = self._simulator.audio_sent_ns.get((self._asked_ns, place))
        if sent_ns is None or place < self._place:
            self.ledger.problems.append(f"piece {place} came after piece {self._place}")
            return
        if place == 0:
            self._begun_ns = now_ns
        self._place = place
        self.ledger.note("audio", sent_ns, now_ns)


def make_crowd(address: tuple[str, int], simulator: Simulator, ledger: Ledger, ramp_s: float) -> Crowd:
    return Crowd(address, partial(LiveCall, simulator=simulator), ramp_s=ramp_s, late_s=1.0, ledger=ledger)

"""One session whose server listens: it says phrases, and records how long each answer took.

An answer is due when the silence after the phrase was long enough for the rule that ended the turn, and the recogniser
and the synthesiser have taken their times. Any further delay was added by the server.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from time import monotonic_ns
from typing import Final

from antiphon.models.cascade.endpointer import FRAME_MS, enough_frames
from bench.load import wire
from bench.load.ledger import Ledger
from bench.load.line import SPEECH_HEAD, Line, Message
from bench.load.microphone import Microphone, Recording
from bench.load.phrases import Phrase

SILENCES: Final = ("short silence", "middle silence", "long silence", "unfinished silence")

_OUTPUT_BYTES_PER_S: Final = 2 * 22_050


@dataclass(frozen=True, slots=True)
class Times:
    """What an answer has to wait for."""

    silences_ms: Sequence[int]
    """The silences, any of which can end a turn."""
    stt_ms: int
    tts_ms: int


@dataclass(slots=True)
class _Turn:
    phrase: Phrase
    hushed_ns: int = 0
    """When the frame was sent at which the sound stops."""
    silent_ns: list[int] = field(default_factory=list)
    """When each of the silences was complete."""
    answered_ns: int = 0


class Talk(Line):
    def __init__(
        self,
        address: tuple[str, int],
        ledger: Ledger,
        next_phrase: Callable[[], Phrase],
        times: Times,
        first_at: int,
        seed: int,
    ) -> None:
        super().__init__(address, ledger)
        self._microphone = Microphone(self._begin, first_at, Random(seed))
        self._next_phrase = next_phrase
        self._times = times
        self._turn: _Turn | None = None
        """The turn that waits for its answer."""
        self._answered: _Turn | None = None
        """The turn whose answer is playing."""
        self._play_until_s = 0.0

    def speak(self) -> None:
        pcm = self._microphone.record()
        now_ns = monotonic_ns()
        is_playing = now_ns < self._play_until_s * 1e9
        self.write(wire.frame(wire.BINARY, (b"\1" if is_playing else b"\0") + pcm))
        if self._turn is not None:
            self._mark(self._turn, self._microphone.at, now_ns)

    def read(self, message: Message, now_ns: int) -> None:
        match message:
            case Message(type="generation_complete"):
                self.play_until(self._play_until_s, message.turn or 0)
            case Message(type="turn_metrics", end_of_turn_ms=silence_ms) if silence_ms is not None:
                self.turns += 1
                self._note(silence_ms)

    def hear(self, payload: bytes, now_ns: int) -> None:
        _, _, _, piece = SPEECH_HEAD.unpack_from(payload)
        if piece == 0:
            self._play_until_s = now_ns / 1e9
            self._answered, self._turn = self._turn, None
            if self._answered is not None:
                self._answered.answered_ns = now_ns
        self._play_until_s += (len(payload) - SPEECH_HEAD.size) / _OUTPUT_BYTES_PER_S

    def _begin(self) -> Recording:
        self._turn = _Turn(self._next_phrase())
        return self._turn.phrase.recording

    def _mark(self, turn: _Turn, at: int, now_ns: int) -> None:
        if at == turn.phrase.hushed_at:
            turn.hushed_ns = now_ns
            self.ledger.begun += self.ledger.covers(now_ns)
        for silence_ms in self._times.silences_ms:
            if at == turn.phrase.silent_at(silence_ms):
                turn.silent_ns.append(now_ns)

    def _note(self, silence_ms: float) -> None:
        """Records an answer. After it was played, the server reports which silence ended the turn."""
        turn, self._answered = self._answered, None
        if turn is None or not self.ledger.covers(turn.hushed_ns):
            return
        enough_ms = [enough_frames(each) * FRAME_MS for each in self._times.silences_ms]
        which = max(0, sum(each <= silence_ms for each in enough_ms) - 1)
        if which >= len(turn.silent_ns):
            # The end was detected a frame earlier than in the trial.
            return
        text_ns = turn.hushed_ns + self._times.stt_ms * 1_000_000
        # The first sound can be made during the silence, as soon as there is a text.
        due_ns = max(turn.silent_ns[which], text_ns + self._times.tts_ms * 1_000_000)
        self.ledger.turns += 1
        self.ledger.add(SILENCES[which], due_ns, turn.answered_ns)

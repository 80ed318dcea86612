"""What a session is at one moment, as a value: the machine makes the next one from it."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Self

from antiphon.protocol.server_messages import QueuedText
from antiphon.tools.spec import Mode

WATCHDOG_MS: Final = 5_000
"""So long after the end of the audio a client may still say that it has played it; then it is believed to have."""

PLAYBACK_TOLERANCE_MS: Final = 500
"""Clients' clocks and sound cards are not ours: so much earlier than the audio's length counts as played."""


MAX_QUEUED: Final = 5
"""Typed messages that may wait for the answer under way."""


class Phase(StrEnum):
    IDLE = "idle"
    LISTENING = "listening"
    PROCESSING = "processing"
    SPEAKING = "speaking"
    INTERRUPTED = "interrupted"
    """Told to the client, and left at once."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the answer's audio, and what it says."""

    text: str
    ms: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer under way, or the last one."""

    turn: int
    text: str = ""
    pieces: tuple[Piece, ...] = ()
    speaking_since_ms: int = 0
    played_ms: int = 0
    """As far as the client has said."""
    complete: bool = False
    """All of it has been made and sent."""
    heard_before: tuple[str, ...] = ()
    """An earlier process has begun to speak this answer: words of it that the client has, and need not hear again."""
    next_seq: int = 0
    """The number of the next piece of audio that is sent."""

    @property
    def audio_ms(self) -> int:
        return sum(piece.ms for piece in self.pieces)

    @property
    def deadline_ms(self) -> int:
        """When a client that says nothing must have played it."""
        return self.speaking_since_ms + self.audio_ms + WATCHDOG_MS

    def was_played(self, now_ms: int) -> bool:
        return self.complete and now_ms - self.speaking_since_ms >= self.audio_ms - PLAYBACK_TOLERANCE_MS

    def heard(self, played_ms: int) -> str:
        """What the user has heard of it, to the word. An answer without audio was read as it came."""
        if not self.pieces:
            return self.text
        heard: list[str] = []
        left_ms = played_ms
        for piece in self.pieces:
            if left_ms <= 0:
                break
            words = piece.text.split()
            share = min(1.0, left_ms / piece.ms) if piece.ms else 1.0
            heard += words[: round(len(words) * share)]
            left_ms -= piece.ms
        return " ".join(heard)


@dataclass(frozen=True, slots=True)
class Session:
    mode: Mode = Mode.TEXT
    phase: Phase = Phase.IDLE
    resting: Phase = Phase.IDLE
    """Where it goes when the answer is over."""
    turn: int = 0
    """Counts the answers. What belongs to an old number is dropped: that is all there is to cancelling."""
    answer: Answer | None = None
    queue: tuple[QueuedText, ...] = ()
    """Typed messages that wait for the end of this answer, oldest first."""
    queued: int = 0
    """How many ever waited: the next one's id is made from it."""

    def at(self, phase: Phase) -> Self:
        return replace(self, phase=phase)

    def resting_at(self, phase: Phase) -> Self:
        return replace(self, resting=phase)

    def begin(self) -> Self:
        """A new answer, which makes every earlier one old."""
        return replace(self, phase=Phase.PROCESSING, turn=self.turn + 1, answer=Answer(self.turn + 1))

    def with_answer(self, answer: Answer) -> Self:
        return replace(self, answer=answer)

    def end_answer(self) -> Self:
        return replace(self, phase=self.resting, answer=None)

    def with_queued(self, text: str) -> Self:
        number = self.queued + 1
        while any(each.id == f"q{number}" for each in self.queue):
            # It was queued by another process.
            number += 1
        return replace(self, queued=number, queue=(*self.queue, QueuedText(f"q{number}", text)))

    def with_queue(self, queue: tuple[QueuedText, ...]) -> Self:
        return replace(self, queue=queue)

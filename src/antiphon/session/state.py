"""The state of a session at one moment, as a value: the machine makes the next one from it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from typing import Final, Self

from antiphon.protocol.server_messages import QueuedText
from antiphon.tools.spec import Mode

WATCHDOG_MS: Final = 5_000
"""How long after the end of the audio a client may still report that it has played it. Then it counts as played."""

MAX_UNHEARD_MS: Final = 10 * 60 * 1000
"""An answer that is older than this is shown to a client that returns, but no longer spoken."""

PLAYBACK_TOLERANCE_MS: Final = 500
"""How much earlier than the audio's length a client may report that it was played: its clock is not ours."""

MIN_GAP_MS: Final = 1_000
"""How long nothing must have been played for the silence to count as a gap, not as audio that came a little late."""

MAX_QUEUED: Final = 5
"""How many typed messages may wait for the answer under way."""

MAX_RECENT: Final = 8
"""How many turns back a late transcript is still taken."""


class Phase(StrEnum):
    IDLE = "idle"
    LISTENING = "listening"
    PROCESSING = "processing"
    SPEAKING = "speaking"
    INTERRUPTED = "interrupted"
    """Sent to the client, and left at once."""


RESTING: Final = (Phase.IDLE, Phase.LISTENING)
BUSY: Final = (Phase.PROCESSING, Phase.SPEAKING)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the answer's audio, and what it says."""

    text: str
    ms: int


def heard_of(pieces: Iterable[Piece], played_ms: float) -> str:
    """What the user has heard of these pieces, to the word."""
    heard: list[str] = []
    left_ms = played_ms
    for piece in pieces:
        if left_ms <= 0:
            break
        words = piece.text.split()
        share = min(1.0, left_ms / piece.ms) if piece.ms else 1.0
        heard += words[: round(len(words) * share)]
        left_ms -= piece.ms
    return " ".join(heard)


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn under way: what its answer has said so far, and how much of it was heard."""

    id: str
    number: int
    """Counts the turns of the session; the client knows the turn by it."""
    text: str = ""
    pieces: tuple[Piece, ...] = ()
    speaking_since_ms: int = 0
    played_ms: int = 0
    """As far as the client has reported it."""
    complete: bool = False
    """Whether all of the answer has been made and sent."""
    heard_before: tuple[str, ...] = ()
    """Words of this answer that the client has heard from an earlier process, and need not hear again."""
    next_seq: int = 0
    """The number of the next piece of audio."""
    held_since_ms: int | None = None
    """When the client was told to hold the answer, if it holds it now."""
    is_repeated: bool = False
    """Whether only its audio is being made again. Its text is stored, and the client has it."""

    @property
    def audio_ms(self) -> int:
        return sum(piece.ms for piece in self.pieces)

    def elapsed_ms(self, now_ms: int) -> int:
        """How long the client has been playing, if it plays without a gap."""
        return (now_ms if self.held_since_ms is None else self.held_since_ms) - self.speaking_since_ms

    def hold(self, now_ms: int) -> Self:
        return replace(self, held_since_ms=now_ms)

    def resume(self, now_ms: int) -> Self:
        """Goes on playing. The time while it was held does not count."""
        held_ms = 0 if self.held_since_ms is None else now_ms - self.held_since_ms
        return replace(self, held_since_ms=None, speaking_since_ms=self.speaking_since_ms + held_ms)

    def playing_since_ms(self, now_ms: int) -> int:
        """When the client has begun to play, if it plays without a pause until now. Audio that comes long after all the
        rest was played, as after a slow tool, is played from now on."""
        if not self.pieces:
            return now_ms
        silent_ms = self.elapsed_ms(now_ms) - self.audio_ms
        return self.speaking_since_ms + (silent_ms if silent_ms > MIN_GAP_MS else 0)

    @property
    def deadline_ms(self) -> int:
        """When a client that reports nothing must have played it."""
        return self.speaking_since_ms + self.audio_ms + WATCHDOG_MS

    def was_played(self, now_ms: int) -> bool:
        return self.complete and self.elapsed_ms(now_ms) >= self.audio_ms - PLAYBACK_TOLERANCE_MS

    def first(self, ms: int) -> tuple[Piece, ...]:
        """Returns the pieces that were played completely after this time."""
        ends = accumulate(piece.ms for piece in self.pieces)
        return tuple(piece for piece, end_ms in zip(self.pieces, ends, strict=True) if end_ms <= ms)

    def heard(self, played_ms: int) -> str:
        """What the user has heard of it, to the word. An answer without audio was read as it came."""
        return heard_of(self.pieces, played_ms) if self.pieces else self.text


@dataclass(frozen=True, slots=True)
class SessionState:
    mode: Mode = Mode.TEXT
    phase: Phase = Phase.IDLE
    resting: Phase = Phase.IDLE
    """Where the session goes when the turn is over."""
    turns: int = 0
    """How many turns there were, with the one under way."""
    turn: Turn | None = None
    """The turn under way. What belongs to any other is dropped: that is all there is to cancelling."""
    recent: tuple[tuple[str, int], ...] = ()
    """The ids and numbers of the newest turns, whose transcripts may still come."""
    unconfirmed: Turn | None = None
    """The last turn, if the client has not reported that it played the answer. Its connection may have been dead."""
    queue: tuple[QueuedText, ...] = ()
    """Typed messages that wait for the end of the turn, oldest first."""
    queued: int = 0
    """How many messages ever waited: the id of the next one is made from it."""

    def at(self, phase: Phase) -> Self:
        return replace(self, phase=phase)

    def resting_at(self, phase: Phase) -> Self:
        return replace(self, resting=phase)

    def begin(self, id: str | None = None) -> Self:
        """Begins a turn, which makes every earlier one old. Without an id, the turn is the session's own."""
        number = self.turns + 1
        turn = Turn(id or f"s{number}", number)
        recent = (*self.recent, (turn.id, number))[-MAX_RECENT:]
        return replace(self, phase=Phase.PROCESSING, turns=number, turn=turn, recent=recent, unconfirmed=None)

    def with_turn(self, turn: Turn) -> Self:
        return replace(self, turn=turn)

    def end_turn(self) -> Self:
        return replace(self, phase=self.resting, turn=None)

    @property
    def unanswered(self) -> str | None:
        """The id of the turn under way, unless it is answered and only to be played."""
        turn = self.turn
        return None if turn is None or turn.complete or turn.is_repeated else turn.id

    def confirm(self) -> Self:
        """The last answer was played, or is not wanted any more."""
        return replace(self, unconfirmed=None)

    @property
    def is_settled(self) -> bool:
        """Whether no turn is under way, and the last answer needs not be spoken again to a client that returns."""
        return self.phase in RESTING and self.unconfirmed is None

    def without_recent(self, turn: str | None) -> Self:
        """Nothing more is wanted of a turn that another one has replaced, not even its transcript."""
        return replace(self, recent=tuple(each for each in self.recent if each[0] != turn))

    def is_current(self, turn: str) -> bool:
        return self.turn is not None and self.turn.id == turn

    def number_of(self, turn: str) -> int | None:
        return next((number for id, number in self.recent if id == turn), None)

    def with_queued(self, text: str) -> Self:
        number = self.queued + 1
        while any(each.id == f"q{number}" for each in self.queue):
            # It was queued by another process.
            number += 1
        return replace(self, queued=number, queue=(*self.queue, QueuedText(f"q{number}", text)))

    def with_queue(self, queue: tuple[QueuedText, ...]) -> Self:
        return replace(self, queue=queue)

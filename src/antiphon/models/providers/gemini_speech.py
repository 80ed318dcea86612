"""What the user said to Gemini Live, put together from transcriptions that have no ids and no reliable end."""

import asyncio
from typing import Final

from antiphon.models.providers.upstream import MAX_TRANSCRIPT_CHARS, Turns

QUIET_S: Final = 1.0
"""A transcript is final if nothing was added for this long after its answer has begun. Gemini sends the words in pieces
and may send the last ones while it already answers."""
LATE_S: Final = 2.0
"""How long after the end of a turn its first words may still come. Later ones belong to the next turn."""


class HeardSpeech:
    """Gathers the words of the turn that is being heard, and of the one that is being answered."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._next = ""
        """The words of the turn that is being heard."""
        self._is_whole = False
        """Whether the server said that these words are all."""
        self._answered: str | None = None
        """The heard turn that is or was answered, while its transcript is not final."""
        self._words = ""
        """The words of that turn."""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def has_words(self) -> bool:
        """Whether something was heard that no answer has begun to."""
        return bool(self._next.strip())

    def add(self, text: str, *, is_finished: bool = False) -> None:
        """Adds the next piece of a transcription."""
        if self._answered is None:
            self._next, self._is_whole = (self._next + text)[:MAX_TRANSCRIPT_CHARS], is_finished
            self._turns.transcribe(self._turns.heard_turn, self._next, is_final=False)
            return
        self._words = (self._words + text)[:MAX_TRANSCRIPT_CHARS]
        self._turns.transcribe(self._answered, self._words, is_final=is_finished)
        if is_finished:
            self._forget()
        else:
            self._wait(QUIET_S)

    def guess(self, text: str) -> None:
        """Shows words that are not certain yet. Pieces of the transcription follow for them."""
        turn, words = (self._answered, self._words) if self._answered else (self._turns.heard_turn, self._next)
        self._turns.transcribe(turn, words + text, is_final=False)

    def begin_answer(self, turn: str) -> None:
        """The answer to what was heard begins."""
        self.finish()
        self._answered, self._words, self._next = turn, self._next, ""
        if self._words.strip() and self._is_whole:
            self.finish()
        elif self._words.strip():
            self._wait(QUIET_S)

    def end_answer(self, turn: str) -> None:
        """The turn is over. Its transcript is final, or comes soon, or never."""
        if turn == self._answered:
            if self._words.strip():
                self.finish()
            else:
                self._wait(LATE_S)

    def finish(self) -> None:
        """The transcript of the turn that is or was answered is what there is of it."""
        if self._answered is not None:
            self._turns.transcribe(self._answered, self._words, is_final=True)
            self._forget()

    def close(self) -> None:
        self._forget()

    def _wait(self, seconds: float) -> None:
        self._stop()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.finish)

    def _forget(self) -> None:
        self._stop()
        self._answered, self._words = None, ""

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

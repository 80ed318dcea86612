"""What a session says by itself once no turn is under way: that a timer is done, or a question of another program."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from antiphon.clock import Clock
from antiphon.session.state import SessionState
from antiphon.session.transcript_writer import TranscriptWriter
from antiphon.session.voice import Voice
from antiphon.telemetry.log import get_logger
from antiphon.tools.spec import Mode

RETRY_S: Final = 2.0
LONGEST_RETRY_S: Final = 30.0
STALE_MS: Final = 10 * 60 * 1000
"""An announcement that could not be made for this long is given up. Its message was shown all the same."""
PASSED_ON: Final = "Thank you, I'll pass that on."

log = get_logger(__name__)


@dataclass(eq=False, slots=True)
class _Announcement:
    text: str
    made_ms: int
    in_text: bool
    """Whether it is an answer in text mode too. Otherwise the client shows a message of its own there."""
    answer: asyncio.Future[str] | None = None
    """What the user says next, for those who asked."""
    turn: str | None = None
    """The turn in which it is being said."""
    failures: int = 0


class Announcements:
    """An announcement is a turn of the session's own. One that fails, or that the user speaks over before anything of
    it was heard, is made again."""

    def __init__(
        self,
        *,
        voice: Voice,
        writer: TranscriptWriter,
        state: Callable[[], SessionState],
        say: Callable[[str, str], None],
        follow_up: Callable[[], None],
        clock: Clock,
    ) -> None:
        """`say` has the model say a text in a turn; a failure ends the turn. `follow_up` has `say_next` called."""
        self._voice = voice
        self._writer = writer
        self._state = state
        self._say = say
        self._follow_up = follow_up
        self._clock = clock
        self._waiting: deque[_Announcement] = deque()
        self._asked: deque[asyncio.Future[str]] = deque()
        """The questions that were said and wait for an answer."""
        self._made: _Announcement | None = None
        """The last one of which all was made. Nobody may have heard any of it."""
        self._passed_on: str | None = None
        """The turn whose words were an answer to a question."""
        self._retry: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, text: str, *, in_text: bool = False) -> None:
        """Has a text spoken in a call, and with `in_text` also shown in text mode."""
        self._add(_Announcement(text, self._clock.now_ms(), in_text))

    async def ask(self, question: str) -> str:
        """Has a question said, and returns the user's next words. If nobody waits any more, it is not said."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asking = _Announcement(question, self._clock.now_ms(), True, answer)
        self._add(asking)
        try:
            return await answer
        finally:
            if asking in self._waiting and asking.turn is None:
                self._waiting.remove(asking)
            if answer in self._asked:
                self._asked.remove(answer)

    async def say_next(self) -> None:
        """To be called while no turn is under way."""
        if self._state().mode is not Mode.VOICE:
            self._waiting = deque(each for each in self._waiting if each.in_text)
        if not self._waiting or self._retry is not None:
            return
        first = self._waiting[0]
        first.turn = await self._voice.begin_turn()
        # It is part of the conversation, also before the first turn of the user.
        self._writer.begin_turn(first.turn, spoken=False)
        self._say(first.turn, first.text)

    def note_answer(self, turn: str, text: str) -> None:
        """The words of a turn are stored: all that was made, and after an interruption what was heard of it."""
        is_heard = bool(text.strip())
        if is_heard and self._waiting and self._waiting[0].turn == turn:
            self._made = said = self._waiting.popleft()
            if said.answer is not None and not said.answer.done():
                self._asked.append(said.answer)
        elif not is_heard and self._made is not None and self._made.turn == turn:
            unheard, self._made = self._made, None
            self._waiting.appendleft(unheard)
            if unheard.answer is not None and unheard.answer in self._asked:
                self._asked.remove(unheard.answer)

    def note_end(self) -> None:
        """A turn is over. If it was an announcement that nobody has heard, it is made again later."""
        if not self._waiting or self._waiting[0].turn is None:
            return
        first = self._waiting[0]
        first.turn = None
        is_unwanted = first.answer is not None and first.answer.done()
        if is_unwanted or self._clock.now_ms() - first.made_ms > STALE_MS:
            self._waiting.popleft()
            log.warning("announcement_given_up", failures=first.failures)
            return
        delay_s = min(LONGEST_RETRY_S, RETRY_S * 2**first.failures)
        first.failures += 1
        self._retry = asyncio.get_running_loop().call_later(delay_s, self._try_again)

    def hear(self, turn: str, text: str) -> None:
        """The user has said something: the oldest question that was said has its answer."""
        waiting = next((answer for answer in self._asked if not answer.done()), None)
        if waiting is not None and text.strip():
            self._asked.remove(waiting)
            waiting.set_result(text)
            self._passed_on = turn

    def has_passed_on(self, turn: str) -> bool:
        """Whether the words of a turn were an answer to such a question, so that the model need not answer them."""
        return turn == self._passed_on

    def stop(self) -> None:
        if self._retry is not None:
            self._retry.cancel()

    def _add(self, announcement: _Announcement) -> None:
        self._waiting.append(announcement)
        self._follow_up()

    def _try_again(self) -> None:
        self._retry = None
        self._follow_up()

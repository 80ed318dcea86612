"""Plans what a new upstream session is told of the conversation: all of it, or a summary and the newest turns."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct

from antiphon.continuity.summarizer import Summarizer
from antiphon.continuity.tokens import count_message, most_tokens
from antiphon.models.base import ModelError
from antiphon.models.live import LiveProfile
from antiphon.telemetry.log import get_logger
from antiphon.transcript import Entry, Message, Transcript, UserMessage, is_blank

Summarize = Literal["always", "auto"]
"""When a fallback gets a summary: always, or only if the conversation does not fit."""

SUMMARY_S: Final = 3.0
"""How long a summary may take. The user is waiting."""
RECENT_TURNS: Final = 2
"""How many of the newest turns with words of the user go along with a summary."""
UNKNOWN_CONTEXT_TOKENS: Final = 32_000
"""The context that is assumed of a model whose context is not known."""
HISTORY_SHARE: Final = 0.5
"""How much of a context the conversation may fill when it is given. The rest is also for what follows."""
RESERVED_TOKENS: Final = 12_500
"""What is left for the prompt with its tools, about 10,500 tokens, and for an answer, whatever the context."""

log = get_logger(__name__)


class Carried(Struct, frozen=True):
    """What a new upstream session is told of the conversation."""

    summary: str = ""
    """A summary of everything before `first_turn`, or of the latest call."""
    first_turn: str | None = None
    """The id of the first turn that is given in full. None if all of them are."""


class _Turn(Struct):
    id: str
    messages: list[Message]

    @property
    def has_user(self) -> bool:
        return any(isinstance(message, UserMessage) for message in self.messages)


class ContextPlanner:
    """Plans for all sessions of a process."""

    def __init__(
        self,
        summarizer: Summarizer,
        *,
        summarize: Summarize = "always",
        count: Callable[[Message], int] = count_message,
        most: Callable[[Message], int] = most_tokens,
    ) -> None:
        """`count` counts the tokens of a message, which takes a while for long ones. `most` quickly gives a number that
        the count does not exceed."""
        self._summarizer = summarizer
        self._summarize = summarize
        self._count = count
        self._most = most

    async def plan(
        self,
        transcript: Transcript,
        profile: LiveProfile,
        *,
        is_fallback: bool,
        before_turn: str | None,
        call_summary: str = "",
    ) -> Carried:
        """Plans what a model with this profile is told. It takes at most `SUMMARY_S`.

        `is_fallback`: the model is of another class than the one before it. `before_turn` is the turn under way, which
        is given to the model by itself. `call_summary`, a summary that exists already, is used instead of a new one.
        """
        turns = list(_turns_before(transcript, before_turn))
        first = await self._first_that_fits(turns, profile)
        if is_fallback and self._summarize == "always":
            first = max(first, _first_recent(turns))
        if first == 0:
            return Carried(call_summary)
        left_out = [message for turn in turns[:first] for message in turn.messages]
        return Carried(call_summary or await self._summary_of(left_out), turns[first].id)

    async def _first_that_fits(self, turns: Sequence[_Turn], profile: LiveProfile) -> int:
        """Returns the place of the first of the newest turns that fit."""
        context = profile.context_tokens or UNKNOWN_CONTEXT_TOKENS
        room = min(int(context * HISTORY_SHARE), context - RESERVED_TOKENS)
        if _first_within(turns, room, self._most) == 0:
            return 0
        # In a thread: it takes 0.1 s for a conversation that fills a large context, if the tokens are estimated.
        return await asyncio.to_thread(_first_within, turns, room, self._count)

    async def _summary_of(self, messages: Sequence[Message]) -> str:
        try:
            async with asyncio.timeout(SUMMARY_S):
                return await self._summarizer.summarize(messages)
        except (ModelError, TimeoutError) as error:
            log.warning("context_not_summarized", error=type(error).__name__)
            return ""


def _turns_before(transcript: Transcript, turn: str | None) -> Iterator[_Turn]:
    """Returns the turns before this one, without those that say nothing."""
    entries: list[Entry] = []
    for entry in transcript:
        if entry.turn == turn:
            break
        entries.append(entry)
    turns = dict[str, _Turn]()
    for entry in entries:
        if not is_blank(entry.message):
            turns.setdefault(entry.turn, _Turn(entry.turn, [])).messages.append(entry.message)
    return iter(turns.values())


def _first_recent(turns: Sequence[_Turn]) -> int:
    """Returns the place of the first of the `RECENT_TURNS` newest turns with words of the user."""
    places = [place for place, turn in enumerate(turns) if turn.has_user]
    return places[-RECENT_TURNS] if len(places) >= RECENT_TURNS else 0


def _first_within(turns: Sequence[_Turn], room: int, count: Callable[[Message], int]) -> int:
    """Returns the place of the first of the newest turns that this many tokens are enough for. The newest is kept even
    if they are not."""
    for place in range(len(turns) - 1, -1, -1):
        room -= sum(map(count, turns[place].messages))
        if room < 0:
            return min(place + 1, len(turns) - 1)
    return 0

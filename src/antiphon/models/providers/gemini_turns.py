"""Puts what Gemini Live sends into turns.

The wire has no ids for turns: what the server sends belongs to the oldest turn that it has not completed. An answer
that was dropped stays in that order until the server has completed it, and nothing of it is passed on meanwhile.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from google.genai import types

from antiphon.models.base import FailureKind, ModelError
from antiphon.models.bounded import MAX_ANSWER_CHARS
from antiphon.models.providers.gemini_profiles import GeminiProfile
from antiphon.models.providers.gemini_speech import HeardSpeech
from antiphon.models.providers.upstream import Answer, Turns
from antiphon.security.surrogates import repair_json
from antiphon.tools.call import ToolCall

END_AUDIO_S: Final = 5.0
"""How long after the end of the audio the server may take to show that it has heard something."""
GRACE_S: Final = 0.2
"""How long words of an answer may follow after its generation is complete."""
TRAILING_S: Final = 1.0
"""How long after a turn words may still come for it, which are not the beginning of another."""
STALE_S: Final = 8.0
"""If nothing came for a dropped answer for this long, the server will not complete it any more."""
CROSSING_S: Final = 1.5
"""How long after a turn was sent something may come that the server sent before it received the turn."""
CONTINUATION_S: Final = 5.0
"""How long after the results of calls the answer may take to continue, if the server has completed a part of it."""
MAX_OPEN_IDS: Final = 256

_NEEDS_MORE: Final = types.TurnCompleteReason.NEED_MORE_INPUT
_NO_FAILURES: Final = (types.TurnCompleteReason.TURN_COMPLETE_REASON_UNSPECIFIED, _NEEDS_MORE)


class Progress(StrEnum):
    """How far the server has come with a turn."""

    ASKED = "asked"
    """Nothing has come for it yet."""
    BEGUN = "begun"
    WAITING = "waiting"
    """It is complete except for calls whose results the server was not given."""
    CONTINUING = "continuing"
    """The results were sent, and nothing has come since."""
    CUT = "cut"
    """The server has interrupted it. Nothing more comes for it than its completion."""


@dataclass(eq=False, slots=True)
class ServerTurn:
    """A turn that the server has not completed."""

    answer: Answer
    asked_s: float
    progress: Progress = Progress.ASKED
    is_superseded: bool = False
    """Whether its answer is continued by another turn of the server."""
    may_be_over: bool = False
    """Whether it was dropped and the server may never complete it: what comes next may be the end of it or another."""
    follows_uncertain: bool = False
    """Whether what has come for it may belong to a dropped turn before it, which may not have been over."""
    skips_end: bool = False
    """Whether the next completion is that of such a turn."""
    plain_text: str = ""
    """Text of the answer that is not a transcription; it is used if there is no transcription."""


class ServerTurns:
    """The turns as the server has them, and what it sends for them."""

    def __init__(self, turns: Turns, kind: GeminiProfile, name: str, on_idle: Callable[[], None]) -> None:
        """`on_idle` is called when the server has completed all turns."""
        self.speech = HeardSpeech(turns)
        self.open_ids: dict[str, None] = {}
        """Calls that the server waits for."""
        self.has_audio = False
        """Whether audio was sent since the last turn began."""
        self.has_unasked = False
        """Whether the server was saying something that nobody had asked for, and has not ended it."""
        self._turns = turns
        self._kind = kind
        self._name = name
        self._on_idle = on_idle
        self._order: deque[ServerTurn] = deque()
        """Oldest first."""
        self._last_s = -STALE_S
        """When something last came for the oldest, or the last one ended."""
        self._early_words = ""
        """Words that came soon after the last turn, without audio."""
        self._ending: tuple[str, asyncio.TimerHandle] | None = None
        """The turn whose audio has ended and of which nothing was heard yet."""
        self._timer: asyncio.TimerHandle | None = None
        """For the end of the oldest answer."""

    @property
    def is_idle(self) -> bool:
        return not self._order

    def is_generating(self, answer: Answer) -> bool:
        """Whether the server may still send more of this answer."""
        return any(each.answer is answer and each.progress is not Progress.CUT for each in self._order)

    # What the session does.

    def ask(self, turn: str) -> None:
        """Begins a turn that the session has asked for."""
        self.drop()
        self.give_up_ending()
        self.speech.finish()
        for each in self._order:
            # The server may answer it together with what it is sent now, and need not complete what it never began.
            each.may_be_over = each.may_be_over or each.progress is Progress.ASKED
        self._order.append(ServerTurn(self._turns.ask(turn), self._now_s))
        self._touch()

    def ask_again(self) -> None:
        """Begins another turn of the server for the answer under way, which continues with it."""
        answer = self._turns.answer
        if answer is None:
            return
        for each in self._order:
            if each.answer is answer:
                each.is_superseded = each.may_be_over = True
        self._order.append(ServerTurn(answer, self._now_s))
        self._touch()

    def end_audio(self, turn: str) -> bool:
        """Ends the turn that is being heard. Returns whether the server must be told, because it was sent audio."""
        self.give_up_ending()
        if not self.has_audio:
            self._turns.end_empty(turn)
            return False
        self._turns.heard_turn = turn
        if self.speech.has_words:
            self._hear()
        else:
            self._ending = (turn, asyncio.get_running_loop().call_later(END_AUDIO_S, self.give_up_ending))
        return True

    def give_up_ending(self) -> None:
        """Completes a turn whose audio has ended, since nothing was heard."""
        if self._ending is not None:
            (turn, timer), self._ending = self._ending, None
            timer.cancel()
            self._turns.end_empty(turn)

    def drop(self) -> None:
        """Completes the answer under way. It stays in the order as long as the server may send more of it."""
        answer = self._turns.answer
        if answer is None:
            return
        self._stop_timer()
        self._end_speech(answer)
        self._turns.drop()
        each = next((each for each in reversed(self._order) if each.answer is answer), None)
        if each is None:
            return
        if each.progress is Progress.WAITING:
            self._order.remove(each)
        elif answer.open_calls and self._kind.waits_for_tools:
            each.may_be_over = True

    def give_results(self) -> None:
        """The answer under way was given the results of its calls, and continues."""
        for each in self._order:
            if self._is_current(each):
                each.progress = Progress.CONTINUING
        self._touch()

    def close(self) -> None:
        self._stop_timer()
        self.speech.close()
        if self._ending is not None:
            self._ending[1].cancel()
            self._ending = None

    # What the server sends.

    def take_speech(self, content: types.LiveServerContent) -> None:
        """Takes what the user said."""
        if (heard := content.input_transcription) is not None and (heard.text or heard.finished):
            self.speech.add(heard.text or "", is_finished=bool(heard.finished))
        if (guess := content.interim_input_transcription) is not None and guess.text:
            self.speech.guess(guess.text)
        if self._ending is not None and self.speech.has_words:
            self._hear()

    def take_answer(self, content: types.LiveServerContent) -> None:
        """Takes what the model says: first the words, which the audio then carries. Thoughts are skipped."""
        parts = (content.model_turn.parts if content.model_turn is not None else None) or []
        words = (content.output_transcription.text if content.output_transcription is not None else None) or ""
        audio = [part.inline_data.data for part in parts if part.inline_data is not None and part.inline_data.data]
        text = "".join(part.text for part in parts if part.text and not part.thought)
        if words and not parts and not self._order and self._now_s - self._last_s < TRAILING_S:
            # The rest of the turn before, or the beginning of another whose audio follows.
            self._early_words = (self._early_words + words)[:MAX_ANSWER_CHARS]
            return
        if not (words or audio or text):
            return
        each = self._find()
        each.plain_text = (each.plain_text + text)[:MAX_ANSWER_CHARS]
        if words:
            self._turns.say(each.answer, words)
        for pcm in audio:
            self._turns.play(each.answer, pcm)

    def take_calls(self, calls: Sequence[types.FunctionCall]) -> None:
        if not calls:
            return
        each = self._find()
        if self._is_current(each):
            self.open_ids |= {call.id: None for call in calls[:MAX_OPEN_IDS] if call.id}
            while len(self.open_ids) > MAX_OPEN_IDS:
                self.open_ids.pop(next(iter(self.open_ids)))
            self._turns.call(
                each.answer, [ToolCall(call.id or None, call.name or "", call.args or {}) for call in calls]
            )

    def take_cancellation(self, ids: Sequence[str]) -> None:
        for id in ids:
            self.open_ids.pop(id, None)
        self._turns.cancel_calls(repair_json(ids))
        first = self._order[0] if self._order else None
        if first is not None and first.progress is Progress.WAITING and not first.answer.open_calls:
            self._complete(first)

    def take_usage(self, usage: types.UsageMetadata) -> None:
        if self._order:
            output = (usage.response_token_count or 0) + (usage.thoughts_token_count or 0)
            self._turns.use(self._order[0].answer, usage.prompt_token_count or 0, output)

    def take_end(self, content: types.LiveServerContent) -> None:
        """Takes what ends an answer or a part of it."""
        if self.has_unasked and (content.interrupted or content.turn_complete):
            # The question has ended it, or it was over by itself.
            self.has_unasked = not content.turn_complete
            if not self._order or self._order[0].progress is Progress.ASKED:
                return
        if content.interrupted and self._order:
            self._interrupt(self._order[0])
        if content.generation_complete and self._order and self._is_whole(self._order[0]):
            self._set_timer(GRACE_S, self._finish_generation, self._order[0])
        if content.turn_complete:
            if not self._order and self.speech.has_words and content.turn_complete_reason is not _NEEDS_MORE:
                # The model heard something and has nothing to say to it.
                self._hear()
            if self._order:
                self._end(self._order[0], content)

    def _interrupt(self, first: ServerTurn) -> None:
        if first.follows_uncertain and self._now_s - first.asked_s < CROSSING_S:
            # What has come belongs to the turn before, which this message interrupts.
            first.follows_uncertain, first.skips_end = False, True
            return
        was_waiting, first.progress = first.progress is Progress.WAITING, Progress.CUT
        self._touch()
        if self._is_current(first):
            self._stop_timer()
            self._end_speech(first.answer)
            self._turns.interrupted(first.answer)
            if was_waiting:
                self._complete(first)

    def _end(self, first: ServerTurn, content: types.LiveServerContent) -> None:
        """The server has completed the oldest turn, or a part of it."""
        answer = first.answer
        self._touch()
        if first.skips_end:
            first.skips_end = False
            return
        if self._is_current(first) and first.progress is not Progress.CUT:
            if content.interaction_status is types.InteractionStatus.IN_PROGRESS:
                return
            if answer.open_calls:
                first.progress = Progress.WAITING
                return
            if first.follows_uncertain:
                # If the server answers both turns, the answer to this one comes now.
                first.follows_uncertain = False
                self._set_timer(CROSSING_S, self._complete, first)
                return
            if first.progress is Progress.CONTINUING:
                # It ends the part before the results, which the server did not have yet when it sent this.
                first.progress = Progress.BEGUN
                self._set_timer(CONTINUATION_S, self._complete, first)
                return
            reason = content.turn_complete_reason
            if answer.is_empty and not first.plain_text and reason is not None and reason not in _NO_FAILURES:
                message = f"{self._name} gave no answer ({reason.value}). Please ask in other words."
                self._turns.fail(answer, ModelError(message, kind=FailureKind.EMPTY))
        self._complete(first)

    # Turns.

    def _find(self) -> ServerTurn:
        """Returns the turn that the server is answering. If it is none that we know of, it answers what it heard."""
        is_uncertain = False
        while self._order and not self._is_current(self._order[0]) and self._is_over(self._order[0]):
            is_uncertain = self._order.popleft().progress is not Progress.CUT
        if self._order and self._is_followed(self._order[0]):
            self._order.popleft()
            self._hear()
        elif not self._order:
            early, self._early_words = self._early_words, ""
            is_recent = self._now_s - self._last_s < TRAILING_S
            self._hear()
            if early and is_recent:
                self._turns.say(self._order[0].answer, early)
        self._touch()
        first = self._order[0]
        first.progress = Progress.BEGUN
        first.follows_uncertain = first.follows_uncertain or is_uncertain
        self._stop_timer()
        return first

    def _is_followed(self, first: ServerTurn) -> bool:
        """Whether the model answers something that the user said later: while a tool runs, or after the whole answer,
        whose completion did not come."""
        is_past = first.progress is Progress.WAITING or first.answer.is_generated
        return is_past and self.speech.has_words

    def _is_current(self, each: ServerTurn) -> bool:
        """Whether what comes for this turn is passed on."""
        return each.answer is self._turns.answer and not each.is_superseded

    def _is_over(self, dropped: ServerTurn) -> bool:
        """Whether what comes now cannot belong to this turn, or is more likely to belong to the next."""
        was_spoken_over = dropped.progress is Progress.ASKED and self.speech.has_words
        is_stale = self._now_s - self._last_s > STALE_S
        return dropped.progress is Progress.CUT or dropped.may_be_over or was_spoken_over or is_stale

    def _hear(self) -> None:
        """Begins the turn that was heard."""
        if self._ending is not None:
            self._ending[1].cancel()
            self._ending = None
        self.drop()
        answer = self._turns.hear()
        self.has_audio = False
        self.speech.begin_answer(answer.turn)
        self._order.append(ServerTurn(answer, self._now_s))
        self._touch()

    def _is_whole(self, first: ServerTurn) -> bool:
        """Whether the end of the generation is the end of the answer."""
        is_under_way = first.progress not in (Progress.CONTINUING, Progress.CUT) and not first.answer.open_calls
        return is_under_way and not first.follows_uncertain and not self._kind.tells_interaction

    def _finish_generation(self, each: ServerTurn) -> None:
        if not each.answer.said and each.plain_text:
            self._turns.say(each.answer, each.plain_text)
        if not each.answer.is_empty:
            self._turns.finish_generation(each.answer)

    def _complete(self, each: ServerTurn) -> None:
        self._stop_timer()
        if each in self._order:
            self._order.remove(each)
        if self._is_current(each):
            if not each.answer.said and each.plain_text:
                self._turns.say(each.answer, each.plain_text)
            self._end_speech(each.answer)
            self._turns.complete(each.answer)
        self._touch()
        if not self._order:
            self._on_idle()

    def _end_speech(self, answer: Answer) -> None:
        if not answer.is_asked:
            self.speech.end_answer(answer.turn)

    def _set_timer(self, seconds: float, do: Callable[[ServerTurn], None], each: ServerTurn) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, do, each)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _touch(self) -> None:
        self._last_s = self._now_s

    @property
    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()

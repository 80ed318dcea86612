"""The turn under way, as far as another connection needs it to answer the turn in place of one that was lost."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from antiphon.continuity.continuation import Continuation
from antiphon.models import live
from antiphon.models.live import LiveEvent, ToolAnswer
from antiphon.protocol.limits import speech_ms
from antiphon.tools.call import ToolCall

_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(eq=False, slots=True)
class OpenTurn:
    id: str
    question: str | None = None
    """What the user said or typed; None if that is not known yet."""
    words: str | None = None
    """The exact words that the session has asked for, if it has."""
    ran: list[ToolAnswer] = field(default_factory=list)
    """Calls of this turn that have run, and their results."""
    known: list[ToolAnswer] = field(default_factory=list)
    """Those of them that ran for an earlier connection: the model may make the same calls again."""
    open_calls: list[ToolCall] = field(default_factory=list)
    """Calls whose results have not come yet."""
    audio_ended: bool = False
    """Whether the session has ended the user's audio by itself."""
    is_started: bool = False
    """Whether the session was told that the turn has begun."""
    said: str = ""
    voiced: str = ""
    """The words of the audio so far."""
    audio_ms: int = 0
    is_generated: bool = False
    """Whether nothing more of the answer comes: it is whole, or the user speaks over it."""
    is_lost: bool = False
    """Whether the connection that was to answer is gone."""
    lost_by: str = ""
    """The name of the model whose connection was lost last."""
    losses: int = 0
    is_asked_again: bool = False
    """Whether the connection in use was asked what an earlier one had understood."""
    is_replayed: bool = False
    """Whether another connection was given the audio of the turn, to which it will give an id of its own."""
    continuation: Continuation | None = None
    """Joins the answer of a later connection to what was said before."""

    @property
    def has_output(self) -> bool:
        return bool(self.said) or self.audio_ms > 0

    def heard(self, *, speaks: bool) -> str:
        """The words that the user was sent to be heard, or to be read if nothing is spoken."""
        return (self.voiced if speaks else self.said).strip()

    def ask(self, text: str, ran: Sequence[ToolAnswer]) -> bool:
        """The session asks for the answer. Returns whether that is new to the connection in use: the session may learn
        the words that an earlier connection has understood only after the connection in use was asked them."""
        is_new = not self.is_asked_again or bool(ran)
        if is_new:
            self.question = text
            self.ran += ran
        return is_new

    def lose(self, model: str) -> None:
        """The connection to this model is gone."""
        self.is_lost, self.lost_by, self.is_asked_again = True, model, False
        self.losses += 1
        self.known = list(self.ran)

    def ask_again(self, model: str) -> None:
        """Another connection answers the turn. What comes from it is joined to what was said."""
        if self.is_lost and self.has_output:
            same_voice = model == self.lost_by
            self.continuation = Continuation(self.said, self.voiced, self.audio_ms, same_voice=same_voice)
        self.is_lost, self.is_asked_again = False, self.question is not None

    def take_results(self, answers: Sequence[ToolAnswer]) -> None:
        self.ran += answers
        done = [answer.call for answer in answers]
        self.open_calls = [call for call in self.open_calls if call not in done]

    def repeats(self, calls: Sequence[ToolCall]) -> Sequence[ToolAnswer] | None:
        """The results of these calls, if all of them have run in this turn already: the model makes them again."""
        left, results = list(self.known), list[ToolAnswer]()
        for call in calls:
            answer = next((each for each in left if _are_equal(each.call, call)), None)
            if answer is None:
                return None
            left.remove(answer)
            results.append(msgspec.structs.replace(answer, call=call))
        self.known = left
        return results

    def filter(self, event: LiveEvent) -> Sequence[LiveEvent]:
        """Notes what comes of the answer, and returns what is new of it."""
        match event:
            case live.OutputText(text=text):
                return self._take_text(text, is_last=False)
            case live.OutputAudio(is_filler=False):
                return self._note_audio(self.continuation.take_audio(event) if self.continuation else (event,))
            case live.Interrupted():
                self.is_generated = True
            case live.GenerationComplete():
                self.is_generated = True
                if self.continuation is not None:
                    return [*self._take_text("", is_last=True), event]
            case live.InputTranscript(is_final=True, text=text):
                self.question = text
            case live.ToolCalls(calls=calls):
                self.open_calls += calls
            case live.ToolCancelled(ids=ids):
                self.open_calls = [call for call in self.open_calls if call.id not in ids]
        return (event,)

    def _take_text(self, text: str, *, is_last: bool) -> Sequence[LiveEvent]:
        if self.continuation is None:
            self.said += text
            return (live.OutputText(self.id, text),)
        new = self.continuation.take_text(text, is_last=is_last)
        self.said += new
        events: list[LiveEvent] = [live.OutputText(self.id, new)] if new else []
        return [*events, *self._note_audio(self.continuation.take_audio(None, is_last=is_last))]

    def _note_audio(self, pieces: Sequence[live.OutputAudio]) -> Sequence[LiveEvent]:
        for piece in pieces:
            self.voiced += piece.text
            self.audio_ms += speech_ms(piece.pcm)
        return pieces


def _are_equal(one: ToolCall, other: ToolCall) -> bool:
    return one.name == other.name and _encode(one.args) == _encode(other.args)

"""The turn under way, as far as another connection needs it to answer the turn in place of one that was lost."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from antiphon.continuity.continuation import Continuation
from antiphon.models import live
from antiphon.models.live import LiveEvent, ToolAnswer
from antiphon.protocol.limits import speech_ms
from antiphon.tools.call import ToolCall


@dataclass(eq=False, slots=True)
class OpenTurn:
    id: str
    question: str | None = None
    """What the user said or typed; None if that is not known yet."""
    words: str | None = None
    """The exact words that the session has asked for, if it has."""
    ran: list[ToolAnswer] = field(default_factory=list)
    """Calls of this turn that have run, and their results."""
    open_calls: list[ToolCall] = field(default_factory=list)
    """Calls whose results have not come yet."""
    audio_ended: bool = False
    """Whether the session has ended the user's audio by itself."""
    said: str = ""
    voiced: str = ""
    """The words of the audio so far."""
    audio_ms: int = 0
    is_generated: bool = False
    is_lost: bool = False
    """Whether the connection that was to answer is gone."""
    is_replayed: bool = False
    """Whether another connection was given the audio of the turn, to which it will give an id of its own."""
    continuation: Continuation | None = None
    """Joins the answer of a later connection to what was said before."""

    @property
    def has_output(self) -> bool:
        return bool(self.said) or self.audio_ms > 0

    @property
    def rest_of_words(self) -> str:
        """What is left of the exact words, if a part of them was spoken."""
        words = (self.words or "").split()
        return " ".join(words[len(self.voiced.split()) :]) if self.audio_ms else " ".join(words)

    def lose(self, *, same_voice: bool) -> None:
        """The connection is gone. What comes from the next one is joined to what was said."""
        self.is_lost = True
        if self.voiced and not self.voiced[-1].isspace():
            self.voiced += " "
        if self.has_output and self.words is None:
            self.continuation = Continuation(self.said, self.voiced, self.audio_ms, same_voice=same_voice)

    def take_results(self, answers: Sequence[ToolAnswer]) -> None:
        self.ran += answers
        done = {id(answer.call) for answer in answers}
        self.open_calls = [
            call for call in self.open_calls if id(call) not in done and not any(a.call == call for a in answers)
        ]

    def repeats(self, calls: Sequence[ToolCall]) -> Sequence[ToolAnswer] | None:
        """The results of these calls, if all of them have run in this turn already: the model makes them again."""
        results = [self._result_of(call) for call in calls]
        return [result for result in results if result is not None] if all(results) else None

    def filter(self, event: LiveEvent) -> Sequence[LiveEvent]:
        """Notes what comes of the answer, and returns what is new of it."""
        match event:
            case live.OutputText(text=text):
                return self._take_text(text, is_last=False)
            case live.OutputAudio(is_filler=False):
                return self._note_audio(self.continuation.take_audio(event) if self.continuation else (event,))
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

    def _result_of(self, call: ToolCall) -> ToolAnswer | None:
        key = (call.name, msgspec.json.encode(call.args, order="sorted"))
        for answer in self.ran:
            if (answer.call.name, msgspec.json.encode(answer.call.args, order="sorted")) == key:
                return msgspec.structs.replace(answer, call=call)
        return None

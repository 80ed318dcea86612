"""The local voice as a `LiveModel`: it recognises turns, has a text model answer them, and speaks the answers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from antiphon.models.base import Completion, Prompt, TextModel
from antiphon.models.cascade.shared_engines import SharedEngines
from antiphon.models.cascade.speculative_chat import SpeculativeChat
from antiphon.models.cascade.speech_output import SpeechOutput, SpokenAnswer
from antiphon.models.cascade.turn import Turn
from antiphon.models.cascade.turn_recognizer import TurnRecognizer
from antiphon.models.live import (
    CascadeParts,
    Closed,
    GenerationComplete,
    Held,
    InputTranscript,
    Interrupted,
    LiveContext,
    LiveEvent,
    LiveProfile,
    OutputAudio,
    OutputText,
    Resumed,
    SpeechStarted,
    Timings,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnFailed,
    TurnStarted,
)
from antiphon.models.text_live import EventQueue
from antiphon.speech.base import Synthesizer
from antiphon.telemetry.log import get_logger

MAX_HOLD_S: Final = 2.0
"""How long an answer is held at most before it goes on, although it is not known yet what was said over it."""

log = get_logger(__name__)


def make_profile(model: TextModel, synthesizer: Synthesizer | None, recognizer: str = "") -> LiveProfile:
    """Returns the profile of a cascade of these. `recognizer` is a name."""
    return LiveProfile(
        name=f"cascade ({model.profile.name})",
        hears=True,
        output_hz=0 if synthesizer is None else synthesizer.output_hz,
        needs_network=model.profile.needs_network,
        tool_schemas="openai_chat",
        waits_to_answer=True,
        context_tokens=model.profile.context_tokens,
        tools_per_turn=model.profile.tools_per_turn,
        cascade=CascadeParts(model.profile.name, recognizer, None if synthesizer is None else synthesizer.name),
    )


@dataclass(eq=False, slots=True)
class _Answer:
    turn: str
    speech: SpokenAnswer | None
    text: str = ""
    is_complete: bool = False
    """Whether its `TurnComplete` was emitted. It may still be playing."""

    @property
    def is_under_way(self) -> bool:
        return not self.is_complete or (self.speech is not None and self.speech.is_audible)


@dataclass(frozen=True, slots=True)
class _Hold:
    turn: str | None
    is_certain: bool
    """Whether somebody certainly speaks, so that the words decide."""
    timer: asyncio.TimerHandle
    """Ends the hold if nothing else does."""


class Cascade:
    """The cascade of one session. It waits to answer: the session sees the words first, and then calls `respond`."""

    def __init__(
        self,
        engines: SharedEngines,
        model: TextModel,
        synthesizer: Synthesizer | None,
        default_voice: str | None = None,
        *,
        may_prepare: Callable[[Prompt], bool] = lambda prompt: True,
        prepares_speech: bool = True,
    ) -> None:
        """Without a synthesizer the answers are text only. The default voice is used until another is chosen.

        For prompts that it may prepare, the model is asked about what the user has probably said, sometimes in vain. If
        it prepares speech, the same is true of the synthesizer.
        """
        self.profile = make_profile(model, synthesizer, engines.recognizer.name)
        self._engines = engines
        self._queue = EventQueue()
        self._output = None if synthesizer is None else SpeechOutput(synthesizer, default_voice)
        prepare_speech = self._output.prepare if self._output is not None and prepares_speech else _ignore
        self._chat = SpeculativeChat(model, self._pass_on, prepare_speech, may_prepare=may_prepare)
        self._recognizer: TurnRecognizer | None = None
        self._answer: _Answer | None = None
        """The last answer that was asked for."""
        self._heard: tuple[str | None, Completion | None] = None, None
        """The last turn that was heard, and how it was completed."""
        self._hold: _Hold | None = None
        """Set while that answer waits, since somebody speaks over it."""
        self._void: set[str] = set()
        """Turns that were completed before an answer was requested: the user continued, or the session cancelled. If
        the session requests an answer all the same, it has not seen that yet."""

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        self._chat.connect(context)
        self._recognizer = TurnRecognizer(self._engines, self, context.names)

    def events(self) -> AsyncIterator[LiveEvent]:
        return self._queue.read()

    def set_voice(self, voice: str | None, speed: float) -> None:
        if self._output is not None:
            self._output.set_voice(voice, speed)

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        if self._recognizer is not None:
            self._recognizer.push(pcm, playing=playing)

    def end_audio(self, turn: str) -> None:
        if self._recognizer is not None:
            self._recognizer.end(turn)

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        if turn in self._void:
            self._void.remove(turn)
            return
        self._start_answer(turn)
        if self._answer is not None and self._answer.speech is not None:
            self._answer.speech.fill_wait()
        heard, completion = self._heard
        self._chat.respond(turn, completion if turn == heard else None)

    def say(self, turn: str, text: str) -> None:
        self._start_answer(turn)
        self._chat.say(turn, text)

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        self._chat.send_tool_results(turn, answers)

    def interrupt(self, turn: str, heard: str | None = None) -> None:
        was_heard = self._recognizer is not None and self._recognizer.settle(turn)
        if self._hold is not None and self._hold.turn in (None, turn):
            self._end_hold()
            if self._recognizer is not None:
                self._recognizer.answer_dropped()
        if self._answer is not None and self._answer.turn == turn:
            self._stop_answer()
        elif was_heard:
            self._complete_without_answer(turn)

    async def close(self) -> None:
        self._queue.close()
        self._stop_answer()
        if self._recognizer is not None:
            await self._recognizer.close()
        if self._output is not None:
            await self._output.close()
        await self._chat.close()

    # The user's speech.

    def is_answering(self) -> bool:
        return self._answer is not None and self._answer.is_under_way

    def on_possible_speech(self, *, possible: bool) -> None:
        if possible:
            self._hold_answer(is_certain=False)
        elif self._hold is not None and not self._hold.is_certain:
            self.on_release()

    def on_hold(self) -> None:
        self._hold_answer(is_certain=True)

    def on_release(self) -> None:
        if (hold := self._end_hold()) is not None:
            if self._answer is not None and self._answer.speech is not None:
                self._answer.speech.resume()
            self._queue.put(Resumed(hold.turn))

    def is_asking(self) -> bool:
        return self._answer is not None and "?" in self._answer.text

    def on_speech(self, turn: Turn) -> None:
        self._queue.put(SpeechStarted(turn.id))

    def on_barge_in(self) -> None:
        self._interrupt_answer()

    def on_continued(self, turn: Turn) -> None:
        assert turn.continues is not None
        if self.is_answering():
            self._interrupt_answer()
        if self._answer is None or self._answer.turn != turn.continues:
            self._queue.put(Interrupted(turn.continues))
            self._complete_without_answer(turn.continues)

    def on_caption(self, turn: Turn) -> None:
        self._queue.put(InputTranscript(turn.id, turn.caption, is_final=False))

    def on_guess(self, turn: Turn, text: str) -> None:
        self._chat.prepare(turn.continues or turn.id, text, turn.completion)

    def on_resumed(self) -> None:
        self._chat.drop()
        if self._output is not None:
            self._output.drop()

    def on_final(self, turn: Turn, timings: Timings) -> None:
        if self.is_answering():
            # The answer began while the user was already speaking.
            self._interrupt_answer()
        self._heard = turn.id, turn.completion
        completes = None if turn.completes is None else turn.completes.turn
        self._queue.put(TurnStarted(turn.id, turn.continues, completes))
        self._queue.put(InputTranscript(turn.id, turn.text, is_final=True, timings=timings))

    def on_empty(self, turn: str) -> None:
        self._queue.put(TurnComplete(turn))

    def on_failure(self, turn: str | None, message: str) -> None:
        log.warning("turn_not_understood", engine=self._engines.recognizer.name, reason=message)
        self._queue.put(TurnFailed(turn, message))
        if turn is not None:
            self._queue.put(TurnComplete(turn))

    # The answer.

    def _start_answer(self, turn: str) -> None:
        self._chat.check_open()
        if self._recognizer is not None:
            if self._answer is not None:
                # The user's last turn has its answer, and the session wants something else now. A turn without one is a
                # turn that the session has not seen yet.
                self._recognizer.settle(self._answer.turn)
            self._recognizer.expect_answer()
        self._stop_answer()
        speech = None if self._output is None else self._output.start(turn, self._emit_answer)
        self._answer = _Answer(turn, speech)

    def _pass_on(self, event: LiveEvent) -> None:
        """Passes on an event of the text model, and speaks its words."""
        speech = None if self._answer is None else self._answer.speech
        if isinstance(event, GenerationComplete) and self._recognizer is not None:
            # Before it is spoken: people answer a question before they have heard its end.
            self._recognizer.expect(event.expects)
        try:
            if isinstance(event, OutputText) and self._answer is not None:
                self._answer.text += event.text
            if speech is None:
                self._emit_answer(event)
            elif isinstance(event, GenerationComplete | TurnFailed | TurnComplete):
                speech.then(event)
            else:
                self._queue.put(event)
                if isinstance(event, OutputText):
                    speech.say(event.text)
                elif isinstance(event, ToolCalls):
                    speech.pause()
        except Exception:
            # Otherwise the session would wait forever for the end of this answer.
            log.exception("cascade_failed", model=self.profile.name)
            self._queue.put(Closed("The voice failed unexpectedly."))
            self._queue.finish()

    def _emit_answer(self, event: LiveEvent) -> None:
        if isinstance(event, TurnComplete) and self._answer is not None:
            self._answer.is_complete = True
        if self._recognizer is not None and isinstance(event, OutputAudio | TurnComplete):
            if isinstance(event, TurnComplete) or not event.is_filler:
                # From the first sound of the answer on, anything the user says is a new turn.
                self._recognizer.settle()
            if isinstance(event, OutputAudio):
                self._recognizer.played(event.pcm, self.profile.output_hz)
        self._queue.put(event)

    def _hold_answer(self, *, is_certain: bool) -> None:
        """Lets the answer wait, since somebody speaks over it."""
        self._end_hold()
        turn = None if self._answer is None else self._answer.turn
        timer = asyncio.get_running_loop().call_later(MAX_HOLD_S, self.on_release)
        self._hold = _Hold(turn, is_certain, timer)
        if self._answer is not None and self._answer.speech is not None:
            self._answer.speech.hold()
        self._queue.put(Held(turn, is_certain))

    def _end_hold(self) -> _Hold | None:
        """Ends the hold, if there is one. What becomes of the answer is the caller's matter."""
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.timer.cancel()
        return hold

    def _interrupt_answer(self) -> None:
        """Stops the answer because the user speaks over it."""
        self._queue.put(Interrupted(None if self._answer is None else self._answer.turn))
        self._stop_answer()

    def _stop_answer(self) -> None:
        """Stops generating and speaking the current answer, and completes its turn."""
        self._chat.stop()
        self._end_hold()
        answer = self._answer
        if answer is None:
            return
        if answer.speech is not None:
            answer.speech.cancel()
        if not answer.is_complete:
            answer.is_complete = True
            self._queue.put(TurnComplete(answer.turn))

    def _complete_without_answer(self, turn: str) -> None:
        self._void.add(turn)
        self._queue.put(TurnComplete(turn))


def _ignore(clause: str) -> None:
    """Prepares no speech."""

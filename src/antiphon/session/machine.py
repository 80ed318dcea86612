"""The session's state table: a state and an event in, a state and effects out. No clock, no waiting, no logging.

It can be read beside the table of the wire protocol, row by row.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from antiphon.session.effects import (
    Ask,
    Effect,
    EndAudio,
    EndTurn,
    KeepAnswer,
    KeepUser,
    RunTools,
    Save,
    Say,
    Silence,
    StartVoice,
    TellAudio,
    TellChunk,
    TellError,
    TellInterim,
    TellQueue,
    Wake,
    Warn,
)
from antiphon.session.events import (
    BargedIn,
    ClientBack,
    Event,
    Failed,
    GivenUp,
    Heard,
    Interrupt,
    Made,
    ModeChanged,
    NextQueued,
    Playback,
    PlaybackDone,
    Said,
    SpeakFirst,
    StartListening,
    StopListening,
    TakenUp,
    TextMessage,
    Tick,
    ToolsWanted,
    TurnOver,
    Unqueue,
    Voiced,
)
from antiphon.session.state import MAX_QUEUED, Answer, Phase, Piece, Session
from antiphon.tools.spec import Mode

Step = tuple[Session, Sequence[Effect]]

TOO_MANY_QUEUED: Final = "Too many messages wait already. Send this one again when I have answered."

RESTING = (Phase.IDLE, Phase.LISTENING)
BUSY = (Phase.PROCESSING, Phase.SPEAKING)


def step(session: Session, event: Event, now_ms: int) -> Step:
    match session.phase, event:
        # What the client wants.
        case Phase.IDLE, StartListening():
            return session, [StartVoice()]
        case Phase.PROCESSING, StartListening() if session.mode is Mode.TEXT:
            return session, [StartVoice()]
        case Phase.LISTENING, StopListening(heard_speech=True):
            return session.begin().resting_at(Phase.IDLE), [EndAudio(), Say(Phase.PROCESSING)]
        case Phase.LISTENING, StopListening():
            return session.at(Phase.IDLE).resting_at(Phase.IDLE), [Say(Phase.IDLE), Save()]
        case ((Phase.PROCESSING | Phase.SPEAKING), StopListening()):
            return session.resting_at(Phase.IDLE), []
        case ((Phase.IDLE | Phase.LISTENING), TextMessage(text=text)):
            return _type(session, text)
        case Phase.SPEAKING, TextMessage(text=text) if len(session.queue) < MAX_QUEUED:
            interrupted, effects = _interrupt(session, None, now_ms)
            begun, typed = _type(interrupted, text)
            return begun, [*effects, *typed]
        case Phase.PROCESSING, TextMessage(text=text) if len(session.queue) < MAX_QUEUED:
            queued = session.with_queued(text)
            return queued, [TellQueue(queued.queue)]
        case ((Phase.PROCESSING | Phase.SPEAKING), TextMessage()):
            return session, [TellError("busy", TOO_MANY_QUEUED, retryable=True)]
        case _, Unqueue(id=id):
            left = session.with_queue(tuple(each for each in session.queue if each.id != id))
            return left, [TellQueue(left.queue)]
        case ((Phase.IDLE | Phase.LISTENING), NextQueued()):
            return _begin_queued(session) if session.queue else (session, [])
        case Phase.PROCESSING, Interrupt():
            return _empty_queue(*_drop(session))
        case Phase.SPEAKING, Interrupt(played_ms=played_ms):
            return _empty_queue(*_rest_after_interrupt(session, played_ms, now_ms))
        case Phase.SPEAKING, PlaybackDone(turn=turn) if _is_played(session, turn, now_ms):
            return _rest(session)
        case Phase.SPEAKING, PlaybackDone():
            # A client that knows only the basic messages says it after every clip.
            return session, []
        case _, Playback(turn=turn, played_ms=played_ms):
            return _played(session, turn, played_ms), []
        case ((Phase.IDLE | Phase.LISTENING), ModeChanged(mode=mode, listening=listening)):
            phase = Phase.LISTENING if listening else Phase.IDLE
            changed = replace(session, mode=mode, phase=phase, resting=phase)
            return changed, [Say(phase), Save()] if phase is not session.phase else [Save()]
        case ((Phase.IDLE | Phase.LISTENING), SpeakFirst()):
            return session.begin(), [Say(Phase.PROCESSING)]
        case ((Phase.IDLE | Phase.LISTENING), TakenUp(text=text, ran=ran)):
            begun = session.begin()
            answer = Answer(begun.turn, heard_before=event.heard, next_seq=event.last_seq + 1)
            return begun.with_answer(answer), [Say(Phase.PROCESSING), Ask(text, ran)]
        case Phase.SPEAKING, ClientBack(missing_ms=missing_ms) if session.answer:
            return _go_on_speaking(session, session.answer, missing_ms, now_ms)
        case _, ClientBack():
            return session, []

        # What the model does.
        case Phase.LISTENING, Heard(text=text, is_final=False):
            return session, [TellInterim(text)]
        case Phase.SPEAKING, Heard(is_final=True, waits=True):
            # A model that did not notice that it was spoken over has heard it all the same.
            interrupted, effects = _interrupt(session, None, now_ms)
            return interrupted.begin(), [*effects, Say(Phase.PROCESSING), *_spoken(event)]
        case Phase.LISTENING, Heard():
            return session.begin(), [Say(Phase.PROCESSING), *_spoken(event)]
        case Phase.PROCESSING, Heard(is_final=True) if session.answer and not session.answer.text:
            # The transcript of what `stop_listening` has ended.
            return session, [*_spoken(event)]
        case ((Phase.PROCESSING | Phase.SPEAKING), Said(text=text)) if session.answer and not session.answer.complete:
            answer = session.answer
            said = replace(answer, text=answer.text + text)
            return session.with_answer(said), [TellChunk(text, is_first=not answer.text)]
        case ((Phase.PROCESSING | Phase.SPEAKING), Voiced()) if session.answer:
            return _voice(session, session.answer, event, now_ms)
        case ((Phase.PROCESSING | Phase.SPEAKING), ToolsWanted(calls=calls)):
            return session, [RunTools(session.turn, calls)]
        case Phase.PROCESSING, BargedIn():
            return _drop(session, Phase.LISTENING)
        case Phase.SPEAKING, BargedIn():
            return _rest_after_interrupt(session, None, now_ms)
        case ((Phase.PROCESSING | Phase.SPEAKING), Made()) if session.answer and not session.answer.complete:
            return _make(session, session.answer)
        case Phase.PROCESSING, TurnOver():
            return _finish_silently(session)
        case Phase.SPEAKING, TurnOver() if session.answer and not session.answer.complete:
            return _make(session, session.answer)
        case Phase.SPEAKING, TurnOver():
            # The model is done; the client is still playing.
            return session, []
        case ((Phase.PROCESSING | Phase.SPEAKING), Failed(message=message, retryable=retryable)):
            rested, effects = _finish_silently(session)
            return rested, [TellError("model_failed", message, retryable), *effects]
        case Phase.LISTENING, Failed(message=message, retryable=retryable):
            # What was said could not be understood, or the connection is gone.
            return session, [TellError("model_failed", message, retryable)]

        case ((Phase.PROCESSING | Phase.SPEAKING), GivenUp(message=message, code=code, retryable=retryable)):
            rested, effects = _rest(session)
            return rested, [Silence(session.turn, None), TellError(code, message, retryable), *effects]
        case _, GivenUp(message=message, code=code, retryable=retryable):
            return session, [TellError(code, message, retryable)]

        # Time.
        case Phase.SPEAKING, Tick() if session.answer and session.answer.complete:
            late = now_ms >= session.answer.deadline_ms
            return _rest(session) if late else (session, [Wake(session.answer.deadline_ms)])
        case _, Tick():
            return session, []
        # An answer that is over may still be reported on, and spoken over.
        case ((Phase.IDLE | Phase.LISTENING), (TurnOver() | Made() | BargedIn() | PlaybackDone())):
            return session, []
        case _:
            return session, [Warn(f"{type(event).__name__} ignored in {session.phase}")]


def _type(session: Session, text: str) -> Step:
    """A typed message is answered now, unless others have waited longer."""
    if session.queue:
        return _begin_queued(session.with_queued(text))
    return session.begin(), _typed(text)


def _begin_queued(session: Session) -> Step:
    """The typed message that has waited longest."""
    first, *left = session.queue
    begun = session.begin().with_queue(tuple(left))
    # The state first: a client that sees an empty queue at rest may believe that all is answered.
    said, *rest = _typed(first.text)
    return begun, [said, TellQueue(begun.queue), *rest]


def _empty_queue(session: Session, effects: Sequence[Effect]) -> Step:
    """An interruption gives up the messages that wait, too."""
    if not session.queue:
        return session, effects
    return session.with_queue(()), [TellQueue(()), *effects]


def _typed(text: str) -> Sequence[Effect]:
    return Say(Phase.PROCESSING), KeepUser(text, spoken=False), Ask(text)


def _spoken(event: Heard) -> Sequence[Effect]:
    keep = KeepUser(event.text, spoken=True, goes_on=event.goes_on, timings=event.timings)
    return (keep, Ask(event.text)) if event.waits else (keep,)


def _voice(session: Session, answer: Answer, event: Voiced, now_ms: int) -> Step:
    first = session.phase is Phase.PROCESSING
    since_ms = now_ms if first else answer.speaking_since_ms
    effects: list[Effect] = [Say(Phase.SPEAKING)] if first else []
    words, heard = tuple(event.text.split()), answer.heard_before
    if words and heard[: len(words)] == words:
        # The client has this piece from an earlier process.
        answer = replace(answer, heard_before=heard[len(words) :])
        since_ms -= event.ms
    else:
        # Other words than those that were heard are another answer: the client hears all of it, from its first piece.
        is_another = bool(heard) and not answer.pieces
        seq = 0 if is_another else answer.next_seq
        answer = replace(answer, heard_before=(), next_seq=seq + 1)
        effects.append(TellAudio(answer.turn, seq, event.pcm, event.text, event.last))
    voiced = replace(answer, pieces=(*answer.pieces, Piece(event.text, event.ms)), speaking_since_ms=since_ms)
    if answer.complete:
        effects.append(Wake(voiced.deadline_ms))
    return session.at(Phase.SPEAKING).with_answer(voiced), effects


def _go_on_speaking(session: Session, answer: Answer, missing_ms: int, now_ms: int) -> Step:
    """Nobody has listened for a while. What the client has, it may have played; the rest takes its time from now on."""
    since_ms = max(answer.speaking_since_ms, now_ms - (answer.audio_ms - missing_ms))
    speaking = replace(answer, speaking_since_ms=since_ms)
    return session.with_answer(speaking), [Wake(speaking.deadline_ms)] if answer.complete else []


def _make(session: Session, answer: Answer) -> Step:
    """The answer is whole. If it is spoken, the client is given the time to play it."""
    whole = replace(answer, complete=True)
    effects: list[Effect] = [KeepAnswer(answer.turn, answer.text, is_whole=True)]
    if session.phase is Phase.SPEAKING:
        effects.append(Wake(whole.deadline_ms))
    return session.with_answer(whole), effects


def _finish_silently(session: Session) -> Step:
    """An answer without audio, or no answer at all."""
    effects: list[Effect] = []
    if session.answer is not None and session.answer.text and not session.answer.complete:
        session, made = _make(session.at(Phase.PROCESSING), session.answer)
        effects += made
    rested, rest = _rest(session)
    return rested, [*effects, *rest]


def _rest(session: Session) -> Step:
    return session.end_answer(), [Say(session.resting), EndTurn(session.turn)]


def _drop(session: Session, phase: Phase | None = None) -> Step:
    """The answer is given up before anything of it was heard. In text, what came of it was read."""
    said = session.answer.text if session.answer is not None else ""
    heard = None if session.mode is Mode.TEXT else ""
    effects: list[Effect] = [Silence(session.turn, heard)]
    if said:
        effects.append(KeepAnswer(session.turn, said if heard is None else heard))
    dropped = session if phase is None else session.resting_at(phase)
    rested, rest = _rest(dropped)
    return rested, [*effects, *rest]


def _interrupt(session: Session, played_ms: int | None, now_ms: int) -> Step:
    """What was heard is kept first: what follows may be a new answer."""
    answer = session.answer
    heard = None
    effects: list[Effect] = []
    if answer is not None:
        elapsed_ms = min(now_ms - answer.speaking_since_ms, answer.audio_ms)
        heard = answer.heard(played_ms if played_ms is not None else max(answer.played_ms, elapsed_ms))
        effects.append(KeepAnswer(answer.turn, heard))
    effects += [Silence(session.turn, heard), Say(Phase.INTERRUPTED), EndTurn(session.turn)]
    return session.end_answer(), effects


def _rest_after_interrupt(session: Session, played_ms: int | None, now_ms: int) -> Step:
    interrupted, effects = _interrupt(session, played_ms, now_ms)
    # Whoever interrupts has something to say.
    phase = interrupted.resting if interrupted.mode is Mode.TEXT else Phase.LISTENING
    return interrupted.at(phase).resting_at(phase), [*effects, Say(phase)]


def _is_played(session: Session, turn: int | None, now_ms: int) -> bool:
    answer = session.answer
    return answer is not None and turn in (None, answer.turn) and answer.was_played(now_ms)


def _played(session: Session, turn: int, played_ms: int) -> Session:
    answer = session.answer
    if answer is None or answer.turn != turn or played_ms <= answer.played_ms:
        return session
    return session.with_answer(replace(answer, played_ms=min(played_ms, answer.audio_ms)))

"""The session's state table: a state and an event in, a state and effects out. It uses no clock, no I/O and no logging.

It can be read row by row beside the state table of the wire protocol.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec

from antiphon.models.live import (
    Closed,
    GenerationComplete,
    Held,
    InputTranscript,
    Interrupted,
    OutputAudio,
    OutputText,
    Resumed,
    ToolCalls,
    ToolCancelled,
    TurnComplete,
    TurnFailed,
    TurnStarted,
)
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import speech_ms
from antiphon.session.effects import (
    AnswerSpeech,
    BeginTurn,
    CancelCalls,
    Effect,
    EndAudio,
    EndTurn,
    InterruptModel,
    LogIgnored,
    Respond,
    RunTools,
    Save,
    SayAgain,
    Send,
    SendAudio,
    SetTimer,
    StartVoice,
    StoreAnswer,
    StoreUser,
)
from antiphon.session.events import (
    ClientBack,
    Event,
    ListeningStopped,
    ModeChanged,
    PlaybackAssumed,
    QueueReady,
    SessionSpeaks,
    SpeechLost,
    Tick,
    TurnAbandoned,
    TurnRestored,
)
from antiphon.session.state import MAX_QUEUED, PLAYBACK_TOLERANCE_MS, Phase, Piece, SessionState, Turn
from antiphon.tools.spec import Mode

Step = tuple[SessionState, Sequence[Effect]]

TOO_MANY_QUEUED: Final = "Too many messages are waiting already. Send this one again when I have answered."
MODEL_FAILED: Final = "model_failed"

OF_AN_ANSWER: Final = (
    *(OutputText, OutputAudio, ToolCalls, Interrupted, Held, Resumed),
    *(GenerationComplete, TurnComplete, TurnFailed),
)


def step(state: SessionState, event: Event, now_ms: int) -> Step:
    turn = state.turn
    if isinstance(event, OF_AN_ANSWER) and event.turn is not None and not state.is_current(event.turn):
        # It belongs to a turn that is over or was given up.
        return state, []
    match state.phase, event:
        # The client's messages.
        case Phase.IDLE, c.StartListening():
            return state, [StartVoice()]
        case Phase.PROCESSING, c.StartListening() if state.mode is Mode.TEXT:
            return state, [StartVoice()]
        case Phase.LISTENING, ListeningStopped(has_speech=True):
            begun = state.begin().resting_at(Phase.IDLE)
            return begun, [EndAudio(_id(begun)), _tell(Phase.PROCESSING)]
        case Phase.LISTENING, ListeningStopped():
            return state.at(Phase.IDLE).resting_at(Phase.IDLE), [_tell(Phase.IDLE), Save()]
        case ((Phase.PROCESSING | Phase.SPEAKING), ListeningStopped()):
            return state.resting_at(Phase.IDLE), []
        case ((Phase.IDLE | Phase.LISTENING), c.TextMessage(text=text)):
            return _type(state, text)
        case Phase.SPEAKING, c.TextMessage(text=text) if len(state.queue) < MAX_QUEUED:
            interrupted, effects = _interrupt(state, None, now_ms)
            begun, typed = _type(interrupted, text)
            return begun, [*effects, *typed]
        case Phase.PROCESSING, c.TextMessage(text=text) if len(state.queue) < MAX_QUEUED:
            queued = state.with_queued(text)
            return queued, [_tell_queue(queued)]
        case ((Phase.PROCESSING | Phase.SPEAKING), c.TextMessage()):
            return state, [Send(s.Error(TOO_MANY_QUEUED, "busy", retryable=True))]
        case _, c.Unqueue(id=id):
            left = state.with_queue(tuple(each for each in state.queue if each.id != id))
            return left, [_tell_queue(left)]
        case ((Phase.IDLE | Phase.LISTENING), QueueReady()):
            return _begin_queued(state) if state.queue else (state, [])
        case Phase.PROCESSING, c.Interrupt():
            return _empty_queue(*_drop(state))
        case ((Phase.IDLE | Phase.LISTENING), (c.Interrupt() | c.PlaybackDone())) if state.unconfirmed:
            return state.confirm(), [Save()]
        case Phase.SPEAKING, c.Interrupt(played_ms=played_ms):
            return _empty_queue(*_rest_after_interrupt(state, played_ms, now_ms))
        case Phase.PROCESSING, (c.ClearConversation() | c.LoadConversation()):
            return _leave_conversation(*_empty_queue(*_drop(state)))
        case Phase.SPEAKING, (c.ClearConversation() | c.LoadConversation()):
            return _leave_conversation(*_empty_queue(*_rest_after_interrupt(state, None, now_ms)))
        case _, (c.ClearConversation() | c.LoadConversation()):
            return _leave_conversation(state, [])
        case Phase.SPEAKING, c.PlaybackDone(turn=number) if turn and number in (None, turn.number):
            # A client that knows only the basic messages sends it after every clip.
            return _rest(state) if turn.was_played(now_ms) else (state, [])
        case Phase.SPEAKING, c.PlaybackDone():
            return state, []
        case Phase.SPEAKING, PlaybackAssumed() if turn and turn.complete:
            return _rest(state)
        case _, PlaybackAssumed():
            return state, []
        case _, c.Playback(turn=number, played_ms=played_ms):
            return _played(state, number, int(played_ms)), []
        case ((Phase.IDLE | Phase.LISTENING), ModeChanged(mode=mode, listening=listening)):
            phase = Phase.LISTENING if listening else Phase.IDLE
            changed = replace(state, mode=mode, phase=phase, resting=phase, unconfirmed=None)
            return changed, [_tell(phase), Save()] if phase is not state.phase else [Save()]
        case ((Phase.IDLE | Phase.LISTENING), SessionSpeaks()):
            return state.begin(), [_tell(Phase.PROCESSING)]
        case ((Phase.IDLE | Phase.LISTENING), TurnRestored(turn=id, text=text, ran=ran)):
            begun = state.begin(id)
            restored = Turn(id, begun.turns, heard_before=event.heard, next_seq=event.last_seq + 1)
            return begun.with_turn(restored), [_tell(Phase.PROCESSING), Respond(id, text, ran)]
        case Phase.SPEAKING, ClientBack(missing_ms=missing_ms) if turn:
            return _go_on_speaking(state, turn, missing_ms, now_ms)
        case ((Phase.IDLE | Phase.LISTENING), ClientBack(missing_ms=missing_ms)) if state.unconfirmed and missing_ms:
            again = replace(state, phase=Phase.SPEAKING, turn=state.unconfirmed, unconfirmed=None)
            speaking, effects = _go_on_speaking(again, state.unconfirmed, missing_ms, now_ms)
            return speaking, [_tell(Phase.SPEAKING), *effects]
        case _, ClientBack():
            return state, []
        case Phase.SPEAKING, SpeechLost(text=text, ms=ms) if turn:
            shortened = replace(turn, pieces=turn.first(turn.audio_ms - ms), complete=False, is_repeated=True)
            return state.with_turn(shortened), [SayAgain(turn.id, text)]
        case _, SpeechLost():
            return state, []

        # The model's events.
        case Phase.PROCESSING, TurnStarted(turn=id) if state.is_current(id):
            # It is the turn that `stop_listening` has ended.
            begin = BeginTurn(id, spoken=True, continues=event.continues, completes=event.completes)
            return state.without_recent(event.continues), [begin]
        case Phase.LISTENING, TurnStarted():
            return _hear(state, event)
        case ((Phase.PROCESSING | Phase.SPEAKING), TurnStarted()):
            # The user spoke over the answer, and the model did not notice that it was interrupted.
            given_up, effects = _interrupt(state, None, now_ms) if state.phase is Phase.SPEAKING else _give_up(state)
            heard, begun_effects = _hear(given_up, event)
            return heard, [*effects, *begun_effects]
        case Phase.IDLE, TurnStarted(turn=id):
            # Nobody listens any more, so nobody waits for an answer.
            return state, [InterruptModel(id, "")]
        case _, InputTranscript(is_final=True):
            return state, _take_words(state, event)
        case phase, InputTranscript(text=text):
            is_wanted = phase is Phase.LISTENING or state.is_current(event.turn)
            return state, [Send(s.Transcript(text, is_final=False))] if is_wanted else []
        case _, OutputText() if turn and turn.is_repeated:
            return state, []
        case ((Phase.PROCESSING | Phase.SPEAKING), OutputText(text=text)) if turn and not turn.complete:
            said = replace(turn, text=turn.text + text)
            return state.with_turn(said), [Send(s.ResponseChunk(text, is_first=not turn.text, turn=turn.number))]
        case Phase.PROCESSING, OutputAudio(is_filler=True) if turn:
            return _fill_wait(state, turn, event, now_ms)
        case ((Phase.PROCESSING | Phase.SPEAKING), OutputAudio(is_filler=False)) if turn:
            return _speak(state, turn, event, now_ms)
        case ((Phase.PROCESSING | Phase.SPEAKING), ToolCalls(turn=id, calls=calls)):
            return state, [RunTools(id, calls)]
        case _, ToolCancelled(ids=ids):
            return state, [CancelCalls(ids)]
        case Phase.PROCESSING, Interrupted():
            return _drop(state, Phase.LISTENING)
        case Phase.SPEAKING, Interrupted():
            return _rest_after_interrupt(state, None, now_ms)
        case ((Phase.PROCESSING | Phase.SPEAKING), Held()) if turn and turn.pieces and turn.held_since_ms is None:
            return state.with_turn(turn.hold(now_ms)), [Send(s.Hold(turn.number))]
        case _, Resumed() if turn and turn.held_since_ms is not None:
            return _resume(state, turn, now_ms)
        case _, (Held() | Resumed()):
            # The client plays nothing, or goes on already.
            return state, []
        case ((Phase.PROCESSING | Phase.SPEAKING), GenerationComplete()) if turn and not turn.complete:
            return _complete(state, turn)
        case Phase.PROCESSING, TurnComplete():
            return _finish_silently(state)
        case Phase.SPEAKING, TurnComplete() if turn and not turn.complete:
            return _complete(state, turn)
        case ((Phase.PROCESSING | Phase.SPEAKING), (GenerationComplete() | TurnComplete() | OutputText())):
            # The answer is complete; the client is still playing it.
            return state, []
        case ((Phase.PROCESSING | Phase.SPEAKING), TurnFailed(turn=str())):
            return _fail(state, event.message, event.retryable)
        case Phase.SPEAKING, Closed() if turn and turn.complete:
            # The client is still playing the answer, or will when it comes back.
            return state, [_tell_failure(event.reason, event.retryable)]
        case ((Phase.PROCESSING | Phase.SPEAKING), Closed()):
            return _fail(state, event.reason, event.retryable)
        case ((Phase.LISTENING | Phase.PROCESSING | Phase.SPEAKING), TurnFailed()):
            # What was said could not be understood.
            return state, [_tell_failure(event.message, event.retryable)]
        case Phase.LISTENING, Closed():
            return state, [_tell_failure(event.reason, event.retryable)]

        case ((Phase.PROCESSING | Phase.SPEAKING), TurnAbandoned(message=message, code=code)) if turn:
            error = Send(s.Error(message, code, event.retryable))
            rested, effects = _rest(state)
            return rested, [InterruptModel(turn.id, None), error, *effects]
        case _, TurnAbandoned(message=message, code=code):
            return state, [Send(s.Error(message, code, event.retryable))]

        # Time.
        case Phase.SPEAKING, Tick() if turn and turn.complete:
            return _stop_waiting(state, turn) if now_ms >= turn.deadline_ms else (state, [SetTimer(turn.deadline_ms)])
        case _, Tick():
            return state, []
        case ((Phase.IDLE | Phase.LISTENING), c.PlaybackDone()):
            return state, []
        case _:
            return state, [LogIgnored(f"{type(event).__name__} in {state.phase}")]


def _tell(phase: Phase) -> Effect:
    return Send(s.StateChanged(s.State(phase)))


def _tell_queue(state: SessionState) -> Effect:
    return Send(s.Queued(state.queue), stored_first=True)


def _tell_failure(message: str, retryable: bool) -> Effect:
    return Send(s.Error(message, MODEL_FAILED, retryable))


def _id(state: SessionState) -> str:
    assert state.turn is not None
    return state.turn.id


def _type(state: SessionState, text: str) -> Step:
    """A typed message is answered now, unless others have waited longer."""
    if state.queue:
        return _begin_queued(state.with_queued(text))
    return _begin_typed(state, text)


def _begin_queued(state: SessionState) -> Step:
    """Begins the turn of the typed message that has waited longest."""
    first, *left = state.queue
    begun, effects = _begin_typed(state.with_queue(tuple(left)), first.text)
    # The state first: a client that sees an empty queue at rest may believe that all is answered.
    return begun, [effects[0], _tell_queue(begun), *effects[1:]]


def _begin_typed(state: SessionState, text: str) -> Step:
    begun = state.begin()
    id, number = _id(begun), begun.turns
    stored = StoreUser(id, number, text, spoken=False)
    return begun, [_tell(Phase.PROCESSING), BeginTurn(id), stored, Respond(id, text)]


def _empty_queue(state: SessionState, effects: Sequence[Effect]) -> Step:
    """An interruption gives up the messages that wait, too."""
    if not state.queue:
        return state, effects
    emptied = state.with_queue(())
    return emptied, [_tell_queue(emptied), *effects]


def _leave_conversation(state: SessionState, effects: Sequence[Effect]) -> Step:
    """Late transcripts belong to what was said before, and are not taken any more."""
    return replace(state, recent=(), unconfirmed=None), effects


def _hear(state: SessionState, event: TurnStarted) -> Step:
    """The user has finished a turn, or the model has begun to answer one."""
    begin = BeginTurn(event.turn, spoken=True, continues=event.continues, completes=event.completes)
    return state.without_recent(event.continues).begin(event.turn), [_tell(Phase.PROCESSING), begin]


def _take_words(state: SessionState, event: InputTranscript) -> Sequence[Effect]:
    """What the user said in this turn or in an earlier one, whose answer may be under way or over."""
    number = state.number_of(event.turn)
    if number is None:
        return [LogIgnored("InputTranscript of an unknown turn")]
    stored = StoreUser(event.turn, number, event.text, spoken=True, timings=event.timings)
    return [stored, AnswerSpeech(event.turn, event.text)]


def _fill_wait(state: SessionState, turn: Turn, event: OutputAudio, now_ms: int) -> Step:
    """The client plays it, but the answer has not begun."""
    seq, piece = turn.next_seq, Piece("", speech_ms(event.pcm))
    since_ms = turn.playing_since_ms(now_ms)
    filled = replace(turn, pieces=(*turn.pieces, piece), speaking_since_ms=since_ms, next_seq=seq + 1)
    return state.with_turn(filled), [SendAudio(turn.number, seq, event.pcm, "", is_filler=True)]


def _speak(state: SessionState, turn: Turn, event: OutputAudio, now_ms: int) -> Step:
    first = state.phase is Phase.PROCESSING
    ms = speech_ms(event.pcm)
    since_ms = turn.playing_since_ms(now_ms)
    effects: list[Effect] = [_tell(Phase.SPEAKING)] if first else []
    words, heard = tuple(event.text.split()), turn.heard_before
    if heard[: len(words)] == words and heard and (words or turn.pieces or _begins_with(turn.text, heard[0])):
        # The client has this piece from an earlier process. A piece without words belongs to those around it, and the
        # first one to the word of which it is the beginning.
        turn = replace(turn, heard_before=heard[len(words) :])
        since_ms -= ms
    elif heard and words[: len(heard)] == heard:
        # The client has its beginning.
        rest = _after(event, len(heard), len(words))
        since_ms -= ms - speech_ms(rest.pcm)
        seq, turn = turn.next_seq, replace(turn, heard_before=(), next_seq=turn.next_seq + 1)
        effects.append(SendAudio(turn.number, seq, rest.pcm, rest.text, rest.last))
    else:
        # Other words than those that were heard are another answer: the client hears all of it, from its first piece.
        is_another = bool(heard) and not turn.pieces
        seq = 0 if is_another else turn.next_seq
        turn = replace(turn, heard_before=(), next_seq=seq + 1)
        effects.append(SendAudio(turn.number, seq, event.pcm, event.text, event.last))
    spoken = replace(turn, pieces=(*turn.pieces, Piece(event.text, ms)), speaking_since_ms=since_ms)
    if turn.complete:
        effects.append(SetTimer(spoken.deadline_ms))
    return state.at(Phase.SPEAKING).with_turn(spoken), effects


def _begins_with(text: str, word: str) -> bool:
    """Whether this is the first word of the text, of which perhaps only a part has come."""
    first = next(iter(text.split()), "")
    return bool(first) and (first == word or (text.lstrip() == first and word.startswith(first)))


def _after(piece: OutputAudio, heard: int, words: int) -> OutputAudio:
    """Returns the rest of a piece without its first words, as if all of them took the same time."""
    at = len(piece.pcm) // 2 * heard // words * 2
    return msgspec.structs.replace(piece, pcm=piece.pcm[at:], text=" ".join(piece.text.split()[heard:]))


def _resume(state: SessionState, turn: Turn, now_ms: int) -> Step:
    """The client goes on playing the answer that it has held."""
    speaking = turn.resume(now_ms)
    timer = [SetTimer(speaking.deadline_ms)] if turn.complete else []
    return state.with_turn(speaking), [Send(s.Resume(turn.number)), *timer]


def _go_on_speaking(state: SessionState, turn: Turn, missing_ms: int, now_ms: int) -> Step:
    """Nobody has listened for a while. What the client has, it may have played; the rest takes its time from now on."""
    since_ms = max(turn.speaking_since_ms, now_ms - (turn.audio_ms - missing_ms))
    speaking = replace(turn, speaking_since_ms=since_ms, held_since_ms=None)
    effects: list[Effect] = [Send(s.Resume(turn.number))] if turn.held_since_ms is not None else []
    return state.with_turn(speaking), [*effects, SetTimer(speaking.deadline_ms)] if turn.complete else effects


def _complete(state: SessionState, turn: Turn) -> Step:
    """The answer is whole. If it is spoken, the client is given the time to play it."""
    whole = replace(turn, complete=True)
    effects: list[Effect] = []
    if not turn.is_repeated:
        effects.append(StoreAnswer(turn.id, turn.number, turn.text, is_whole=True))
    if state.phase is Phase.SPEAKING:
        effects.append(SetTimer(whole.deadline_ms))
    return state.with_turn(whole), effects


def _finish_silently(state: SessionState) -> Step:
    """An answer without audio, or no answer at all."""
    effects: list[Effect] = []
    if state.turn is not None and state.turn.text and not state.turn.complete:
        state, completed = _complete(state.at(Phase.PROCESSING), state.turn)
        effects += completed
    rested, rest = _rest(state)
    return rested, [*effects, *rest]


def _fail(state: SessionState, message: str, retryable: bool) -> Step:
    """There is no more of the answer. What was said of it stays."""
    rested, effects = _finish_silently(state)
    if state.phase is Phase.SPEAKING and state.turn is not None:
        # A client that is away has not heard it yet.
        rested = replace(rested, unconfirmed=replace(state.turn, complete=True))
    return rested, [_tell_failure(message, retryable), *effects]


def _rest(state: SessionState) -> Step:
    return state.end_turn(), [_tell(state.resting), EndTurn(state.turns)]


def _stop_waiting(state: SessionState, turn: Turn) -> Step:
    """The client did not report in time that it has played the answer. It may be gone without a word, and come back."""
    rested, effects = _rest(state)
    is_played = turn.played_ms >= turn.audio_ms - PLAYBACK_TOLERANCE_MS
    return rested if is_played else replace(rested, unconfirmed=turn), effects


def _give_up(state: SessionState) -> Step:
    """The answer is given up before anything of it was heard. In text, what came of it was read."""
    turn = state.turn
    effects: list[Effect] = []
    if turn is not None:
        heard = None if state.mode is Mode.TEXT else ""
        effects.append(InterruptModel(turn.id, heard))
        if turn.text:
            effects.append(StoreAnswer(turn.id, turn.number, turn.text if heard is None else heard))
    return state.end_turn(), [*effects, EndTurn(state.turns)]


def _drop(state: SessionState, phase: Phase | None = None) -> Step:
    """Gives the answer up, and rests, in this phase if one is given."""
    dropped, effects = _give_up(state if phase is None else state.resting_at(phase))
    *before, end = effects
    return dropped, [*before, _tell(dropped.phase), end]


def _interrupt(state: SessionState, played_ms: float | None, now_ms: int) -> Step:
    """What was heard is stored first: what follows may be a new answer."""
    turn = state.turn
    effects: list[Effect] = []
    if turn is not None:
        elapsed_ms = min(turn.elapsed_ms(now_ms), turn.audio_ms)
        reported_ms = None if played_ms is None else int(played_ms)
        heard = turn.heard(max(turn.played_ms, elapsed_ms) if reported_ms is None else reported_ms)
        effects += [StoreAnswer(turn.id, turn.number, heard), InterruptModel(turn.id, heard, reported_ms)]
    return state.end_turn(), [*effects, _tell(Phase.INTERRUPTED), EndTurn(state.turns)]


def _rest_after_interrupt(state: SessionState, played_ms: float | None, now_ms: int) -> Step:
    interrupted, effects = _interrupt(state, played_ms, now_ms)
    # Whoever interrupts has something to say.
    phase = interrupted.resting if interrupted.mode is Mode.TEXT else Phase.LISTENING
    return interrupted.at(phase).resting_at(phase), [*effects, _tell(phase)]


def _played(state: SessionState, number: int, played_ms: int) -> SessionState:
    turn = state.turn
    if turn is None or turn.number != number or played_ms <= turn.played_ms:
        return state
    return state.with_turn(replace(turn, played_ms=min(played_ms, turn.audio_ms)))

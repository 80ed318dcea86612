"""How a session is taken over from another process."""

from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.session.events import TurnRestored
from antiphon.session.outbox import HeardSpeech, Outbox, SpokenPiece, Unheard, heard_of, last_queue, rest_of
from antiphon.session.resume_state import Preferences, ResumeState
from antiphon.session.state import MAX_UNHEARD_MS, RESTING, Phase, Piece, SessionState, Turn
from antiphon.session.transcript_writer import Unfinished
from antiphon.storage.sessions import SentMessages, SessionRecord
from antiphon.tools.spec import Mode
from antiphon.transcript import Entry, ToolMessage

if TYPE_CHECKING:
    from antiphon.session.runner import Runner

CHARACTER_MS: Final = 50
"""How long a character of speech takes at least, where the length of the speech is not known yet."""


async def restore(runner: "Runner", record: SessionRecord, sent: SentMessages, *, seen_n: int, now_ms: int) -> None:
    """Takes the session over, before it runs here. `sent` is what the client was sent, `seen_n` the last that it has.

    An answer that was made is spoken as far as the client does not have it; a turn without an answer is answered.
    """
    mode, outbox, tool_runner = runner.tools.mode, runner.outbox, runner.tool_runner
    stored = msgspec.json.decode(record.state, type=ResumeState)
    preferences = msgspec.json.decode(record.state, type=Preferences)
    resting = Phase.LISTENING if mode is Mode.VOICE and stored.listening else Phase.IDLE
    state = SessionState(mode, resting, resting, turns=stored.turns, queue=last_queue(sent))
    outbox.restore(sent, seen_n)
    runner.models.restore_upstream(stored.upstream)
    runner.calls.recording.restore_choice(stored.is_recording_wanted)
    if stored.call is not None and mode is Mode.VOICE:
        await runner.calls.take_over(stored.call)
    unfinished = await runner.writer.restore()
    if unfinished is not None:
        heard = heard_of(state.turns + 1, sent, seen_n)
        if heard is not None:
            outbox.note_heard(heard)
        if unfinished.answer is not None:
            tool_runner.begin_turn(unfinished.turn)
            profile = runner.models.profile_of(mode)
            is_spoken = mode is Mode.VOICE and profile is not None and profile.speaks
            is_wanted = unfinished.is_newest and now_ms - unfinished.answer.at_ms <= MAX_UNHEARD_MS
            if is_spoken and is_wanted:
                heard = heard or HeardSpeech(0, state.turns + 1)
                state = _with_answer(state, unfinished.answer, outbox, heard, now_ms)
            else:
                state = state.begin(unfinished.turn).end_turn()
        else:
            tool_runner.restore(sent)
            runner.is_restoring = True
            runner.post(partial(runner.answer_restored, _unanswered(unfinished, heard)))
    runner.begin_from(state, preferences)
    await runner.save_messages()
    if state.phase in RESTING:
        runner.post(runner.follow_up)


def _unanswered(unfinished: Unfinished, heard: HeardSpeech | None) -> TurnRestored:
    words, last_seq = ((), -1) if heard is None else (tuple(heard.text.split()), heard.last_seq)
    return TurnRestored(unfinished.turn, unfinished.question, unfinished.ran, words, last_seq)


def _with_answer(state: SessionState, answer: Entry, outbox: Outbox, heard: HeardSpeech, now_ms: int) -> SessionState:
    """The answer was made, but perhaps not heard. What the client does not have of it is spoken."""
    assert not isinstance(answer.message, ToolMessage)
    text = answer.message.text
    begun = state.begin(answer.turn)
    rest_text = " ".join(rest_of(text, heard))
    if not rest_text and now_ms >= answer.at_ms + heard.filler_ms + heard.ms:
        # The client has all of it, and has had the time to play it.
        return begun.end_turn()
    rest_ms = heard.missing_ms or len(rest_text) * CHARACTER_MS
    if rest_text:
        rest = SpokenPiece(0, begun.turns, heard.last_seq + 1, rest_text, rest_ms, last=True)
        outbox.unspoken.append(Unheard(rest, None))
    turn = Turn(
        answer.turn,
        begun.turns,
        text,
        pieces=(Piece("", heard.filler_ms), Piece(heard.text, heard.ms), Piece(rest_text, rest_ms)),
        speaking_since_ms=answer.at_ms,
        complete=True,
        next_seq=heard.last_seq + 1,
    )
    return begun.at(Phase.SPEAKING).with_turn(turn)

"""The conversation on one OpenAI Realtime connection.

Sans-IO: the server's events and the session's commands in, live events and the client's events out.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from antiphon.models.bounded import MAX_CALLS
from antiphon.models.live import Interrupted, LiveEvent, ToolAnswer
from antiphon.models.providers.connect_errors import Place
from antiphon.models.providers.realtime_events import (
    TRANSCRIPTION,
    ClientEvent,
    EarlierItems,
    ErrorDetails,
    Item,
    OutputItem,
    Response,
    ServerEvent,
    create_item,
    delete_item,
    read_arguments,
    read_audio,
    result_item,
    user_item,
    verbatim,
)
from antiphon.models.providers.realtime_failures import EMPTY_COMMIT, explain_response
from antiphon.models.providers.realtime_responses import ActiveResponse, Responses
from antiphon.models.providers.realtime_spoken import SpokenAnswers
from antiphon.models.providers.upstream import MAX_REMEMBERED, MAX_TRANSCRIPT_CHARS, Answer, Turns
from antiphon.telemetry.log import get_logger
from antiphon.tools.call import ToolCall

MIN_COMMIT_MS: Final = 100.0
"""The least audio that the server accepts as a turn."""
SPEECH_WITHIN_S: Final = 0.5
"""How long after the end of the audio the server may still report that it has heard speech in it."""

log = get_logger(__name__)


@dataclass(eq=False, slots=True)
class EndedAudio:
    """A turn that the session has ended, until the server has taken its audio."""

    turn: str
    event_id: str
    timer: asyncio.TimerHandle | None = None
    """Runs while it is not known whether there was speech."""
    is_given_up: bool = False
    """Whether nobody waits for its answer any more. `TurnComplete` has been emitted then."""


class RealtimeConversation:
    def __init__(
        self,
        send: Callable[[ClientEvent], None],
        emit: Callable[[LiveEvent], None],
        turns: Turns,
        place: Place,
        output_hz: int,
    ) -> None:
        self.earlier = EarlierItems()
        self._send = send
        self._emit = emit
        self._turns = turns
        self._place = place
        self._bytes_per_ms = 2 * output_hz / 1000
        self._responses = Responses(send, turns, place)
        self._spoken = SpokenAnswers(send)
        self._cuts: dict[str, str] = {}
        """What was heard of answers whose response is not done yet, by turn."""
        self._has_spoken = False
        """Whether any audio has come: from then on the server refuses another voice."""
        self._unanswered: OrderedDict[str, None] = OrderedDict()
        """The ids of the model's calls that have no result."""
        self._is_playing = False
        """Whether the client is playing an answer."""
        self._is_speech = False
        """Whether the user is speaking."""
        self._detected_end: str | None = None
        """The last item of the user whose end the server has detected."""
        self._ended: EndedAudio | None = None
        self._buffered_ms = 0.0
        """How much audio was sent since the server last took its buffer as a turn."""
        self._user_items: OrderedDict[str, str] = OrderedDict()
        """The turns of the latest items that the user spoke."""
        self._transcripts: OrderedDict[str, str] = OrderedDict()
        """Transcripts that are not final yet, by item."""

    # Commands.

    def hear(self, ms: float, *, playing: bool) -> None:
        """Takes note of microphone audio that is sent."""
        self._buffered_ms += ms
        self._is_playing = playing

    def end_audio(self, turn: str) -> None:
        self._give_up_ended()
        if self._buffered_ms < MIN_COMMIT_MS:
            self._send({"type": "input_audio_buffer.clear"})
            self._turns.end_empty(turn)
            return
        self._turns.heard_turn = turn
        self._ended = EndedAudio(turn, f"commit_{uuid4().hex[:16]}")
        if self._is_speech:
            self._commit(self._ended)
        else:
            # A commit of silence would make the model answer it.
            self._ended.timer = asyncio.get_running_loop().call_later(SPEECH_WITHIN_S, self._drop_silence)

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer]) -> None:
        answer = self._turns.ask(turn)
        self._add([user_item(text)] if text else [])
        self._add(self.earlier.runs(ran))
        self._responses.ask(answer)

    def say(self, turn: str, text: str) -> None:
        self._responses.ask(self._turns.ask(turn), verbatim(text))

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        awaited, late = self._turns.take_results(turn, answers)
        answer = self._turns.answer
        still_open = {call.id for call in answer.open_calls} if answer is not None else set()
        for each in (*awaited, *late):
            id = each.call.id
            if id in still_open:
                # It was sent under another turn's id. Its own turn still waits for it.
                continue
            if id is not None and id in self._unanswered:
                del self._unanswered[id]
                self._add([result_item(id, each.content)])
            else:
                self._add(self.earlier.runs([each]))
        if awaited and answer is not None and not answer.open_calls:
            self._responses.ask(answer)

    def interrupt(self, turn: str, heard: str | None) -> None:
        answer = self._turns.answer
        if answer is not None and answer.turn == turn:
            self._turns.drop()
            self._responses.cancel_unwanted()
        if self._ended is not None and self._ended.turn == turn:
            self._give_up_ended()
        if heard is None or turn not in self._spoken:
            return
        active = self._responses.active
        if active is not None and active.answer is not None and active.answer.turn == turn:
            # Its last message is still in progress on the server.
            self._cuts[turn] = heard
        else:
            self._spoken.cut(turn, heard)

    def update_voice(self, output: dict[str, Any]) -> None:
        """Changes the speed, and the voice as long as the model has not spoken."""

        def make_update() -> ClientEvent:
            changed = {key: value for key, value in output.items() if key != "voice" or not self._has_spoken}
            return {"type": "session.update", "session": {"type": "realtime", "audio": {"output": changed}}}

        self._responses.update_session(make_update)

    def close(self) -> None:
        """No timer is left."""
        self._turns.close()
        self._responses.close()
        if self._ended is not None and self._ended.timer is not None:
            self._ended.timer.cancel()

    # The server's events.

    def take(self, event: ServerEvent) -> None:
        match event.type:
            case "response.created" if event.response is not None:
                self._responses.take_created(event.response)
            case "response.done" if event.response is not None:
                self._take_done(event.response)
            case "input_audio_buffer.speech_started":
                self._take_speech()
            case "input_audio_buffer.speech_stopped":
                self._detected_end = event.item_id
            case "input_audio_buffer.committed":
                self._take_committed(event.item_id or "")
            case "error" if event.error is not None:
                self._take_error(event.error)
            case "rate_limits.updated":
                used_up = [limit.reset_seconds for limit in event.rate_limits or () if not limit.remaining]
                self._responses.reset_s = max((wait_s for wait_s in used_up if wait_s is not None), default=None)
            case kind if kind.startswith(TRANSCRIPTION):
                self._take_transcript(event)
            case kind if kind.startswith("response."):
                self._take_part(event)

    def _take_speech(self) -> None:
        """The user begins to speak, perhaps over an answer."""
        self._is_speech = True
        if self._ended is not None and self._ended.timer is not None:
            self._commit(self._ended)
        answer = self._turns.answer
        if answer is not None:
            self._responses.note_cancelled()
            self._turns.interrupted(answer)
            self._responses.proceed()
        elif self._is_playing:
            played = next((each for each in reversed(self._turns.finished) if each.audio_ms), None)
            self._emit(Interrupted(played.turn if played is not None else None))

    def _take_committed(self, item: str) -> None:
        """The user's turn is over, by the server's decision or by the session's."""
        ended, self._ended = self._ended, None
        if ended is not None and ended.timer is not None:
            ended.timer.cancel()
        self._is_speech, self._buffered_ms = False, 0.0
        is_given_up = ended is not None and ended.is_given_up
        answer = Answer(ended.turn, is_asked=False) if ended is not None and is_given_up else self._turns.hear()
        _remember(self._user_items, item, answer.turn)
        if ended is None or item == self._detected_end:
            self._responses.expect(answer)
        elif not is_given_up:
            self._responses.ask(answer)

    def _take_part(self, event: ServerEvent) -> None:
        """A part of a response. What is not for the answer under way is not passed on."""
        active = self._responses.active
        if active is None or active.answer is None or event.response_id != active.id:
            return
        answer = active.answer
        self._turns.watch()
        match event.type:
            case "response.output_item.added" if event.item is not None and event.item.type == "message":
                self._spoken.item(answer.turn, event.item.id or "")
            case "response.output_item.done" if event.item is not None and event.item.type == "function_call":
                if event.item.status == "completed" and len(active.calls) <= MAX_CALLS:
                    active.calls[event.item.id or ""] = event.item
            case "response.output_audio_transcript.delta" | "response.output_text.delta":
                item, text = self._spoken.item(answer.turn, event.item_id or ""), event.delta or ""
                if not item.text and answer.said and not answer.said[-1].isspace():
                    # It begins another message of the same answer.
                    text = f" {text.lstrip()}"
                if answer is self._turns.answer:
                    item.text += text
                self._turns.say(answer, text)
            case "response.output_audio.delta":
                item, pcm = self._spoken.item(answer.turn, event.item_id or ""), read_audio(event.delta or "")
                self._has_spoken = self._has_spoken or bool(pcm)
                if answer is self._turns.answer:
                    item.audio_ms += len(pcm) / self._bytes_per_ms
                self._turns.play(answer, pcm)
        # The part may have exceeded a limit, so that the answer has failed.
        self._responses.cancel_unwanted()

    def _take_done(self, response: Response) -> None:
        done = self._responses.take_done(response)
        if done is None:
            return
        if done.answer is not None:
            self._end(done, done.answer, response)
            turn = done.answer.turn
            if turn in self._cuts:
                self._spoken.cut(turn, self._cuts.pop(turn))
        self._responses.proceed()

    def _end(self, done: ActiveResponse, answer: Answer, response: Response) -> None:
        """A response is done, in one way or another."""
        if response.usage is not None:
            self._turns.use(answer, response.usage.input_tokens or 0, response.usage.output_tokens or 0)
        made = [item for item in response.output or () if item.type == "function_call"]
        if answer is not self._turns.answer or response.status != "completed":
            # What was never run must not look as if it had been.
            for item in made:
                if item.id is not None:
                    self._send(delete_item(item.id))
        calls = {**done.calls, **{item.id or "": item for item in made if item.status in ("completed", None)}}
        match response.status:
            case "completed" if calls:
                self._call(answer, list(calls.values()))
            case "completed":
                self._turns.complete(answer)
            case "cancelled":
                details = response.status_details
                if details is not None and details.reason == "turn_detected":
                    self._turns.interrupted(answer)
                elif answer is self._turns.answer:
                    self._turns.drop()
            case _:
                self._turns.fail(answer, explain_response(response, self._place, self._responses.reset_s))

    def _call(self, answer: Answer, items: Sequence[OutputItem]) -> None:
        if answer is not self._turns.answer:
            return
        calls = [
            ToolCall(item.call_id or None, item.name or "", read_arguments(item.arguments or "")) for item in items
        ]
        for call in calls:
            if call.id is not None:
                _remember(self._unanswered, call.id, None)
        self._turns.call(answer, calls)

    def _take_transcript(self, event: ServerEvent) -> None:
        item = event.item_id or ""
        turn = self._user_items.get(item)
        if turn is None:
            return
        match event.type.rpartition(".")[2]:
            case "delta":
                text = (self._transcripts.get(item, "") + (event.delta or ""))[:MAX_TRANSCRIPT_CHARS]
                _remember(self._transcripts, item, text)
                self._turns.transcribe(turn, text, is_final=False)
            case "completed":
                self._transcripts.pop(item, None)
                self._turns.transcribe(turn, event.transcript or "", is_final=True)
            case "failed":
                self._transcripts.pop(item, None)
                log.info("model_transcription_failed", model=self._place.name)

    def _take_error(self, error: ErrorDetails) -> None:
        ended = self._ended
        if error.code == EMPTY_COMMIT and ended is not None and error.event_id in (ended.event_id, None):
            self._ended = None
            if not ended.is_given_up:
                self._turns.end_empty(ended.turn)
        elif not self._responses.take_refusal(error):
            log.info("model_event_refused", model=self._place.name, type=error.type, code=error.code)

    # The user's audio.

    def _commit(self, ended: EndedAudio) -> None:
        if ended.timer is not None:
            ended.timer.cancel()
            ended.timer = None
        self._send({"type": "input_audio_buffer.commit", "event_id": ended.event_id})

    def _drop_silence(self) -> None:
        ended, self._ended = self._ended, None
        self._send({"type": "input_audio_buffer.clear"})
        self._buffered_ms = 0.0
        if ended is not None:
            self._turns.end_empty(ended.turn)

    def _give_up_ended(self) -> None:
        """Completes the turn that the session has ended, without an answer."""
        ended = self._ended
        if ended is None or ended.is_given_up:
            return
        if ended.timer is not None:
            ended.timer.cancel()
            self._drop_silence()
        else:
            # The server has been told to take the audio, and will.
            ended.is_given_up = True
            self._turns.end_empty(ended.turn)

    def _add(self, items: Sequence[Item]) -> None:
        for item in items:
            self._send(create_item(item))


def _remember(known: "OrderedDict[str, Any]", key: str, value: Any) -> None:
    """Adds to what is known, and forgets the oldest beyond a limit."""
    known[key] = value
    if len(known) > MAX_REMEMBERED:
        known.popitem(last=False)

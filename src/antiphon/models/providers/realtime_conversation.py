"""The conversation on one OpenAI Realtime connection: which response answers which turn, and what is sent when.

Sans-IO: the server's events and the session's commands in, live events and the client's events out.

The server has one response at a time, and with voice activity detection it starts some of them by itself. A response
that is asked for while another one is active, or not yet created, or being cancelled, waits until that one is done.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from antiphon.models.live import Interrupted, LiveEvent, ToolAnswer
from antiphon.models.providers.connect_errors import Place
from antiphon.models.providers.realtime_events import (
    TRANSCRIPTION,
    ClientEvent,
    EarlierItems,
    ErrorDetails,
    OutputItem,
    Response,
    ServerEvent,
    create_item,
    delete_item,
    read_arguments,
    read_audio,
    result_item,
    truncate_item,
    user_item,
    verbatim,
)
from antiphon.models.providers.realtime_failures import (
    ACTIVE_RESPONSE,
    EMPTY_COMMIT,
    HARMLESS,
    explain_error,
    explain_response,
)
from antiphon.models.providers.upstream import MAX_REMEMBERED, Answer, Turns
from antiphon.telemetry.log import get_logger
from antiphon.tools.call import ToolCall

MIN_COMMIT_MS: Final = 100.0
"""The least audio that the server accepts as a turn."""
SPEECH_WITHIN_S: Final = 0.5
"""How long after the end of the audio the server may still report that it has heard speech in it."""
RELEASE_S: Final = 5.0
"""How long a response waits for another one to end, before it is asked for all the same."""
REQUEST_KEY: Final = "request"
"""The key of a response's metadata under which it is recognised."""

log = get_logger(__name__)


@dataclass(eq=False, slots=True)
class SpokenItem:
    """A message of an answer, as far as it was passed on."""

    id: str
    text: str = ""
    audio_ms: float = 0.0

    @property
    def words(self) -> int:
        return len(self.text.split())


@dataclass(eq=False, slots=True)
class Request:
    """A response that the session needs."""

    answer: Answer
    settings: dict[str, Any]
    event_id: str = field(default_factory=lambda: f"request_{uuid4().hex[:16]}")


@dataclass(eq=False, slots=True)
class ActiveResponse:
    """A response from when it is asked for, or created by the server, until it is done."""

    answer: Answer | None
    """None if only its existence is known."""
    request: Request | None = None
    """None if the server has created it by itself."""
    id: str | None = None
    """None until it is created."""
    is_cancelled: bool = False
    calls: dict[str, OutputItem] = field(default_factory=dict)
    """The completed calls, by the ids of their items."""


@dataclass(eq=False, slots=True)
class EndedAudio:
    """A turn that the session has ended, until the server has taken its audio."""

    turn: str
    event_id: str
    timer: asyncio.TimerHandle | None = None
    """Runs while it is not known whether there was speech."""


class RealtimeConversation:
    def __init__(
        self,
        send: Callable[[ClientEvent], None],
        emit: Callable[[LiveEvent], None],
        turns: Turns,
        place: Place,
        output_hz: int,
    ) -> None:
        self._send = send
        self._emit = emit
        self._turns = turns
        self._place = place
        self._bytes_per_ms = 2 * output_hz / 1000
        self.earlier = EarlierItems()
        self.has_spoken = False
        """Whether any audio has come: from then on the voice cannot be changed."""
        self.is_playing = False
        """Whether the client is playing an answer."""
        self._response: ActiveResponse | None = None
        self._waiting: Request | None = None
        """The response that is asked for next."""
        self._release: asyncio.TimerHandle | None = None
        self._heard: Answer | None = None
        """The answer to speech for which the server creates the response by itself."""
        self._speech: str | None = None
        """The item that the speech under way will become."""
        self._detected_end: str | None = None
        """The last item whose end the server has detected."""
        self._ended: EndedAudio | None = None
        self._buffered_ms = 0.0
        """How much audio was sent since the server last took its buffer as a turn."""
        self._spoken: OrderedDict[str, list[SpokenItem]] = OrderedDict()
        """The messages of the latest answers, by turn."""
        self._cuts: dict[str, str] = {}
        """What was heard of answers whose response is not done yet, by turn."""
        self._user_items: OrderedDict[str, str] = OrderedDict()
        """The turns of the latest items that the user spoke."""
        self._transcripts: dict[str, str] = {}
        """Transcripts that are not final yet, by item."""
        self._unanswered: OrderedDict[str, None] = OrderedDict()
        """The ids of the model's calls that have no result."""
        self._voice_update: ClientEvent | None = None
        """A change of the speed or the voice that waits for the response to be done."""
        self._reset_s: float | None = None
        """When the rate limits are reset, as the server last told."""

    # Commands.

    def hear(self, ms: float, *, playing: bool) -> None:
        """Takes note of microphone audio that is sent."""
        self._buffered_ms += ms
        self.is_playing = playing

    def end_audio(self, turn: str) -> None:
        if self._buffered_ms < MIN_COMMIT_MS:
            self._send({"type": "input_audio_buffer.clear"})
            self._turns.end_empty(turn)
            return
        self._turns.heard_turn = turn
        self._ended = EndedAudio(turn, f"commit_{uuid4().hex[:16]}")
        if self._speech is not None:
            self._commit(self._ended)
        else:
            # A commit of silence would make the model answer it.
            self._ended.timer = asyncio.get_running_loop().call_later(SPEECH_WITHIN_S, self._drop_silence)

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer]) -> None:
        answer = self._turns.ask(turn)
        if text:
            self._send(create_item(user_item(text)))
        for item in self.earlier.runs(ran):
            self._send(create_item(item))
        self._ask(Request(answer, {}))

    def say(self, turn: str, text: str) -> None:
        self._ask(Request(self._turns.ask(turn), verbatim(text)))

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
                items = [result_item(id, each.content)]
            else:
                items = self.earlier.runs([each])
            for item in items:
                self._send(create_item(item))
        if awaited and answer is not None and not answer.open_calls:
            self._ask(Request(answer, {}))

    def interrupt(self, turn: str, heard: str | None) -> None:
        answer = self._turns.answer
        if answer is not None and answer.turn == turn:
            self._turns.drop()
            self._cancel_unwanted()
        if heard is None or turn not in self._spoken:
            return
        response = self._response
        if response is not None and response.answer is not None and response.answer.turn == turn:
            # Its last message is still in progress on the server.
            self._cuts[turn] = heard
        else:
            self._cut(turn, heard)

    def update_voice(self, output: dict[str, Any]) -> None:
        self._voice_update = {"type": "session.update", "session": {"type": "realtime", "audio": {"output": output}}}
        self._proceed()

    def close(self) -> None:
        """No timer is left."""
        self._turns.close()
        for timer in (self._release, self._ended.timer if self._ended is not None else None):
            if timer is not None:
                timer.cancel()

    # The server's events.

    def take(self, event: ServerEvent) -> None:
        match event.type:
            case "response.created" if event.response is not None:
                self._take_created(event.response)
            case "response.done" if event.response is not None:
                self._take_done(event.response)
            case "input_audio_buffer.speech_started":
                self._take_speech(event.item_id or "")
            case "input_audio_buffer.speech_stopped":
                self._detected_end = event.item_id
            case "input_audio_buffer.committed":
                self._take_committed(event.item_id or "")
            case "error" if event.error is not None:
                self._take_error(event.error)
            case "rate_limits.updated":
                used_up = [limit.reset_seconds for limit in event.rate_limits or () if not limit.remaining]
                self._reset_s = max((reset_s for reset_s in used_up if reset_s is not None), default=None)
            case kind if kind.startswith(TRANSCRIPTION):
                self._take_transcript(event)
            case kind if kind.startswith("response."):
                self._take_part(event)

    def _take_speech(self, item: str) -> None:
        """The user begins to speak, perhaps over an answer."""
        self._speech = item
        if self._ended is not None and self._ended.timer is not None:
            self._commit(self._ended)
        answer = self._turns.answer
        if answer is not None:
            if self._response is not None:
                # The server cancels it by itself.
                self._response.is_cancelled = True
            self._turns.interrupted(answer)
            self._proceed()
        elif self.is_playing:
            played = next((each for each in reversed(self._turns.finished) if each.audio_ms), None)
            self._emit(Interrupted(played.turn if played is not None else None))

    def _take_committed(self, item: str) -> None:
        """The user's turn is over, by the server's decision or by the session's."""
        ended, self._ended = self._ended, None
        if ended is not None and ended.timer is not None:
            ended.timer.cancel()
        was_detected = item == self._detected_end
        self._speech, self._buffered_ms = None, 0.0
        answer = self._turns.hear()
        _remember(self._user_items, item, answer.turn)
        if ended is not None and not was_detected:
            self._ask(Request(answer, {}))
        else:
            self._heard = answer
            self._cancel_unwanted()

    def _take_created(self, response: Response) -> None:
        active = self._response
        requested = active.request if active is not None and active.id is None else None
        request_id = response.metadata.get(REQUEST_KEY) if isinstance(response.metadata, dict) else None
        is_requested = requested is not None and request_id == requested.event_id
        # A compatible server may not return the metadata.
        if active is not None and (is_requested or (requested and request_id is None and self._heard is None)):
            active.id = response.id
        elif request_id is None and self._heard is not None:
            # If another one was asked for at the same moment, it is refused: there is one at a time.
            self._response = ActiveResponse(self._heard, id=response.id)
            self._heard = None
        elif request_id is not None or (active is not None and active.answer is not None):
            # It was given up, or is one too many.
            self._send({"type": "response.cancel", "response_id": response.id})
            return
        else:
            # The server answers without having been asked: results of calls, or a silence of the user.
            self._response = ActiveResponse(self._turns.answer or self._turns.hear(), id=response.id)
        self._turns.watch()
        self._cancel_unwanted()

    def _take_part(self, event: ServerEvent) -> None:
        response = self._response
        if response is None or response.answer is None or event.response_id != response.id:
            return
        answer = response.answer
        self._turns.watch()
        match event.type:
            case "response.output_item.added" if event.item is not None and event.item.type == "message":
                self._spoken_item(answer, event.item.id or "")
            case "response.output_item.done" if event.item is not None and event.item.type == "function_call":
                if event.item.status == "completed":
                    response.calls[event.item.id or ""] = event.item
            case "response.output_audio_transcript.delta" | "response.output_text.delta":
                item, text = self._spoken_item(answer, event.item_id or ""), event.delta or ""
                if not item.text and answer.said and not answer.said[-1].isspace():
                    # A new message of the same answer.
                    text = f" {text.lstrip()}"
                if answer is self._turns.answer:
                    item.text += text
                self._turns.say(answer, text)
            case "response.output_audio.delta":
                item, pcm = self._spoken_item(answer, event.item_id or ""), read_audio(event.delta or "")
                self.has_spoken = self.has_spoken or bool(pcm)
                if answer is self._turns.answer:
                    item.audio_ms += len(pcm) / self._bytes_per_ms
                self._turns.play(answer, pcm)
        # A part may have exceeded a limit.
        self._cancel_unwanted()

    def _take_done(self, response: Response) -> None:
        done = self._response
        if done is None or (done.id is not None and done.id != response.id) or (done.id is None and done.answer):
            return
        self._response = None
        if done.answer is not None:
            self._end(done, done.answer, response)
            turn = done.answer.turn
            if turn in self._cuts:
                self._cut(turn, self._cuts.pop(turn))
        self._proceed()

    def _end(self, done: ActiveResponse, answer: Answer, response: Response) -> None:
        """The response to an answer is done, in one way or another."""
        if response.usage is not None:
            self._turns.use(answer, response.usage.input_tokens or 0, response.usage.output_tokens or 0)
        for item in response.output or ():
            if item.type == "function_call" and item.status in ("completed", None):
                done.calls.setdefault(item.id or "", item)
        is_wanted = answer is self._turns.answer and response.status == "completed"
        if not is_wanted:
            # What was never run must not look as if it had been.
            for item in response.output or ():
                if item.type == "function_call" and item.id is not None:
                    self._send(delete_item(item.id))
        match response.status:
            case "completed" if done.calls and is_wanted:
                calls = [_tool_call(item) for item in done.calls.values()]
                for call in calls:
                    if call.id is not None:
                        _remember(self._unanswered, call.id, None)
                self._turns.call(answer, calls)
            case "completed":
                self._turns.complete(answer)
            case "cancelled":
                details = response.status_details
                if details is not None and details.reason == "turn_detected":
                    self._turns.interrupted(answer)
                elif answer is self._turns.answer:
                    self._turns.drop()
            case _:
                self._turns.fail(answer, explain_response(response, self._place, self._reset_s))

    def _take_transcript(self, event: ServerEvent) -> None:
        item = event.item_id or ""
        turn = self._user_items.get(item)
        if turn is None:
            return
        match event.type.rpartition(".")[2]:
            case "delta":
                self._transcripts[item] = text = self._transcripts.get(item, "") + (event.delta or "")
                self._turns.transcribe(turn, text, is_final=False)
            case "completed":
                self._transcripts.pop(item, None)
                self._turns.transcribe(turn, event.transcript or "", is_final=True)
            case "failed":
                self._transcripts.pop(item, None)
                log.info("model_transcription_failed", model=self._place.name)

    def _take_error(self, error: ErrorDetails) -> None:
        response, ended = self._response, self._ended
        requested = response.request if response is not None and response.id is None else None
        is_of_request = requested is not None and error.event_id in (requested.event_id, None)
        if error.code == ACTIVE_RESPONSE and requested is not None and is_of_request:
            # The active response is one that the server has created. All that is known is that it will be done.
            self._response = ActiveResponse(None)
            if self._waiting is None and requested.answer is self._turns.answer:
                self._waiting = Request(requested.answer, requested.settings)
            self._proceed()
        elif error.code == ACTIVE_RESPONSE and self._heard is not None:
            # The server could not create the response to what it heard, so it must be asked for.
            answer, self._heard = self._heard, None
            self._ask(Request(answer, {}))
        elif error.code == EMPTY_COMMIT and ended is not None and error.event_id in (ended.event_id, None):
            self._ended = None
            self._turns.end_empty(ended.turn)
        elif requested is not None and is_of_request and error.code not in HARMLESS:
            self._response = None
            self._turns.fail(requested.answer, explain_error(error, self._place, reset_s=self._reset_s))
            self._proceed()
        else:
            log.info("model_event_refused", model=self._place.name, type=error.type, code=error.code)

    # Responses, one at a time.

    def _ask(self, request: Request) -> None:
        self._waiting = request
        self._cancel_unwanted()
        self._proceed()

    def _cancel_unwanted(self) -> None:
        """Cancels the active response if nobody waits for its answer any more."""
        response = self._response
        if response is None or response.id is None or response.is_cancelled or response.answer is None:
            return
        if response.answer is not self._turns.answer:
            response.is_cancelled = True
            self._send({"type": "response.cancel", "response_id": response.id})

    def _proceed(self) -> None:
        """Sends what waited for the active response to be done, if it is."""
        if self._waiting is not None and self._waiting.answer is not self._turns.answer:
            self._waiting = None
        if self._response is not None:
            if self._waiting is not None and self._release is None:
                self._release = asyncio.get_running_loop().call_later(RELEASE_S, self._stop_waiting)
            return
        if self._release is not None:
            self._release.cancel()
            self._release = None
        if self._voice_update is not None:
            self._send(self._voice_update)
            self._voice_update = None
        request, self._waiting = self._waiting, None
        if request is not None:
            self._response = ActiveResponse(request.answer, request)
            response = {**request.settings, "metadata": {REQUEST_KEY: request.event_id}}
            self._send({"type": "response.create", "event_id": request.event_id, "response": response})

    def _stop_waiting(self) -> None:
        log.warning("model_response_never_done", model=self._place.name)
        self._release = None
        self._response = None
        self._proceed()

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

    # What was heard of an answer.

    def _spoken_item(self, answer: Answer, id: str) -> SpokenItem:
        items = self._spoken.get(answer.turn)
        if items is None:
            items = []
            _remember(self._spoken, answer.turn, items)
        item = next((each for each in items if each.id == id), None)
        if item is None:
            item = SpokenItem(id)
            items.append(item)
        return item

    def _cut(self, turn: str, heard: str) -> None:
        """Makes the server forget what was not heard. The audio of a word is found by its share of the words."""
        left = len(heard.split())
        kept: list[SpokenItem] = []
        for item in self._spoken.get(turn, ()):
            words = item.words
            if left <= 0:
                self._send(delete_item(item.id))
                continue
            kept.append(item)
            if left < words and item.audio_ms >= 1:
                item.audio_ms = max(1, int(item.audio_ms * left / words))
                item.text = " ".join(item.text.split()[:left])
                self._send(truncate_item(item.id, int(item.audio_ms)))
            left -= words
        self._spoken[turn] = kept


def _tool_call(item: OutputItem) -> ToolCall:
    return ToolCall(item.call_id or None, item.name or "", read_arguments(item.arguments or ""))


def _remember(known: "OrderedDict[str, Any]", key: str, value: Any) -> None:
    known[key] = value
    if len(known) > MAX_REMEMBERED:
        known.popitem(last=False)

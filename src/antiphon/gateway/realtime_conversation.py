"""Translates between OpenAI's Realtime events and one of our sessions.

What the client asks for is in `RealtimeConversation.take`; what the session tells is in the methods of `Listener`. The
server's own tools run inside a response and are not shown; only calls of the client's tools become items. If they are
called, a turn of ours is several of the vendor's responses: one up to the calls, and one for each time that the client
asks to go on.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from antiphon.gateway import realtime_events as ev
from antiphon.gateway.deps import GatewayDeps
from antiphon.gateway.realtime_calls import FunctionCalls, parse_output
from antiphon.gateway.realtime_input import InputAudio
from antiphon.gateway.realtime_items import (
    CLIENT_CANCELLED,
    TURN_DETECTED,
    Item,
    Items,
    ResponseWriter,
    make_item,
    new_id,
)
from antiphon.gateway.realtime_pending import PendingItem, PendingItems
from antiphon.gateway.realtime_responses import Responses
from antiphon.gateway.realtime_settings import AUDIO, CODECS, TEXT, RealtimeSettings
from antiphon.gateway.realtime_speech import UserSpeech
from antiphon.gateway.session import GatewaySession
from antiphon.models.live import SpeechStarted, Usage
from antiphon.prompts.composer import MAX_CLIENT_INSTRUCTIONS_CHARS
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import Close
from antiphon.protocol.limits import speech_ms
from antiphon.security.quota import Kind
from antiphon.session import effects as fx
from antiphon.session.client_application import ClientApplication
from antiphon.session.runner import Observed
from antiphon.session.state import BUSY, RESTING, Phase
from antiphon.session.voice import UNAVAILABLE
from antiphon.sound_format import MAX_VOICE_SPEED, MIN_VOICE_SPEED
from antiphon.tools.errors import ClientToolError
from antiphon.tools.spec import Mode
from antiphon.transcript import UserMessage

SESSION_S: Final = 3_600
"""When a session ends according to `expires_at`. The vendor ends it then; this server does not."""
HELD_S: Final = 10.0
"""How long the result of a call waits for `response.create`. After that it is given to the next turn."""
MAX_TURNS: Final = 500
"""How many turns back an answer can be deleted."""
VOICE_RETRY_S: Final = 5.0
"""How long audio is dropped after the voice could not be started."""
NO_VOICE: Final = "This server has no voice. Use text: set 'session.output_modalities' to ['text']."


class RealtimeConversation:
    """One client's conversation. It is a `Listener` of its session, which is set right after it is made."""

    def __init__(
        self,
        deps: GatewayDeps,
        settings: RealtimeSettings,
        *,
        emit: Callable[..., None],
        close: Callable[[Close], None],
    ) -> None:
        """`emit` sends an event, by its type and fields; `close` closes the socket."""
        self.session: GatewaySession
        self._deps = deps
        self._settings = settings
        self._emit = emit
        self._close = close
        self._id = new_id("sess")
        self._expires_at = int(time.time()) + SESSION_S
        self._items = Items(emit)
        self._notes: list[str] = []
        """The texts of system items, which become part of the instructions."""
        self._input = InputAudio()
        self._pending = PendingItems()
        self._speech = UserSpeech(emit, self._items, self._input)
        self._answered: Item | None = None
        """The item that the response under way answers, until its turn begins."""
        self._turn_ids: dict[int, str] = {}
        """The ids of the session's turns, by their numbers."""
        self._calls = FunctionCalls(lambda call: self._writer().add_call(call), self._end_with_calls)
        self._responses = Responses(
            emit,
            self._items,
            conversation_id=lambda: f"conv_{self.session.conversation_id}",
            has_calls=lambda: self._calls.are_pending,
        )
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._when_listening: list[Callable[[], None]] = []
        self._after_turn: list[Callable[[], None]] = []
        self._speaking_since_s = 0.0
        self._voice_failed_s = -VOICE_RETRY_S

    def begin(self) -> None:
        self._emit("session.created", session=self._shown_session())

    def end(self) -> None:
        """The client has left."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._calls.close()

    # What the client asks for. Each of these raises `RealtimeError`.

    def take(self, event: ev.ClientEvent) -> None:
        match event:
            case ev.AudioAppend(audio=audio):
                self._append(audio)
            case ev.AudioCommit():
                self._commit()
            case ev.AudioClear():
                self._input.clear()
                self._emit("input_audio_buffer.cleared")
            case ev.SessionUpdate(session=asked):
                self._update(self._settings.updated(asked))
            case ev.ItemCreate(item=item, previous_item_id=previous):
                self._items.check_new(item.id, previous)
                self._create_item(item, previous)
            case ev.ItemRetrieve(item_id=id):
                self._emit("conversation.item.retrieved", item=self._items.find(id).shown)
            case ev.ItemDelete(item_id=id):
                self._delete(id)
            case ev.ItemTruncate():
                self._truncate(event)
            case ev.ResponseCreate(response=asked_response):
                self._create_response(asked_response)
            case ev.ResponseCancel(response_id=id):
                self._cancel(id)

    def _update(self, new: RealtimeSettings) -> None:
        old = self._settings
        if new.modality == AUDIO and not self._deps.hub.has_voice:
            raise ev.RealtimeError(NO_VOICE, "invalid_value", param="session.output_modalities")
        if new.turn_detection is not None and not new.creates_responses and not self.session.can_hold_answers:
            raise ev.RealtimeError(
                "The model of this server answers speech by itself. Leave 'create_response' true, or set "
                "'turn_detection' to null and commit the audio yourself.",
                "invalid_value",
                param="session.audio.input.turn_detection.create_response",
            )
        self._check_instructions(new)
        try:
            tools = None
            if new.tools != old.tools:
                tools = self._calls.make_tools(new.declarations, self._deps.adapters)
            self.session.configure(self._application(new), tools)
        except ClientToolError as error:
            raise ev.RealtimeError(str(error), "invalid_value", param="session.tools") from None
        self._settings = new
        self._calls.set_names(frozenset(tool.name for tool in new.tools))
        self._apply_voice(new, old)
        if new.modality == TEXT and old.modality == AUDIO and self.session.state.phase is Phase.IDLE:
            self.session.post(c.EndVoice())
        self._emit("session.updated", session=self._shown_session())

    def _apply_voice(self, new: RealtimeSettings, old: RealtimeSettings) -> None:
        self.session.set_output_hz(CODECS[new.output_format].hz)
        if (new.voice, new.speed) != (old.voice, old.speed):
            percent = min(max(round(new.speed * 100), MIN_VOICE_SPEED), MAX_VOICE_SPEED)
            known = new.voice if new.voice in self._deps.voices() else None
            self.session.post(c.Settings(voice=known, voice_speed=percent))

    def _application(self, settings: RealtimeSettings) -> ClientApplication:
        return ClientApplication(
            instructions="\n\n".join(filter(None, [settings.instructions, *self._notes])),
            uses_tools=settings.uses_tools,
            holds_answers=settings.turn_detection is not None and not settings.creates_responses,
        )

    # Audio of the user.

    def _append(self, audio: bytes) -> None:
        if not self._deps.hub.has_voice:
            raise ev.RealtimeError(NO_VOICE, "invalid_value", param="audio")
        codec = CODECS[self._settings.input_format]
        pcm = codec.decode(audio)
        wait_s = self.session.wait_s(Kind.AUDIO_S, self._input.length_s(pcm, codec.hz))
        if wait_s > 0:
            raise ev.RealtimeError(
                "Audio comes faster than it is spoken, more than 30 s ahead. Send it in real time.",
                "rate_limit_exceeded",
                param="audio",
                type="rate_limit_error",
            )
        self._input.add(pcm, codec.hz, keep=self._settings.turn_detection is None)
        if self._settings.turn_detection is None or self._is_voice_down():
            return
        phase = self.session.state.phase
        if self._pending.are_any and phase in RESTING:
            self._bring(self._pending.take_history())
        if phase is Phase.IDLE:
            self.session.listen()
        self._input.hold(pcm, codec.hz)
        is_heard = phase is Phase.LISTENING and self.session.is_microphone_open
        if is_heard or (phase in BUSY and self._settings.interrupts_responses):
            self._give_held()

    def _give_held(self) -> None:
        """Gives the session the audio that has waited until it listens."""
        for pcm, hz in self._input.take_held():
            self.session.hear(pcm, hz, playing=self.session.state.phase is Phase.SPEAKING)

    def _commit(self) -> None:
        self._input.check_length()
        if self._settings.turn_detection is not None:
            # The speech so far is the turn, as if the user had paused.
            self._input.clear()
            self.session.post(c.StopListening())
            return
        self._pending.check_room(self._input.kept_s)
        pcm, hz = self._input.take()
        self._pending.add_audio(self._speech.commit(), pcm, hz)

    def _is_voice_down(self) -> bool:
        return asyncio.get_running_loop().time() - self._voice_failed_s < VOICE_RETRY_S

    # Items.

    def _create_item(self, given: ev.ClientItem, after: str | None) -> None:
        match given:
            case ev.FunctionCallOutputItem(call_id=call_id, output=output):
                item = make_item("function_call_output", id=given.id, call_id=call_id, output=output)
                self._take_output(item, call_id, output)
            case ev.FunctionCallItem():
                item = self._pending.add_call(given)
            case ev.MessageItem(role="system"):
                self._add_note(given.text)
                item = make_item("message", id=given.id, role="system", content=_shown_content(given))
                item.text = given.text
            case ev.MessageItem():
                if any(part.type == "input_image" for part in given.content):
                    raise ev.RealtimeError(
                        "Images are not supported. Describe the image in words.", "invalid_value", param="item.content"
                    )
                item = make_item("message", id=given.id, role=given.role, content=_shown_content(given))
                codec = CODECS[self._settings.input_format]
                self._pending.add_message(given, item, codec)
        self._items.add(item, after=after)

    def _add_note(self, text: str) -> None:
        """A system item becomes part of the instructions."""
        self._check_instructions(self._settings, text)
        self._notes.append(text)
        self.session.configure(self._application(self._settings))

    def _check_instructions(self, settings: RealtimeSettings, *more: str) -> None:
        if sum(map(len, (settings.instructions, *self._notes, *more))) > MAX_CLIENT_INSTRUCTIONS_CHARS:
            raise ev.RealtimeError(
                f"The instructions and system items have more than {MAX_CLIENT_INSTRUCTIONS_CHARS} characters in all.",
                "invalid_value",
                param="instructions",
            )

    def _take_output(self, item: Item, call_id: str, output: str) -> None:
        if self._pending.add_output(item, call_id, parse_output(output)):
            return
        if self._calls.hold_output(call_id, output):
            self._start_timer("held", HELD_S, self._give_up_turn)
        elif (run := self._calls.take_output(call_id, output)) is not None:
            self.session.wait_for(run)
        elif (late := self._calls.take_late(call_id)) is not None:
            self._pending.add_late(item, late, parse_output(output))
        else:
            raise ev.RealtimeError(
                f"No call '{call_id[:100]}' waits for an output.", "invalid_tool_call_id", param="item.call_id"
            )

    def _delete(self, id: str) -> None:
        item = self._items.find(id)
        if not self._pending.remove(id):
            turn = item.turn_id or self._turn_ids.get(item.turn)
            role = item.shown.get("role")
            if role == "system":
                self._notes.remove(item.text)
                self._restore_application()
            elif role is None and (call := self._items.find_run(item.shown["call_id"])) is not None:
                # A call without its output, or an output without its call, would mean nothing to the model.
                args = parse_output(call.shown["arguments"] or "{}")
                self._when_resting(partial(self.session.forget_run, call.shown["name"], args))
            elif role is not None and turn is not None:
                self._when_resting(partial(self.session.forget, turn, of_user=role == "user"))
        self._items.remove(id)

    def _when_resting(self, action: Callable[[], None]) -> None:
        """Does something once no turn is under way."""
        if self.session.state.phase in BUSY:
            self._after_turn.append(action)
        else:
            action()

    def _truncate(self, event: ev.ItemTruncate) -> None:
        item = self._items.find(event.item_id)
        if item.shown.get("role") != "assistant" or event.content_index != 0 or not item.audio_ms:
            raise ev.RealtimeError(
                "Only the audio of an assistant's message can be truncated.", "invalid_value", param="item_id"
            )
        if event.audio_end_ms > item.audio_ms:
            message = f"Audio content of {item.audio_ms:.0f}ms is already shorter than {event.audio_end_ms}ms"
            raise ev.RealtimeError(message, "invalid_value", param="audio_end_ms")
        turn = self.session.state.turn
        if turn is not None and turn.number == item.turn and turn.pieces:
            self._responses.is_cancelled = True
            self.session.interrupt(item.before_ms + event.audio_end_ms)
        else:
            self.session.cut_answer(item.turn, item.heard_until(event.audio_end_ms))
        item.shown["content"] = [{"type": "output_audio"}]
        self._emit(
            "conversation.item.truncated",
            item_id=item.id,
            content_index=event.content_index,
            audio_end_ms=event.audio_end_ms,
        )

    # Responses that the client asks for.

    def _create_response(self, asked: ev.ResponseSettings | None) -> None:
        settings = self._settings.for_response(asked)
        if settings.modality == AUDIO and not self._deps.hub.has_voice:
            raise ev.RealtimeError(NO_VOICE, "invalid_value", param="response.output_modalities")
        active = self._responses.active
        if active is not None and active.is_unasked and self._calls.are_pending:
            active.is_unasked = False
            self._answer_calls()
            return
        if active is not None:
            raise ev.RealtimeError(
                "Conversation already has an active response. Wait for 'response.done', or cancel it.",
                "conversation_already_has_active_response",
            )
        if self._application(settings) != self.session.application:
            self.session.configure(self._application(settings))
        if self._calls.are_pending and not self._calls.have_outputs and self._pending.have_a_turn:
            # The user has said something else meanwhile. The outputs become known when they come.
            self._calls.begin_turn()
            self._responses.is_cancelled = True
            self.session.interrupt()
        self._responses.begin(settings, metadata=asked.metadata if asked is not None else None)
        if self._calls.are_pending:
            self._answer_calls()
            return
        # Without input, it answers nothing: what the user said waits for another response.
        has_input = asked is None or asked.input != ()
        history, turn = self._pending.take() if has_input else (self._pending.take_history(), None)
        self._bring(history)
        self._answered = None if turn is None else turn.item
        action: Callable[[], None]
        match turn:
            case PendingItem(message=UserMessage(text=text)):
                action = partial(self.session.say, text)
            case PendingItem(pcm=pcm, hz=hz):
                action = partial(self.session.hear_turn, pcm, hz)
            case None:
                action = self.session.respond
        is_spoken = turn is not None and bool(turn.pcm)
        if is_spoken or (settings.modality == AUDIO and self.session.state.mode is Mode.TEXT):
            self.session.listen_then(action, self._when_listening)
        else:
            action()

    def _bring(self, history: Sequence[PendingItem]) -> None:
        """Adds earlier messages to the conversation."""
        messages = [each.message for each in history if each.message is not None]
        if messages:
            turns = self.session.bring(messages)
            for each, turn in zip(history, turns, strict=True):
                each.item.turn_id = turn

    def _answer_calls(self) -> None:
        """The model goes on with the outputs of its calls."""
        self._stop_timer("held")
        self._calls.answer()

    def _give_up_turn(self) -> None:
        """Nobody asks for a response with the outputs: they become known in the next turn."""
        self._responses.is_cancelled = True
        self.session.interrupt()
        self.session.run(self._answer_calls)

    def _cancel(self, response_id: str | None) -> None:
        response = self._responses.active
        if response is None or response_id not in (None, response.id):
            raise ev.RealtimeError("Cancellation failed: no active response found.", "response_cancel_not_active")
        if response.turn:
            self._responses.is_cancelled = True
            self.session.interrupt()
        else:
            self._when_listening.clear()
            self._responses.cancel(CLIENT_CANCELLED)

    # What the session tells.

    def on_effect(self, effect: Observed) -> None:
        match effect:
            case SpeechStarted(turn=turn):
                self._start_speech(turn)
            case fx.BeginTurn():
                self._on_turn(effect)
            case fx.InterruptModel():
                self._responses.was_interrupted = True
            case fx.SendAudio(number=number, pcm=pcm, text=text) if not self._responses.is_over(number):
                self._writer().note_piece(text, speech_ms(pcm))
            case fx.RunTools(calls=calls):
                self._calls.expect(calls)
            case Usage():
                self._responses.add_usage(effect)

    def on_message(self, message: s.ServerMessage) -> None:
        match message:
            case s.StateChanged(state=s.State.PROCESSING):
                self._note_turn()
            case s.StateChanged(state=s.State.LISTENING | s.State.IDLE | s.State.INTERRUPTED as state):
                self._on_rest(state)
            case s.Transcript(is_final=True, text=text, turn=int(turn)):
                self._speech.note_words(turn, text, is_wanted=self._settings.transcription is not None)
            case s.Transcript(is_final=False):
                if self.session.state.phase is Phase.LISTENING:
                    self._start_speech()
            case s.ResponseChunk(text=text):
                self._writer().add_text(text)
            case s.GenerationComplete(turn=turn):
                self._on_complete(turn)
            case s.ToolResult(name=name):
                self._calls.note_result(name)
            case s.Error(message=why, code=code):
                self._on_error(why, code)
            case s.Notice(text=why, code=code) if code == UNAVAILABLE:
                self._voice_failed_s = asyncio.get_running_loop().time()
                self._on_error(why, UNAVAILABLE)

    def on_audio(self, turn: int, pcm: bytes) -> None:
        if self._responses.is_over(turn):
            return
        writer = self._writer()
        if not writer.audio_ms:
            # The client begins to play it now.
            self._speaking_since_s = asyncio.get_running_loop().time()
        writer.add_audio(pcm)

    def on_close(self, close: Close) -> None:
        self._close(close)

    @property
    def _turn_number(self) -> int:
        return self.session.state.turns

    # Turns.

    def _note_turn(self) -> None:
        number, turn = self._turn_number, self.session.state.turn
        if turn is not None:
            self._turn_ids[number] = turn.id
            self._turn_ids.pop(number - MAX_TURNS, None)
        active = self._responses.active
        if active is not None and not active.turn:
            active.turn = number

    def _on_turn(self, begun: fx.BeginTurn) -> None:
        self._stop_timer("held")
        self._calls.begin_turn()
        self._responses.begin_turn()
        item, self._answered = self._answered, None
        if not begun.spoken:
            if item is not None:
                item.turn = self._turn_number
            return
        if item is None:
            self._start_speech()
            # An answer of which nothing was heard yet is given up.
            self._responses.cancel(TURN_DETECTED)
            item = self._speech.commit(begun.continues)
            if self._pending.are_any:
                self.session.run(lambda: self._bring(self._pending.take_messages()))
        self._speech.assign(item, begun.turn, self._turn_number)
        if self._responses.active is not None:
            self._responses.active.turn = item.turn
        elif self._settings.creates_responses:
            self._responses.begin(self._settings, turn=item.turn)

    def _start_speech(self, turn: str | None = None) -> None:
        if self._settings.turn_detection is not None:
            self._speech.start(turn)

    def _on_rest(self, state: s.State) -> None:
        if self._responses.is_interrupted_by_user and state is not s.State.IDLE:
            # Clients stop playing at this, so it comes before the end of the response.
            self._start_speech()
        if self._responses.rest():
            self._restore_application()
        if state is not s.State.INTERRUPTED:
            done, self._after_turn = self._after_turn, []
            for action in done:
                action()
        if state is s.State.LISTENING:
            self.session.run_all(self._when_listening)
            # After the microphone is open.
            self.session.run(self._give_held)
        elif state is s.State.IDLE and self._when_listening:
            self.session.run(self.session.listen)

    def _on_complete(self, turn: int) -> None:
        """The whole answer has been sent. The client plays the rest of it."""
        active = self._responses.active
        if active is None:
            return
        spoken_s = active.audio_ms / 1000
        self._responses.complete()
        self._restore_application()
        # Speech that nothing has come of was a noise.
        self._speech.stop()
        left_s = self._speaking_since_s + spoken_s - asyncio.get_running_loop().time()
        self._start_timer("playback", left_s if spoken_s else 0.0, partial(self._end_playback, turn))

    def _end_playback(self, turn: int) -> None:
        current = self.session.state.turn
        if current is not None and current.number == turn:
            self.session.assume_played()

    def _on_error(self, why: str, code: str) -> None:
        active = self._responses.active
        if active is None:
            self._emit("error", error=shown_error("server_error", code, why))
            return
        self._responses.failure = {"type": "server_error", "code": code, "message": why}
        if not active.turn:
            # The session has refused to begin a turn.
            self._when_listening.clear()
            self._responses.complete()

    def _writer(self) -> ResponseWriter:
        """The response under way. The session may begin one by itself: a greeting, or the outcome of a call."""
        if self._responses.active is not None:
            return self._responses.active
        response = self._responses.begin(self._settings, turn=self._turn_number)
        response.is_unasked = True
        return response

    def _restore_application(self) -> None:
        """The instructions of one response do not hold for the next."""
        application = self._application(self._settings)
        if application != self.session.application:
            self.session.configure(application)

    def _end_with_calls(self) -> None:
        """The client has got all calls of the model's message: the response is over."""
        self._responses.complete()

    def _shown_session(self) -> dict[str, Any]:
        return self._settings.shown(id=self._id, expires_at=self._expires_at)

    def _start_timer(self, name: str, delay_s: float, action: Callable[[], None]) -> None:
        self._stop_timer(name)
        self._timers[name] = asyncio.get_running_loop().call_later(max(0.0, delay_s), action)

    def _stop_timer(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()


def shown_error(
    type: str, code: str, message: str, *, param: str | None = None, event_id: str | None = None
) -> dict[str, Any]:
    """Returns the `error` of an error event."""
    return {"type": type, "code": code, "message": message, "param": param, "event_id": event_id}


def _shown_content(item: ev.MessageItem) -> list[dict[str, Any]]:
    """Returns the content of a client's item, without its audio, which the vendor does not send back either."""
    shown = []
    for part in item.content:
        words = {"transcript": part.transcript} if part.type.endswith("audio") else {"text": part.text or ""}
        shown.append({"type": part.type, **words})
    return shown

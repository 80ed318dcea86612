"""Translates between Gemini Live's messages and one of our sessions.

What the client sends is in `GeminiConversation.take`; what the session tells is in the methods of `Listener`. The
server's own tools run inside a turn and are not shown; only calls of the client's functions are sent to it.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from antiphon.gateway import gemini_messages as gm
from antiphon.gateway.client_calls import ClientCall, ClientCalls
from antiphon.gateway.deps import GatewayDeps
from antiphon.gateway.gemini_input import Activity, HeldAudio, LiveSettings, read_audio, read_tools, read_turns
from antiphon.gateway.session import OUTPUT_HZ, GatewaySession, audio_s
from antiphon.models.live import Usage
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import FULL, INTERNAL, NORMAL, RESTARTING, TOO_FAST, Close
from antiphon.protocol.limits import MAX_TEXT
from antiphon.security.quota import Kind
from antiphon.session import effects as fx
from antiphon.session.client_application import ClientApplication
from antiphon.session.runner import Observed
from antiphon.session.state import BUSY, Phase
from antiphon.session.voice import UNAVAILABLE
from antiphon.sound_format import SAMPLE_BYTES
from antiphon.tools.errors import ClientToolError
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool
from antiphon.transcript import UserMessage

MAX_PIECE_BYTES: Final = OUTPUT_HZ * SAMPLE_BYTES // 2
"""Half a second of speech for one message. Google's SDK refuses messages of more than a megabyte."""
RESUME_REJECTED: Final = "resume_rejected"
NOT_FOUND: Final = "BidiGenerateContent session not found"
"""Google's words for a handle that is unknown or has expired."""
QUOTA: Final = "Resource has been exhausted (e.g. check quota)."
MANUAL_ONLY: Final = "Explicit activity control is not supported when automatic activity detection is enabled."
MAX_REFUSED: Final = 200
"""How many messages over the quota are dropped before the socket is closed."""

CLOSES: Final = {
    INTERNAL: gm.closing(gm.FAILED, "Internal error encountered."),
    RESTARTING: gm.closing(gm.FAILED, "The service is currently unavailable."),
    FULL: gm.closing(gm.FAILED, "The service is currently unavailable."),
    TOO_FAST: gm.closing(gm.FAILED, QUOTA),
    NORMAL: NORMAL,
}
"""Our closes in Google's words. All others are sent with their own reason."""


@dataclass(slots=True)
class _Answer:
    """The turn under way."""

    is_asked: bool = False
    """Whether there is something to answer. Noise may begin a turn without words."""
    has_output: bool = False
    was_interrupted: bool = False
    is_complete: bool = False
    speaking_since_s: float = 0.0
    spoken_s: float = 0.0
    usage: Usage | None = None


class GeminiConversation:
    """One client's conversation. It is a `Listener` of its session, which is set right after it is made."""

    def __init__(
        self,
        deps: GatewayDeps,
        settings: LiveSettings,
        *,
        send: Callable[[dict[str, Any]], None],
        close: Callable[[Close], None],
    ) -> None:
        self.session: GatewaySession
        self.is_open = False
        """Before this, the session repeats what an earlier connection was sent, which this one need not know."""
        self.was_rejected = False
        """Whether the handle to resume with is unknown or has expired."""
        self._deps = deps
        self._settings = settings
        self._send = send
        self._close = close
        self._calls = ClientCalls(self._on_call, self._on_call_dropped)
        self._answer: _Answer | None = None
        self._spoken_turns: set[int] = set()
        self._is_reading_history = settings.begins_with_history
        self._activity: Activity | None = None
        self._is_starting = False
        """Whether audio has come that the session is about to listen to."""
        self._held = HeldAudio()
        self._when_listening: list[Callable[[], None]] = []
        self._playback: asyncio.TimerHandle | None = None
        self._refused = 0

    @property
    def application(self) -> ClientApplication:
        return ClientApplication(instructions=self._settings.instructions)

    def make_tools(self) -> list[Tool]:
        """Raises `ClientToolError`."""
        return self._calls.make_tools(self._settings.tools, self._deps.adapters)

    def begin(self) -> None:
        self.is_open = True
        if self._settings.voice in self._deps.voices():
            self.session.post(c.Settings(voice=self._settings.voice))
        self._send({"setupComplete": {"sessionId": self.session.id}})
        self._tell_handle()

    def end(self) -> None:
        """The client has left."""
        if self._playback is not None:
            self._playback.cancel()
        self._calls.close()
        self.session.close(for_good=not self._settings.is_resumable)

    # What the client sends. Each of these raises `GeminiError`.

    def take(self, message: gm.ClientMessage) -> None:
        self.session.note_message()
        if not self._is_within(Kind.MESSAGE, 1):
            if message.realtime_input is None:
                # Losing it would leave the client waiting for what it has asked for.
                raise gm.GeminiError(QUOTA, gm.FAILED)
            return
        if message.setup is not None:
            raise gm.GeminiError("setup must be the first message and only the first.")
        if message.client_content is not None:
            self._take_content(message.client_content)
        if message.realtime_input is not None:
            self._take_input(message.realtime_input)
        if message.tool_response is not None:
            self._take_results(message.tool_response.function_responses)
        if message.context_update is not None:
            self._take_update(message.context_update)

    def _is_within(self, kind: Kind, amount: float) -> bool:
        """Whether the quota allows it. The protocol has no way to tell a client to slow down: audio is dropped, and a
        client that goes on like this is closed."""
        if self.session.wait_s(kind, amount) == 0:
            return True
        self._refused += 1
        if self._refused > MAX_REFUSED:
            self._close(CLOSES[TOO_FAST])
        return False

    def _take_content(self, content: gm.ClientContent) -> None:
        messages = read_turns(content.turns or ())
        if self._is_reading_history or not content.turn_complete:
            if messages:
                self.session.bring(messages)
            self._is_reading_history = self._is_reading_history and not content.turn_complete
            # Any content ends the answer under way, also if it asks for none itself.
            self._interrupt()
            return
        last = messages[-1] if messages else None
        if not isinstance(last, UserMessage):
            if messages:
                self.session.bring(messages)
            self._ask(self.session.respond)
            return
        if len(last.text) > MAX_TEXT:
            raise gm.GeminiError(f"A turn may have at most {MAX_TEXT} characters.")
        if len(messages) > 1:
            self.session.bring(messages[:-1])
        self._ask(lambda: self.session.say(last.text))

    def _ask(self, action: Callable[[], None]) -> None:
        """Asks for an answer. One that is under way is interrupted, as clients of this protocol expect."""
        self._interrupt()
        if self._settings.speaks and self.session.state.mode is Mode.TEXT:
            self.session.listen_then(action, self._when_listening)
        else:
            self.session.run(action)

    def _interrupt(self) -> None:
        """Stops the answer under way, if there is one."""
        if self.session.state.phase in BUSY:
            self.session.interrupt()

    def _take_input(self, given: gm.RealtimeInput) -> None:
        if given.video is not None:
            raise gm.GeminiError("This server takes audio and text, not video.")
        for blob in [*(given.media_chunks or ()), *([given.audio] if given.audio is not None else ())]:
            self._hear(blob)
        if given.text is not None:
            self._take_text(given.text)
        if given.activity_start is not None or given.activity_end is not None:
            if not self._settings.marks_activity:
                raise gm.GeminiError(MANUAL_ONLY)
            self._mark(begins=given.activity_start is not None)
        if given.audio_stream_end and not self._settings.marks_activity:
            self._end_stream()

    def _take_text(self, text: str) -> None:
        """Takes what the user typed. Blank text asks for an answer to the history: Pipecat begins like this."""
        if len(text) > MAX_TEXT:
            raise gm.GeminiError(f"A text may have at most {MAX_TEXT} characters.")
        self._ask((lambda: self.session.say(text)) if text.strip() else self.session.respond)

    def _hear(self, blob: gm.Blob) -> None:
        if not self._deps.hub.has_voice:
            raise gm.GeminiError("This server has no voice, so it cannot hear. Send text.", gm.POLICY)
        pcm, hz = read_audio(blob)
        if not self._is_within(Kind.AUDIO_S, audio_s(pcm, hz)):
            return
        if self._settings.marks_activity:
            if self._activity is not None:
                self._activity.add(pcm, hz)
            return
        phase = self.session.state.phase
        if phase in BUSY and not self._settings.interrupts:
            self._held.add(pcm, hz)
            return
        self._is_starting = phase is Phase.IDLE
        self.session.listen()
        self.session.hear(pcm, hz, playing=phase is Phase.SPEAKING)

    def _end_stream(self) -> None:
        """What was said so far is the user's turn, also if the session is still about to listen to it."""
        if self.session.state.phase is not Phase.IDLE:
            self.session.post(c.StopListening())
        elif self._is_starting:
            self._when_listening.append(lambda: self.session.post(c.StopListening()))

    def _mark(self, *, begins: bool) -> None:
        if begins:
            self._activity = Activity()
            if self._settings.interrupts:
                self._interrupt()
            return
        activity, self._activity = self._activity, None
        if activity is not None:
            hear = partial(self.session.hear_turn, activity.pcm, activity.hz)
            self.session.listen_then(hear, self._when_listening)

    def _take_results(self, responses: Sequence[gm.FunctionResponse]) -> None:
        for each in responses:
            if not each.id:
                raise gm.GeminiError("A function response must have the `id` of its call.")
            if each.will_continue is not True:
                # The answer to a call that was cancelled, or has its answer, is ignored.
                self._calls.answer(each.id, each.output, error=each.error)

    def _take_update(self, update: gm.ContextUpdate) -> None:
        instructions = self.session.application.instructions
        if update.system_instruction is not None:
            instructions = update.system_instruction.text
        tools = None
        try:
            if update.tools is not None:
                tools = self._calls.make_tools(read_tools(update.tools.tools or ()), self._deps.adapters)
            self.session.configure(ClientApplication(instructions=instructions), tools)
        except ClientToolError as error:
            raise gm.GeminiError(str(error)) from None

    # What the session tells.

    def on_effect(self, effect: Observed) -> None:
        if not self.is_open:
            return
        match effect:
            case fx.StoreUser(number=number, spoken=True):
                self._spoken_turns.add(number)
            case fx.BeginTurn() | fx.Respond() if self._answer is not None:
                self._answer.is_asked = True
            case fx.InterruptModel() if self._answer is not None:
                self._answer.was_interrupted = True
            case Usage(input_tokens=taken, output_tokens=given) if self._answer is not None:
                before = self._answer.usage or Usage(effect.turn, 0, 0)
                self._answer.usage = Usage(effect.turn, before.input_tokens + taken, before.output_tokens + given)

    def on_message(self, message: s.ServerMessage) -> None:
        if not self.is_open:
            self.was_rejected |= isinstance(message, s.Error) and message.code == RESUME_REJECTED
            return
        match message:
            case s.StateChanged(state=s.State.PROCESSING):
                if self._answer is not None and self._answer.has_output:
                    self._end_answer()
                self._answer = _Answer()
            case s.StateChanged(state=s.State.LISTENING | s.State.IDLE as state):
                self._end_answer()
                if state is s.State.LISTENING:
                    self._on_listening()
                for pcm, hz in self._held.take():
                    self.session.listen()
                    self.session.hear(pcm, hz)
            case s.Transcript(is_final=True, text=text, turn=int(turn)) if turn in self._spoken_turns:
                self._spoken_turns.discard(turn)
                if self._settings.wants_input_text:
                    self._send(gm.server_content(inputTranscription={"text": text}))
            case s.ResponseChunk(text=text):
                self._tell_text(text)
            case s.GenerationComplete():
                self._on_complete()
            case s.GoAway(time_left_ms=time_left_ms):
                self._send({"goAway": {"timeLeft": f"{time_left_ms / 1000:g}s"}})
                self._tell_handle()
            case s.Session():
                self._tell_handle()
            case s.Error(message=why) if self._answer is not None:
                # The protocol has no message for an answer that failed.
                self._answer.has_output = True
                self._send(gm.text_part(why))
            case s.Notice(text=why, code=code) if code == UNAVAILABLE:
                self._close(gm.closing(gm.FAILED, why))
            case s.EndVoiceSession(reason=reason) if reason != UNAVAILABLE:
                # A tool has ended the call. Audio that still comes would begin another.
                self._close(NORMAL)
            case s.Timeout(message=why):
                self._close(gm.closing(gm.POLICY, why))

    def on_audio(self, turn: int, pcm: bytes) -> None:
        answer = self._answer
        if not self.is_open or answer is None or not self._settings.speaks:
            return
        if not answer.spoken_s:
            answer.speaking_since_s = asyncio.get_running_loop().time()
        answer.has_output = True
        answer.spoken_s += audio_s(pcm, OUTPUT_HZ)
        for at in range(0, len(pcm), MAX_PIECE_BYTES):
            self._send(gm.audio_part(pcm[at : at + MAX_PIECE_BYTES], OUTPUT_HZ))

    def on_close(self, close: Close) -> None:
        self._close(CLOSES.get(close) or gm.closing(gm.POLICY, close.reason))

    def _tell_text(self, text: str) -> None:
        if self._answer is not None:
            self._answer.has_output = True
        if not self._settings.speaks:
            self._send(gm.text_part(text))
        elif self._settings.wants_output_text:
            self._send(gm.server_content(outputTranscription={"text": text}))

    def _tell_handle(self) -> None:
        if self._settings.is_resumable:
            self._send({"sessionResumptionUpdate": {"newHandle": self.session.handle, "resumable": True}})

    def _on_complete(self) -> None:
        """The whole answer has been sent. The turn is over when the client has had the time to play it."""
        answer = self._answer
        if answer is None:
            return
        answer.is_complete = True
        self._send(gm.server_content(generationComplete=True))
        left_s = answer.speaking_since_s + answer.spoken_s - asyncio.get_running_loop().time()
        self._playback = asyncio.get_running_loop().call_later(max(0.0, left_s), self.session.assume_played)

    def _on_listening(self) -> None:
        self._is_starting = False
        self.session.run_all(self._when_listening)

    def _end_answer(self) -> None:
        """Ends the turn under way, if the client knows of it."""
        answer, self._answer = self._answer, None
        if self._playback is not None:
            self._playback.cancel()
            self._playback = None
        if answer is None or not (answer.has_output or (answer.is_asked and not answer.was_interrupted)):
            return
        if answer.was_interrupted:
            self._send(gm.server_content(interrupted=True))
        ended = gm.server_content(turnComplete=True)
        if answer.usage is not None:
            ended["usageMetadata"] = gm.usage_metadata(answer.usage.input_tokens, answer.usage.output_tokens)
        self._send(ended)
        self._tell_handle()

    def _on_call(self, call: ClientCall) -> None:
        if self._answer is not None:
            self._answer.has_output = True
        self._send({"toolCall": {"functionCalls": [{"id": call.id, "name": call.name, "args": call.args}]}})

    def _on_call_dropped(self, call: ClientCall) -> None:
        self._send({"toolCallCancellation": {"ids": [call.id]}})

"""Gemini Live behind `LiveModel`, through Google's own SDK.

Gemini has no message to cancel an answer or to cut it at what was heard. Models that take notes are told with an
unfinished `clientContent`, which ends the answer; the others learn what was heard with the next text.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Final

from google.genai import types
from google.genai.live import AsyncSession
from websockets.exceptions import ConnectionClosed

from antiphon.models.base import FailureKind
from antiphon.models.live import (
    CloseKind,
    GoAway,
    LiveContext,
    LiveEvent,
    ModelFactory,
    ResumptionUpdate,
    ToolAnswer,
    UpstreamError,
)
from antiphon.models.providers.gemini_closes import explain_end
from antiphon.models.providers.gemini_connect import BROKEN, GeminiClient, receive, send_audio, send_audio_now
from antiphon.models.providers.gemini_content import (
    ANSWER_NOW,
    SAY,
    function_response,
    note_heard,
    note_result,
    user_content,
)
from antiphon.models.providers.gemini_profiles import find_voice
from antiphon.models.providers.gemini_turns import ServerTurns
from antiphon.models.providers.upstream import Outgoing, Turns, Upstream
from antiphon.telemetry.log import get_logger

RESUME_AGAIN_S: Final = 1.0
"""How long after a refusal a session is resumed once more."""
QUIET_S: Final = 0.1
"""How long a resumed session must be quiet before it is asked anything. What it says until then answers nothing: it
greets again, or repeats an answer or a call of an earlier connection."""
MAX_QUIET_S: Final = 1.0
"""How long it is waited for a session that does not become quiet."""
MAX_UNREADABLE: Final = 20
"""How many messages in a row may be unreadable. One is an error, or a kind of message that the SDK does not know."""

log = get_logger(__name__)


class GeminiLive:
    """One conversation with Gemini Live.

    The voice is the one that was set before the connection was made: Gemini cannot change it later, and has no setting
    for the speed.
    """

    def __init__(self, client: GeminiClient) -> None:
        self.profile = client.profile
        self._client = client
        self._kind = client.kind
        name = self.profile.name
        self._upstream = Upstream(name)
        self._turns = Turns(
            self._upstream.emit,
            name=name,
            output_hz=self.profile.output_hz,
            answer_within_s=self._kind.answer_within_s,
        )
        self._server = ServerTurns(self._turns, self._kind, name, self._tell_notes)
        self._outgoing = Outgoing(self._write_audio, name, self._write_audio_now)
        self._session: AsyncSession | None = None
        self._stack = AsyncExitStack()
        self._voice: str | None = None
        self._was_resumed = self._goes_away = False
        self._quiet_at_s: float | None = None
        """When a resumed session will have been quiet for long enough, while that is waited for."""
        self._notes: dict[str, str] = {}
        """What the model must still be told, by what it is about."""

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        self._upstream.check_not_closed()
        await self._resume(context, resume)

    def events(self) -> AsyncIterator[LiveEvent]:
        return self._upstream.events()

    def set_voice(self, voice: str | None, speed: float) -> None:
        """Chooses one of Gemini's voices for the next connection. Any other name means the model's own voice."""
        self._voice = None if voice is None else find_voice(voice)
        if voice is not None and self._voice is None:
            log.warning("model_voice_unknown", model=self.profile.name, voice=voice)

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        if self._upstream.is_open and pcm:
            self._server.has_audio = True
            self._outgoing.put_audio(pcm)

    def end_audio(self, turn: str) -> None:
        if self._upstream.is_open and self._server.end_audio(turn):
            session = self._require_session()
            self._outgoing.put(lambda: session.send_realtime_input(audio_stream_end=True))

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        self._upstream.check_open()
        results = [_note_answer(each) for each in ran]
        self._ask(turn, [text, *results] if text else [*results, ANSWER_NOW])

    def say(self, turn: str, text: str) -> None:
        self._upstream.check_open()
        self._ask(turn, [SAY.format(words=text)])

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        if not self._upstream.is_open:
            return
        awaited, late = self._turns.take_results(turn, answers)
        if awaited:
            self._send_results(awaited)
        for each in late:
            if self._kind.scheduling and each.call.id in self._server.open_ids:
                self._send_responses([each], "SILENT")
            else:
                self._notes[f"result {each.call.id}"] = _note_answer(each)
        self._tell_notes()

    def interrupt(self, turn: str, heard: str | None = None) -> None:
        if not self._upstream.is_open:
            return
        answer = self._turns.answer
        if answer is not None and answer.turn == turn:
            self._server.drop()
        else:
            answer = next((each for each in reversed(self._turns.finished) if each.turn == turn), None)
        if answer is None:
            return
        if heard is not None and heard.strip() != answer.said.strip():
            self._notes[f"answer {turn}"] = note_heard(answer.said, heard)
        if self._kind.takes_notes and self._turns.answer is None and self._server.is_generating(answer):
            self._send_notes()
        else:
            self._tell_notes()

    async def close(self) -> None:
        self._stop()
        await self._upstream.close()
        await self._stack.aclose()

    async def _resume(self, context: LiveContext, handle: str | None) -> None:
        try:
            await self._connect(context, handle)
        except UpstreamError as error:
            was_closed = error.kind is FailureKind.SERVER_ERROR and error.status is None
            if handle is None or not was_closed:
                raise
            # Gemini closes a second connection to a session (1011) until it has noticed that the first one is gone.
            await asyncio.sleep(RESUME_AGAIN_S)
            await self._connect(context, handle)

    async def _connect(self, context: LiveContext, resume: str | None) -> None:
        session, self._stack = await self._client.open(context, resume=resume, voice=self._voice)
        self._session, self._was_resumed = session, resume is not None
        if self._was_resumed:
            self._quiet_at_s = asyncio.get_running_loop().time() + QUIET_S
        self._upstream.open(self._read(session), self._write())
        await self._wait_for_quiet()

    async def _wait_for_quiet(self) -> None:
        loop = asyncio.get_running_loop()
        give_up_s = loop.time() + MAX_QUIET_S
        while self._quiet_at_s is not None and loop.time() < (until_s := min(self._quiet_at_s, give_up_s)):
            # Each part of what it says postpones the end.
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until_s):
                    await asyncio.Event().wait()
        self._quiet_at_s = None

    # Sending.

    def _ask(self, turn: str, texts: Sequence[str]) -> None:
        """Sends a turn of the user, with the notes that were kept for it."""
        self._server.ask(turn)
        notes, self._notes = list(self._notes.values()), {}
        self._send_turn([*notes, *texts])

    def _send_turn(self, texts: Sequence[str]) -> None:
        session = self._require_session()
        if self._kind.takes_turns:
            content = user_content(*texts)
            self._outgoing.put(lambda: session.send_client_content(turns=content, turn_complete=True))
        else:
            self._outgoing.put(lambda: session.send_realtime_input(text="\n".join(texts)))

    def _send_results(self, answers: Sequence[ToolAnswer]) -> None:
        """Sends results that the model waits for. A call without an id can only be answered in words."""
        self._server.give_results()
        self._send_responses([each for each in answers if each.call.id], "WHEN_IDLE" if self._kind.scheduling else None)
        if words := [_note_answer(each) for each in answers if not each.call.id]:
            # New words end the server's turn, and the answer continues with the next.
            self._server.ask_again()
            self._send_turn([*words, ANSWER_NOW])

    def _send_responses(self, answers: Sequence[ToolAnswer], scheduling: str | None) -> None:
        if answers:
            session = self._require_session()
            responses = [function_response(each, scheduling) for each in answers]
            self._outgoing.put(lambda: session.send_tool_response(function_responses=responses))
            for each in answers:
                self._server.open_ids.pop(each.call.id or "", None)

    def _tell_notes(self) -> None:
        """Tells the notes now if the model takes them and answers nothing; otherwise they go with the next text."""
        if self._notes and self._kind.takes_notes and self._server.is_idle:
            self._send_notes()

    def _send_notes(self) -> None:
        """Adds the notes to the context. The answer that the server is generating ends."""
        session = self._require_session()
        content = user_content(*self._notes.values()) if self._notes else None
        self._notes = {}
        self._outgoing.put(lambda: session.send_client_content(turns=content, turn_complete=False))

    def _write_audio_now(self, pcm: bytes) -> bool:
        return send_audio_now(self._require_session(), pcm)

    async def _write_audio(self, pcm: bytes) -> None:
        await send_audio(self._require_session(), pcm)

    async def _write(self) -> None:
        try:
            await self._outgoing.run()
        except ConnectionClosed:
            pass  # The reader learns why.
        except Exception as error:
            self._lose(error)

    def _require_session(self) -> AsyncSession:
        assert self._session is not None, "commands are only carried out while the connection is open"
        return self._session

    # Reading.

    async def _read(self, session: AsyncSession) -> None:
        try:
            async for message in self._messages(session):
                self._take(message)
        except Exception as error:
            self._lose(error)

    async def _messages(self, session: AsyncSession) -> AsyncIterator[types.LiveServerMessage]:
        """Yields messages until the connection ends, whose error is raised."""
        unreadable = 0
        while True:
            try:
                message = await receive(session)
            except BROKEN:
                raise
            except Exception as error:
                # The SDK fails in many ways over a message that it cannot read.
                unreadable += 1
                log.warning("model_message_unreadable", model=self.profile.name, error=type(error).__name__)
                if unreadable > MAX_UNREADABLE:
                    sentence = f"{self.profile.name} sends messages that cannot be read. Is it the right server?"
                    raise UpstreamError(sentence, CloseKind.TRANSIENT, kind=FailureKind.INVALID_RESPONSE) from error
            else:
                unreadable = 0
                yield message

    def _take(self, message: types.LiveServerMessage) -> None:
        """Takes everything that a message carries: it may be several things at once. The end of a turn comes last."""
        content, server = message.server_content, self._server
        if (update := message.session_resumption_update) is not None:
            self._upstream.emit(ResumptionUpdate((update.new_handle or None) if update.resumable else None))
        if message.go_away is not None:
            self._goes_away = True
            self._upstream.emit(GoAway(_read_duration_ms(message.go_away.time_left)))
        if self._quiet_at_s is not None:
            self._drop_unasked(message)
            return
        if content is not None:
            server.take_speech(content)
            server.take_answer(content)
        if message.tool_call is not None:
            server.take_calls(message.tool_call.function_calls or [])
        if message.tool_call_cancellation is not None:
            server.take_cancellation(message.tool_call_cancellation.ids or [])
        if message.usage_metadata is not None:
            server.take_usage(message.usage_metadata)
        if content is not None:
            server.take_end(content)

    def _drop_unasked(self, message: types.LiveServerMessage) -> None:
        content = message.server_content
        if content is not None:
            self._server.has_unasked = not content.turn_complete
        if message.tool_call is not None or (content is not None and content.turn_complete):
            log.info("model_turn_unasked", model=self.profile.name)
        elif content is not None:
            self._quiet_at_s = asyncio.get_running_loop().time() + QUIET_S

    def _lose(self, error: Exception) -> None:
        if isinstance(error, UpstreamError):
            explained = error
        else:
            if not isinstance(error, BROKEN):
                log.error("model_connection_failed", model=self.profile.name, exc_info=error)
            explained = explain_end(
                error,
                self._client.place,
                is_open=True,
                was_resumed=self._was_resumed,
                goes_away=self._goes_away,
            )
        self._server.speech.finish()
        self._upstream.lose(explained)
        self._stop()

    def _stop(self) -> None:
        """No more events come, and no timer is left."""
        self._turns.close()
        self._server.close()


def gemini_factory(model: str, url: str | None, api_key: str | None) -> ModelFactory:
    """Makes the live models of this name. `url` is the address of another server than Google's."""
    client = GeminiClient(model, url, api_key)
    return ModelFactory(client.profile, lambda: GeminiLive(client))


def _note_answer(answer: ToolAnswer) -> str:
    return note_result(answer.call.name, answer.call.args, answer.content)


def _read_duration_ms(text: str | None) -> int:
    """Reads a duration such as `9.5s`; 0 if there is none."""
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d+)?)\s*s\s*", text or "")
    return int(float(match[1]) * 1000) if match else 0

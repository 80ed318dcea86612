"""An OpenAI Realtime server on loopback that keeps the vendor's rules, answers as told, and keeps what it was sent.

It refuses what the vendor refuses: a second response while one is active, a commit of an empty buffer, a truncation
beyond the audio, unknown items and calls, a session without a type. Any loud audio counts as speech.
"""

import asyncio
import base64
import json
import socket
import weakref
from array import array
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Literal, Self

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from antiphon.transcript import Message
from tests.fakes.vendor_answers import Call, End, Event, Output, Reply, Say, Stall, greet, message_of

HZ: Final = 24_000
WORD_MS: Final = 400
"""How long each word of an answer is spoken."""
PACE_S: Final = 0.1
"""How long it takes to generate a word or a call: less than it takes to speak."""
LOUD: Final = 500
"""The least sample value that counts as speech."""
MIN_COMMIT_MS: Final = 100
MAX_ID_CHARS: Final = 32
VOICES: Final = {"alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse", "marin", "cedar"}


class Refused(Exception):
    """A client event is answered with an error event."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code, self.param = code, param


class RealtimeServer:
    def __init__(
        self,
        reply: Reply = greet,
        *,
        hears: Sequence[str] = (),
        transcript: Literal["before", "late", "after", "never", "failed"] = "late",
        refuses_upgrade: tuple[HTTPStatus, str] | None = None,
        greets: "Callable[[ServedSession], Awaitable[None]] | None" = None,
        expires_in_s: float | None = None,
        echoes_metadata: bool = True,
        usage: tuple[int, int] | None = None,
        now_s: float = 1_800_000_000,
    ) -> None:
        """`hears` are the words of the user's spoken turns, and `transcript` says when they are known: before, during
        or after the answer. `greets` takes the place of `session.created`. The session lasts `expires_in_s` from
        `now_s`."""
        self.reply = reply
        self.hears = deque(hears)
        self.transcript = transcript
        self.refuses_upgrade = refuses_upgrade
        self.greets = greets
        self.expires_at = None if expires_in_s is None else now_s + expires_in_s
        self.echoes_metadata = echoes_metadata
        self.usage = usage
        self.received: list[Event] = []
        """All events of clients, in order."""
        self.errors: list[Event] = []
        """The errors that clients were sent."""
        self.requests: list[Request] = []
        self.prompts: list[list[Message]] = []
        """The conversation at the beginning of each response."""
        self.sessions: list[ServedSession] = []
        # asyncio sends small packets at once only on a socket whose protocol is named.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        # A server that is never started must not leave its socket open.
        self._close_socket = weakref.finalize(self, self._socket.close)
        self.port: int = self._socket.getsockname()[1]
        self._server: Server | None = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/v1"

    @property
    def session(self) -> "ServedSession":
        """The newest session."""
        return self.sessions[-1]

    def events(self, kind: str) -> list[Event]:
        """The events of this type that clients have sent."""
        return [event for event in self.received if event["type"] == kind]

    @property
    def kinds(self) -> list[str]:
        """The types of the clients' events, without audio."""
        return [event["type"] for event in self.received if event["type"] != "input_audio_buffer.append"]

    async def __aenter__(self) -> Self:
        self._server = await serve(
            self._serve, sock=self._socket, process_request=self._admit, compression=None, ping_interval=None
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        self._close_socket()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        self.requests.append(request)
        if self.refuses_upgrade is None:
            return None
        status, body = self.refuses_upgrade
        return connection.respond(status, body)

    async def _serve(self, connection: ServerConnection) -> None:
        served = ServedSession(self, connection)
        self.sessions.append(served)
        with suppress(ConnectionClosed):
            await served.run()


class ServedSession:
    """One connection, and the conversation on it."""

    def __init__(self, server: RealtimeServer, connection: ServerConnection) -> None:
        self._server = server
        self._connection = connection
        self._ids = 0
        self.items: list[Event] = []
        self.settings: Event = {}
        self.has_spoken = False
        self.response: ServedResponse | None = None
        self._buffer_ms = 0.0
        self._silence_ms = 0.0
        self._speech: str | None = None
        """The id of the item that the user's speech will become."""
        self._tasks: set[asyncio.Task[None]] = set()

    # The connection.

    async def run(self) -> None:
        try:
            if self._server.greets is not None:
                await self._server.greets(self)
            else:
                await self.greet()
            async for data in self._connection:
                event = json.loads(data)
                self._server.received.append(event)
                try:
                    await self._take(event)
                except Refused as refusal:
                    await self.refuse(refusal, event.get("event_id"))
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def greet(self) -> None:
        session = {"object": "realtime.session", "type": "realtime", "id": self.make_id("sess")}
        await self.send("session.created", session={**session, "expires_at": self._server.expires_at})

    async def send(self, kind: str, **fields: Any) -> None:
        await self._connection.send(json.dumps({"type": kind, "event_id": self.make_id("event"), **fields}))

    async def send_raw(self, data: str | bytes) -> None:
        await self._connection.send(data)

    async def refuse(self, refusal: Refused, event_id: str | None = None, kind: str = "invalid_request_error") -> None:
        error = {
            "type": kind,
            "code": refusal.code,
            "message": str(refusal),
            "param": refusal.param,
            "event_id": event_id,
        }
        self._server.errors.append(error)
        await self.send("error", error=error)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        await self._connection.close(code, reason)

    def drop(self) -> None:
        """Cuts the connection without a close frame."""
        self._connection.transport.abort()

    def make_id(self, kind: str) -> str:
        self._ids += 1
        return f"{kind}_{self._ids:04}"

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # The client's events.

    async def _take(self, event: Event) -> None:
        match event.get("type"):
            case "session.update":
                await self._update(event.get("session") or {})
            case "conversation.item.create":
                await self._create_item(event.get("item") or {})
            case "conversation.item.delete":
                await self._delete_item(event["item_id"])
            case "conversation.item.truncate":
                await self._truncate_item(event)
            case "input_audio_buffer.append":
                await self._hear(base64.b64decode(event["audio"], validate=True))
            case "input_audio_buffer.commit":
                await self._commit_by_client()
            case "input_audio_buffer.clear":
                self._buffer_ms, self._speech = 0.0, None
                await self.send("input_audio_buffer.cleared")
            case "response.create":
                await self.respond(event.get("response") or {})
            case "response.cancel":
                if self.response is None or event.get("response_id") not in (None, self.response.id):
                    raise Refused("response_cancel_not_active", "Cancellation failed: no active response found")
                await self.response.cancel("client_cancelled")
            case kind:
                raise Refused("invalid_value", f"Invalid value: '{kind}'.", "type")

    async def _update(self, session: Event) -> None:
        if session.get("type") != "realtime":
            raise Refused("missing_required_parameter", "Missing required parameter: 'session.type'.", "session.type")
        if session.get("output_modalities", ["audio"]) not in (["audio"], ["text"]):
            raise Refused("invalid_value", "Invalid modalities.", "session.output_modalities")
        for side in session.get("audio", {}).values():
            if side.get("format", {"type": "audio/pcm", "rate": HZ}) != {"type": "audio/pcm", "rate": HZ}:
                raise Refused("invalid_value", "Invalid audio format.", "session.audio")
        output = session.get("audio", {}).get("output", {})
        if not 0.25 <= output.get("speed", 1.0) <= 1.5:
            raise Refused("invalid_value", "Invalid 'session.audio.output.speed'.", "session.audio.output.speed")
        if "speed" in output and self.response is not None:
            raise Refused("cannot_update_speed", "The speed cannot be changed while a response is in progress.")
        if output.get("voice", "marin") not in VOICES:
            raise Refused("invalid_value", f"Invalid voice: '{output['voice']}'.", "session.audio.output.voice")
        if "voice" in output and self.has_spoken:
            raise Refused("cannot_update_voice", "Cannot update a conversation's voice if assistant audio is present.")
        if any("name" not in tool or tool.get("type") != "function" for tool in session.get("tools", ())):
            raise Refused("missing_required_parameter", "Missing required parameter: 'session.tools[0].name'.")
        self.settings = _merge(self.settings, session)
        await self.send("session.updated", session=self.settings)

    async def _create_item(self, item: Event) -> None:
        match item:
            case {"type": "message", "role": "user" | "system", "content": [{"type": "input_text", "text": str()}]}:
                pass
            case {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": str()}]}:
                pass
            case {"type": "function_call", "name": str(), "arguments": str(), "call_id": str(id)}:
                _check_id(id)
            case {"type": "function_call_output", "output": str(), "call_id": str(id)}:
                _check_id(id)
                if id not in [each.get("call_id") for each in self.items if each["type"] == "function_call"]:
                    raise Refused("invalid_tool_call_id", f"Tool call ID '{id}' not found in conversation.")
                if id in [each.get("call_id") for each in self.items if each["type"] == "function_call_output"]:
                    raise Refused("invalid_tool_call_id", f"Tool call ID '{id}' already has an output.")
            case _:
                raise Refused("invalid_value", "Invalid item.", "item")
        added = {**item, "id": item.get("id") or self.make_id("item"), "status": "completed"}
        if self.find(added["id"]) is not None:
            raise Refused("item_already_exists", f"Item with ID '{added['id']}' already exists.")
        await self.add(added)

    async def add(self, item: Event) -> None:
        previous = self.items[-1]["id"] if self.items else None
        self.items.append(item)
        await self.send("conversation.item.added", previous_item_id=previous, item=_public(item))
        if item.get("status") == "completed":
            await self.send("conversation.item.done", previous_item_id=previous, item=_public(item))

    def find(self, id: str) -> Event | None:
        return next((item for item in self.items if item["id"] == id), None)

    async def _delete_item(self, id: str) -> None:
        item = self.find(id)
        if item is None:
            raise Refused(
                "item_delete_invalid_item_id", f"Error deleting item: the item with id '{id}' does not exist."
            )
        self.items.remove(item)
        await self.send("conversation.item.deleted", item_id=id)

    async def _truncate_item(self, event: Event) -> None:
        item, end_ms = self.find(event["item_id"]), event["audio_end_ms"]
        if item is None:
            raise Refused("item_truncate_invalid_item_id", f"The item with id '{event['item_id']}' does not exist.")
        words = item.get("words")
        if not words:
            raise Refused("unsupported_content_type", "Only model output audio messages can be truncated")
        if end_ms > len(words) * WORD_MS:
            message = f"Audio content of {len(words) * WORD_MS}ms is already shorter than {end_ms}ms"
            raise Refused("invalid_value", message)
        item["words"] = words[: round(end_ms / WORD_MS)]
        await self.send("conversation.item.truncated", item_id=item["id"], content_index=0, audio_end_ms=end_ms)

    # The user's speech.

    async def _hear(self, pcm: bytes) -> None:
        samples = array("h", pcm)
        ms = len(samples) * 1000 / HZ
        self._buffer_ms += ms
        is_loud = bool(samples) and max(max(samples), -min(samples)) >= LOUD
        if is_loud:
            self._silence_ms = 0.0
            if self._speech is None:
                self._speech = self.make_id("item")
                await self.send("input_audio_buffer.speech_started", audio_start_ms=0, item_id=self._speech)
                if self.response is not None and self.detection.get("interrupt_response", True):
                    await self.response.cancel("turn_detected")
        elif self._speech is not None:
            self._silence_ms += ms
            if self._silence_ms >= self.detection.get("silence_duration_ms", 500):
                item, self._speech = self._speech, None
                await self.send("input_audio_buffer.speech_stopped", audio_end_ms=0, item_id=item)
                await self._commit(item)
                if self.detection.get("create_response", True):
                    try:
                        await self.respond({})
                    except Refused as refusal:
                        await self.refuse(refusal)

    @property
    def detection(self) -> Event:
        detection: Event = self.settings.get("audio", {}).get("input", {}).get("turn_detection") or {}
        return detection

    async def _commit_by_client(self) -> None:
        if self._buffer_ms < MIN_COMMIT_MS:
            had = f"buffer only has {self._buffer_ms:.2f}ms of audio"
            message = (
                f"Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but {had}."
            )
            raise Refused("input_audio_buffer_commit_empty", message)
        item, self._speech = self._speech or self.make_id("item"), None
        await self._commit(item)

    async def _commit(self, id: str) -> None:
        self._buffer_ms = self._silence_ms = 0.0
        words = self._server.hears.popleft() if self._server.hears else "hello"
        previous = self.items[-1]["id"] if self.items else None
        await self.send("input_audio_buffer.committed", previous_item_id=previous, item_id=id)
        content = [{"type": "input_audio", "transcript": None}]
        item = {"type": "message", "role": "user", "id": id, "status": "completed", "content": content, "heard": words}
        await self.add(item)
        is_wanted = self.settings.get("audio", {}).get("input", {}).get("transcription") is not None
        delays_s = {"before": 0.0, "late": 0.25, "after": 5.0, "failed": 0.0}
        if is_wanted and self._server.transcript in delays_s:
            delay_s = delays_s[self._server.transcript]
            if delay_s:
                self._spawn(self._transcribe(id, words, delay_s))
            else:
                await self._transcribe(id, words, 0.0)

    async def _transcribe(self, id: str, words: str, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        of = "conversation.item.input_audio_transcription"
        if self._server.transcript == "failed":
            error = {"type": "transcription_error", "code": "audio_unintelligible", "message": "Could not transcribe."}
            await self.send(f"{of}.failed", item_id=id, content_index=0, error=error)
            return
        first, *rest = words.split(" ")
        for piece in (first, *(f" {word}" for word in rest)):
            await self.send(f"{of}.delta", item_id=id, content_index=0, delta=piece)
        await self.send(f"{of}.completed", item_id=id, content_index=0, transcript=words)

    # The model's answers.

    async def respond(self, asked: Event) -> None:
        """Raises `Refused` if a response is active."""
        if self.response is not None:
            message = f"Conversation already has an active response in progress: {self.response.id}."
            raise Refused("conversation_already_has_active_response", message)
        prompt = self.messages
        self._server.prompts.append(prompt)
        outputs = self._server.reply(prompt, asked)
        metadata = asked.get("metadata") if self._server.echoes_metadata else None
        self.response = ServedResponse(self, outputs, metadata, self._server.usage)
        await self.response.send_created()
        self.response.task = self._spawn(self.response.run())

    @property
    def messages(self) -> list[Message]:
        """The conversation, without the system's messages."""
        return [message for item in self.items if (message := message_of(item)) is not None]


class ServedResponse:
    def __init__(
        self, session: ServedSession, outputs: Sequence[Output], metadata: Any, usage: tuple[int, int] | None
    ) -> None:
        self.id = session.make_id("resp")
        self.task: asyncio.Task[None] | None = None
        self._session = session
        self._outputs = outputs
        self._metadata = metadata
        self._usage = usage
        self._made: list[Event] = []

    def body(self, status: str, details: Mapping[str, Any] | None = None, *, done: bool = False) -> Event:
        usage = None
        if done and self._usage is not None:
            sent, got = self._usage
            usage = {"total_tokens": sent + got, "input_tokens": sent, "output_tokens": got}
        return {
            "object": "realtime.response",
            "id": self.id,
            "status": status,
            "status_details": details,
            "output": [_public(item) for item in self._made],
            "usage": usage,
            "metadata": self._metadata,
        }

    async def send_created(self) -> None:
        await self._session.send("response.created", response=self.body("in_progress"))

    async def cancel(self, reason: str) -> None:
        if self.task is not None:
            self.task.cancel()
        for item in self._made:
            if item["status"] == "in_progress":
                item["status"] = "incomplete"
                if item["type"] == "function_call":
                    # The vendor ends the arguments of a call that was cut off, too.
                    await self._send("function_call_arguments.done", item, call_id=item["call_id"], arguments="{")
                await self._send("output_item.done", item, item=_public(item))
        await self._finish("cancelled", {"type": "cancelled", "reason": reason})

    async def run(self) -> None:
        for output in self._outputs:
            match output:
                case Say(text=text):
                    await self._say(text)
                case Call():
                    await self._call(output)
                case Stall():
                    await asyncio.Event().wait()
                case End(status=status, details=details):
                    await self._finish(status, details)
                    return
        await self._finish("completed")

    async def _finish(self, status: str, details: Mapping[str, Any] | None = None) -> None:
        self._session.response = None
        await self._session.send("response.done", response=self.body(status, details, done=True))
        limits = [{"name": "tokens", "limit": 40_000, "remaining": 39_000, "reset_seconds": 1.2}]
        await self._session.send("rate_limits.updated", rate_limits=limits)

    async def _say(self, text: str) -> None:
        item: Event = {
            "type": "message",
            "role": "assistant",
            "id": self._session.make_id("item"),
            "status": "in_progress",
            "words": [],
            "content": [],
        }
        await self._begin(item)
        await self._send("content_part.added", item, content_index=0, part={"type": "audio", "transcript": ""})
        for place, word in enumerate(text.split()):
            await asyncio.sleep(PACE_S)
            await self._send(
                "output_audio_transcript.delta", item, content_index=0, delta=f" {word}" if place else word
            )
            item["words"] = [*item["words"], word]
            self._session.has_spoken = True
            pcm = bytes([place + 1, 0]) * (HZ * WORD_MS // 1000)
            await self._send("output_audio.delta", item, content_index=0, delta=base64.b64encode(pcm).decode())
        item["content"] = [{"type": "output_audio", "transcript": text}]
        await self._send("output_audio.done", item, content_index=0)
        await self._send("output_audio_transcript.done", item, content_index=0, transcript=text)
        await self._complete(item)

    async def _call(self, call: Call) -> None:
        arguments = call.args if isinstance(call.args, str) else json.dumps(call.args)
        item = {"type": "function_call", "id": self._session.make_id("item"), "status": "in_progress"}
        item |= {"name": call.name, "call_id": call.id, "arguments": ""}
        await self._begin(item)
        await asyncio.sleep(PACE_S)
        for half in (arguments[: len(arguments) // 2], arguments[len(arguments) // 2 :]):
            await self._send("function_call_arguments.delta", item, call_id=call.id, delta=half)
        item["arguments"] = arguments
        await self._send("function_call_arguments.done", item, call_id=call.id, name=call.name, arguments=arguments)
        await self._complete(item)

    async def _begin(self, item: Event) -> None:
        self._made.append(item)
        await self._send("output_item.added", item, item=_public(item))
        await self._session.add(item)

    async def _complete(self, item: Event) -> None:
        item["status"] = "completed"
        await self._session.send("conversation.item.done", previous_item_id=None, item=_public(item))
        await self._send("output_item.done", item, item=_public(item))

    async def _send(self, kind: str, of: Event, /, **fields: Any) -> None:
        place = self._made.index(of)
        await self._session.send(
            f"response.{kind}", response_id=self.id, item_id=of["id"], output_index=place, **fields
        )


def _check_id(id: str) -> None:
    if len(id) > MAX_ID_CHARS:
        raise Refused("string_above_max_length", "Invalid 'item.call_id': string too long.", "item.call_id")


def _merge(old: Event, new: Event) -> Event:
    merged = dict(old)
    for key, value in new.items():
        is_nested = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if is_nested else value
    return merged


def _public(item: Event) -> Event:
    """The item without what only the server knows."""
    return {"object": "realtime.item", **{key: value for key, value in item.items() if key not in ("heard", "words")}}

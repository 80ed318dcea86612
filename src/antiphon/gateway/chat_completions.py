"""`POST /v1/chat/completions`: a chat answer in OpenAI's format, as one object or as server-sent events."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from antiphon.gateway.api_errors import ApiError, reply
from antiphon.gateway.chat_answer import ChatAnswer, ClientCalls, Tokens
from antiphon.gateway.connected import RequestWork, explain_failure
from antiphon.security.surrogates import repair_json
from antiphon.tools.call import ToolCall

HEARTBEAT_S: Final = 15.0
"""Proxies close connections that are silent for half a minute or more."""
HEARTBEAT: Final = b": still here\n\n"
DONE: Final = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Completion:
    """What all chunks of one answer have in common."""

    model: str
    created_s: int
    id: str

    def chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self._event(choices=[choice])

    def usage_chunk(self, usage: Tokens) -> bytes:
        return self._event(choices=[], usage=_usage(usage))

    def whole(self, text: str, calls: tuple[ToolCall, ...], usage: Tokens | None) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
        if calls:
            message["tool_calls"] = [_call(call) for call in calls]
        reason = "tool_calls" if calls else "stop"
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
        whole = self._fields("chat.completion") | {"choices": [choice]}
        return whole if usage is None else whole | {"usage": _usage(usage)}

    def _fields(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created_s, "model": self.model}

    def _event(self, **fields: Any) -> bytes:
        return b"data: %b\n\n" % msgspec.json.encode(self._fields("chat.completion.chunk") | fields)


def begin_completion(model: str, now_ms: int) -> Completion:
    return Completion(model, now_ms // 1000, f"chatcmpl-{uuid4().hex}")


async def make_whole(answer: ChatAnswer, completion: Completion) -> Response:
    """Returns the whole answer in one object. Raises `ApiError`."""
    text, calls = "", tuple[ToolCall, ...]()
    async for piece in answer.run():
        match piece:
            case str():
                text += piece
            case ClientCalls():
                calls = piece.calls
    return reply(completion.whole(text, calls, answer.usage))


class CompletionStream(Response):
    """The answer as server-sent events. It begins with the first event, so that an error before it has its status."""

    media_type = "text/event-stream"

    def __init__(self, answer: ChatAnswer, completion: Completion, work: RequestWork, *, includes_usage: bool) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._answer = answer
        self._completion = completion
        self._work = work
        self._includes_usage = includes_usage
        self._events: asyncio.Queue[bytes | ApiError | None] = asyncio.Queue()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        making = asyncio.create_task(self._make(receive, scope["path"]))
        try:
            await self._write(scope, receive, send)
        finally:
            making.cancel()
            await asyncio.wait([making])

    async def _make(self, receive: Receive, path: str) -> None:
        last: ApiError | None = None
        try:
            await self._work.run(self._put_events(), receive)
        except ClientDisconnect:
            pass
        except Exception as error:
            last = explain_failure(error, path)
        self._events.put_nowait(last)

    async def _put_events(self) -> None:
        completion, put = self._completion, self._events.put_nowait
        is_first, reason = True, "stop"
        async for piece in self._answer.run():
            head = {"role": "assistant", "content": "", "refusal": None} if is_first else {}
            is_first = False
            match piece:
                case str():
                    put(completion.chunk(head | {"content": piece}))
                case ClientCalls(calls=calls):
                    reason = "tool_calls"
                    for chunk in _call_chunks(calls, head | {"content": None} if head else {}):
                        put(completion.chunk(chunk))
        put(completion.chunk({}, reason))
        if self._includes_usage and self._answer.usage is not None:
            put(completion.usage_chunk(self._answer.usage))
        put(DONE)

    async def _write(self, scope: Scope, receive: Receive, send: Send) -> None:
        event = await self._next()
        if isinstance(event, ApiError):
            await event.response()(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        while event is not None:
            if isinstance(event, ApiError):
                event = b"data: %b\n\n" % msgspec.json.encode(event.body)
                self._events.put_nowait(None)
            await send({"type": "http.response.body", "body": event, "more_body": True})
            event = await self._next()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _next(self) -> bytes | ApiError | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(HEARTBEAT_S):
                return await self._events.get()
        return HEARTBEAT


def _call_chunks(calls: tuple[ToolCall, ...], head: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Describes each call in two chunks, as OpenAI does: its id and name, then its arguments."""
    for index, call in enumerate(calls):
        made = _call(call)
        begun = {"index": index, **made, "function": {"name": call.name, "arguments": ""}}
        yield (head if not index else {}) | {"tool_calls": [begun]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": made["function"]["arguments"]}}]}


def _call(call: ToolCall) -> dict[str, Any]:
    # A model may have cut a character in half.
    arguments = msgspec.json.encode(repair_json(call.args)).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _usage(usage: Tokens) -> dict[str, int]:
    taken, given = usage.input_tokens, usage.output_tokens
    return {"prompt_tokens": taken, "completion_tokens": given, "total_tokens": taken + given}

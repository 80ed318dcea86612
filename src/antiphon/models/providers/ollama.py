"""Ollama's own API: `/api/chat`, a stream with one JSON object per line, and `/api/pull`.

Ollama also imitates OpenAI, but only its own API takes the length of the context, how long the model stays loaded, and
whether it thinks. The package `ollama` is not used: it drops the ids of tool calls and most of a tool's schema.

An answer is whole if a line with `done` came. Ollama says "stop" also when the model called tools.

This module needs the package `httpx2`; `open_text_model` says so if it is missing.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import httpx2
import msgspec
from msgspec import Struct

from antiphon.config import Ollama
from antiphon.models.base import (
    CallRequested,
    Event,
    FailureKind,
    MessageComplete,
    ModelError,
    Prompt,
    StopReason,
    TextDelta,
    TextProfile,
    TokensUsed,
)
from antiphon.models.bounded import MAX_CALL_CHARS, MAX_CALLS, TOO_MANY_CALLS, LimitExceeded
from antiphon.models.providers.accumulator import TOO_LONG_CALLS, decode_arguments
from antiphon.models.providers.events import LineDecoder
from antiphon.models.providers.failures import (
    FAILURES,
    ConnectionLost,
    Refusal,
    StreamedError,
    TimedOut,
    cut_off,
    explain,
)
from antiphon.models.providers.references import Endpoint, ModelReference
from antiphon.models.providers.spoken_text import SpokenText
from antiphon.models.providers.streams import BROKEN, join_words, limit_refusal, read_stream, retry_once
from antiphon.security.quotes import quote
from antiphon.security.surrogates import repair_json
from antiphon.tools.call import ToolCall
from antiphon.transcript import AssistantMessage, CallMade, ToolMessage, UserMessage

CONNECT_TIMEOUT_S: Final = 5.0
LINE_TIMEOUT_S: Final = 120.0
"""The longest silence of the server. It is longer than a turn, because a CPU may read the first prompt for minutes, and
the limit of the turn has the better message."""
WARM_TIMEOUT_S: Final = 600.0
"""The longest silence while a prompt is read ahead of time. Nobody waits for it."""

NO_THINKING: Final = "does not support thinking"
NO_TOOLS: Final = "does not support tools"


class _Function(Struct, frozen=True):
    name: str = ""
    arguments: Any = None


class _Call(Struct, frozen=True):
    function: _Function
    id: str | None = None


class _Message(Struct, frozen=True):
    """`thinking` is not read: thoughts are neither shown nor spoken."""

    content: str | None = None
    tool_calls: list[_Call] | None = None


class _Line(Struct, frozen=True):
    message: _Message | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    """The tokens of the prompt. Some versions omit it if the prompt was cached."""
    eval_count: int | None = None
    error: Any = None


_decoder: Final = msgspec.json.Decoder(_Line)


class OllamaModel:
    """Takes the tools of a prompt as the schemas "openai_chat". Holds connections: close it."""

    def __init__(
        self,
        reference: ModelReference,
        env: Mapping[str, str],
        settings: Ollama | None = None,
        *,
        line_timeout_s: float = LINE_TIMEOUT_S,
    ) -> None:
        self._reference = reference
        self._settings = settings or Ollama()
        self._server = OllamaServer(reference.endpoint(env), line_timeout_s)
        self._endpoint = self._server.endpoint
        self.profile = TextProfile(
            str(reference), needs_network=not self._endpoint.is_loopback, context_tokens=self._settings.num_ctx
        )
        self._sends_think = True

    async def aclose(self) -> None:
        await self._server.aclose()

    async def warm(self, prompt: Prompt) -> bool:
        if not self._endpoint.is_own:
            return False
        try:
            async with aclosing(self._lines(prompt, is_warming=True)) as lines:
                async for _ in lines:
                    break
        except FAILURES as error:
            raise self._explain(error) from error
        return True

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        calls, text, end = _Calls(), SpokenText(), None
        try:
            async with aclosing(retry_once(lambda: self._lines(prompt))) as lines:
                async for line in lines:
                    message = line.message or _Message()
                    for call in message.tool_calls or ():
                        calls.add(call)
                    if message.content and (piece := text.push(message.content)):
                        yield TextDelta(piece)
                    if line.done:
                        end = line
        except FAILURES as error:
            raise self._explain(error) from error
        if piece := text.finish():
            yield TextDelta(piece)
        if end is None or (end.done_reason == "length" and calls.made):
            raise cut_off(self.profile.name)
        for made in calls.made:
            yield CallRequested(made)
        if end.prompt_eval_count is not None or end.eval_count is not None:
            yield TokensUsed(end.prompt_eval_count or 0, end.eval_count or 0)
        yield MessageComplete(StopReason.CALLS if calls.made else StopReason.DONE)

    async def _lines(self, prompt: Prompt, *, is_warming: bool = False) -> AsyncGenerator[_Line, None]:
        timeout_s = WARM_TIMEOUT_S if is_warming else None
        while True:
            decoder, has_sent_think = LineDecoder(), self._sends_think

            def decode(piece: bytes, decoder: LineDecoder = decoder) -> Iterator[_Line]:
                return join_words(map(_decode, decoder.feed(piece)), _words_only, _say)

            try:
                async with (
                    self._server.post("/api/chat", self._body(prompt, is_warming), timeout_s) as response,
                    aclosing(read_stream(response, decode, lambda line: line.done)) as lines,
                ):
                    async for line in lines:
                        yield line
                    return
            except Refusal as refusal:
                if not has_sent_think or NO_THINKING not in quote(refusal.body):
                    raise
                # Most versions accept `"think": false` for every model, but not all do.
                self._sends_think = False

    def _body(self, prompt: Prompt, is_warming: bool) -> dict[str, Any]:
        options = {"num_ctx": self._settings.num_ctx}
        if is_warming:
            options["num_predict"] = 1
        body: dict[str, Any] = {
            "model": self._reference.model,
            "messages": _messages(prompt),
            "stream": True,
            "keep_alive": self._settings.keep_alive,
            "options": options,
        }
        if prompt.tools:
            body["tools"] = list(prompt.tools)
        if self._sends_think:
            body["think"] = self._settings.think
        return body

    def _explain(self, error: Exception) -> ModelError:
        if isinstance(error, Refusal) and NO_TOOLS in quote(error.body):
            message = f"{self.profile.name} cannot call tools. Choose a model that can, such as ollama:qwen3."
            return ModelError(message, retryable=False, status=error.status)
        return explain_ollama(error, self._reference, self._endpoint)


class OllamaServer:
    """The HTTP client of one Ollama. Close it."""

    def __init__(self, endpoint: Endpoint, line_timeout_s: float) -> None:
        self.endpoint = endpoint
        self._patience = _patience(line_timeout_s)
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        if endpoint.api_key:
            headers["Authorization"] = f"Bearer {endpoint.api_key}"
        self._client = httpx2.AsyncClient(
            headers=headers,
            # A proxy must not be used for loopback addresses: it would resolve them to its own machine.
            trust_env=not endpoint.is_loopback,
            # The key and the conversation must not be sent to any other server.
            follow_redirects=False,
            event_hooks={"response": [limit_refusal]},
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    @asynccontextmanager
    async def post(
        self, path: str, body: Mapping[str, Any], line_timeout_s: float | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """Raises `ConnectionLost`, `TimedOut` or `Refusal`."""
        content = msgspec.json.encode(body)
        patience = self._patience if line_timeout_s is None else _patience(line_timeout_s)
        try:
            address = f"{self.endpoint.url}{path}"
            async with self._client.stream("POST", address, content=content, timeout=patience) as response:
                if not response.is_success:
                    raise Refusal(response.status_code, _decode_refusal(await response.aread()), response.headers)
                yield response
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise ConnectionLost(has_connected=False) from error
        except httpx2.TimeoutException as error:
            raise TimedOut from error
        except BROKEN as error:
            raise ConnectionLost(has_connected=True) from error


def _patience(line_timeout_s: float) -> httpx2.Timeout:
    return httpx2.Timeout(line_timeout_s, connect=CONNECT_TIMEOUT_S)


def explain_ollama(error: Exception, reference: ModelReference, endpoint: Endpoint) -> ModelError:
    match error:
        case ConnectionLost(has_connected=False):
            message = (
                f"Failed to connect to Ollama at {endpoint.url}. Is it running? Start it with `ollama serve`, or set "
                "OLLAMA_HOST to its address."
            )
            return ModelError(message, kind=FailureKind.UNREACHABLE)
        case Refusal(status=404) if "model" in quote(error.body):
            message = (
                f"Ollama has no model {reference.model}. Pull it with `antiphon models pull {reference}` or "
                f"`ollama pull {reference.model}`."
            )
            return ModelError(message, retryable=False, status=error.status)
    return explain(error, str(reference), endpoint)


class _Calls:
    """The calls of one message. Ollama sends each of them whole, some versions without an id."""

    def __init__(self) -> None:
        self.made: list[ToolCall] = []
        self._chars = 0

    def add(self, call: _Call) -> None:
        """Raises `LimitExceeded`: until a message ends, all of its calls are held in memory."""
        name, args = call.function.name, call.function.arguments
        self._chars += len(call.id or "") + len(name) + len(msgspec.json.encode(args))
        if len(self.made) == MAX_CALLS:
            raise LimitExceeded(TOO_MANY_CALLS)
        if self._chars > MAX_CALL_CHARS:
            raise LimitExceeded(TOO_LONG_CALLS)
        if isinstance(args, str):
            args = decode_arguments(args)
        self.made.append(ToolCall(call.id or None, name, {} if args is None else args))


def _decode(data: bytes) -> _Line:
    try:
        line = _decoder.decode(data)
    except msgspec.DecodeError:
        # msgspec refuses half a surrogate pair.
        line = msgspec.convert(repair_json(json.loads(data)), _Line)
    if line.error:
        raise StreamedError(line.error)
    return line


def _words_only(line: _Line) -> str | None:
    match line:
        case _Line(message=_Message(content=text, tool_calls=None | []), done=False):
            return text
    return None


def _say(words: str) -> _Line:
    return _Line(_Message(words))


def _decode_refusal(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")


def _messages(prompt: Prompt) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": prompt.system}] if prompt.system else []
    for message in prompt.told_messages:
        match message:
            case UserMessage(text=text):
                messages.append({"role": "user", "content": text})
            case AssistantMessage(text=text, calls=calls) if text or calls:
                said: dict[str, Any] = {"role": "assistant", "content": text}
                if calls:
                    said["tool_calls"] = _history_calls(calls)
                messages.append(said)
            case ToolMessage(call_id=call_id, name=name, content=content):
                told = content if isinstance(content, str) else msgspec.json.encode(content).decode()
                messages.append({"role": "tool", "tool_name": name, "tool_call_id": call_id, "content": told})
    return messages


def _history_calls(calls: Sequence[CallMade]) -> list[dict[str, Any]]:
    # Ollama refuses arguments that are not an object.
    return [
        {
            "id": call.id,
            "function": {
                "index": index,
                "name": call.name,
                "arguments": call.args if isinstance(call.args, dict) else {"invalid_arguments": call.args},
            },
        }
        for index, call in enumerate(calls)
    ]

"""Chat completions over HTTP: OpenAI, and the servers that imitate it (Ollama, vLLM, llama.cpp, one of Gemini's).

The SDK sends the request, and `chunks.py` reads the answer. The SDK's `.stream()` helper puts tool calls together as
OpenAI sends them, and fails or mixes them up with everyone else's (`accumulator.py`). Reasoning is skipped, both in
fields of its own and within the text (`spoken_text.py`).

An answer is whole if the server gave a `finish_reason`, whatever it says: several say "stop" with tool calls. `[DONE]`
alone proves nothing, because proxies send it also after a server that died in mid-answer. There is one exception: a
message with tool calls whose arguments are all whole objects, because vLLM has sent such messages with `[DONE]` and no
reason, and a call that was cut off is not among them.

This module needs the package `openai`; `open_text_model` says so if it is missing.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import httpx2
import msgspec
import openai

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
from antiphon.models.providers.accumulator import Calls
from antiphon.models.providers.chunks import DONE, Choice, Chunk, read_chunks
from antiphon.models.providers.failures import FAILURES, ConnectionLost, Refusal, TimedOut, cut_off, explain
from antiphon.models.providers.references import ModelReference, Provider, known_context_tokens
from antiphon.models.providers.spoken_text import SpokenText
from antiphon.models.providers.streams import limit_refusal, retry_once
from antiphon.telemetry.log import get_logger
from antiphon.tools.call import ToolCall
from antiphon.transcript import AssistantMessage, CallMade, ToolMessage, UserMessage

CONNECT_TIMEOUT_S: Final = 5.0
CHUNK_TIMEOUT_S: Final = 60.0
"""The longest silence of a server elsewhere."""
OWN_CHUNK_TIMEOUT_S: Final = 120.0
"""The longest silence of a server of one's own, which may be loading the model or reading the first prompt on a CPU. It
is longer than a turn, because the limit of the turn has the better message."""
WARM_TIMEOUT_S: Final = 600.0
"""The longest silence while a prompt is read ahead of time. Nobody waits for it, and a CPU may take minutes."""

# Gemini 3 refuses a history in which a message's first call has no signature. This value, which Google documents for
# calls that another model, or no model (a confirmed call), made, is accepted.
UNSIGNED: Final = {"google": {"thought_signature": "skip_thought_signature_validator"}}

log = get_logger(__name__)


class OpenAICompatibleModel:
    """Takes the tools of a prompt as the schemas "openai_chat". Holds connections: close it."""

    def __init__(
        self, reference: ModelReference, env: Mapping[str, str], *, chunk_timeout_s: float | None = None
    ) -> None:
        self._reference = reference
        self._endpoint = endpoint = reference.endpoint(env)
        if chunk_timeout_s is None:
            chunk_timeout_s = OWN_CHUNK_TIMEOUT_S if endpoint.is_own else CHUNK_TIMEOUT_S
        self.profile = TextProfile(
            str(reference), needs_network=not endpoint.is_loopback, context_tokens=known_context_tokens(reference)
        )
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.url,
            api_key=endpoint.api_key or "none",
            # The SDK's own retries would hide a rate limit for minutes.
            max_retries=0,
            timeout=openai.Timeout(chunk_timeout_s, connect=CONNECT_TIMEOUT_S),
            # A proxy must not be used for loopback addresses: it would resolve them to its own machine.
            http_client=openai.DefaultAsyncHttpxClient(
                trust_env=not endpoint.is_loopback,
                # The key and the conversation must not be sent to any other server.
                follow_redirects=False,
                event_hooks={"response": [limit_refusal]},
            ),
        )
        self._headers: dict[str, Any] = {"Accept-Encoding": "identity"}
        if not endpoint.api_key:
            # The SDK requires a key, so without one the header is removed again.
            self._headers["Authorization"] = openai.Omit()

    async def aclose(self) -> None:
        await self._client.close()

    async def warm(self, prompt: Prompt) -> bool:
        if not self._endpoint.is_own:
            return False
        patience = openai.Timeout(WARM_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        try:
            async with aclosing(self._chunks(prompt, max_tokens=1, timeout=patience)) as chunks:
                async for _ in chunks:
                    break
        except FAILURES as error:
            raise explain(error, self.profile.name, self._endpoint) from error
        return True

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        calls, text, usage = Calls(), SpokenText(), None
        is_empty, is_done, finish_reason = True, False, None
        try:
            async with aclosing(retry_once(lambda: self._chunks(prompt))) as chunks:
                async for chunk in chunks:
                    if chunk is DONE:
                        is_done = True
                        break
                    is_empty = False
                    usage = chunk.usage or usage
                    choice = chunk.choices[0] if chunk.choices else Choice()
                    finish_reason = choice.finish_reason or finish_reason
                    if choice.delta is None:
                        continue
                    for fragment in choice.delta.tool_calls or ():
                        calls.add(fragment)
                    if choice.delta.content and (piece := text.push(choice.delta.content)):
                        yield TextDelta(piece)
        except FAILURES as error:
            # After its finish, a server has nothing more to say that is needed.
            if finish_reason is None or not isinstance(error, ConnectionLost):
                raise explain(error, self.profile.name, self._endpoint) from error
        if piece := text.finish():
            yield TextDelta(piece)
        if text.has_unmarked_thoughts:
            # The server must be told to separate them: docs/providers/openai-compatible.md.
            log.warning("thoughts_were_spoken", model=self.profile.name)
        if finish_reason is None and is_done and calls.are_whole:
            finish_reason = "tool_calls"
        requested = calls.finish()
        self._check_end(finish_reason, is_empty=is_empty, has_calls=bool(requested))
        for call in requested:
            yield CallRequested(self._mark(call))
        if usage is not None:
            yield TokensUsed(usage.prompt_tokens or 0, usage.completion_tokens or 0)
        yield MessageComplete(StopReason.CALLS if requested else StopReason.DONE)

    def _check_end(self, finish_reason: Any, *, is_empty: bool, has_calls: bool) -> None:
        """Raises `ModelError` if the message is not whole."""
        if is_empty:
            # A page of another server, or a whole completion from one that cannot stream.
            message = f"{self.profile.name} did not stream its answer. Is {self._endpoint.url} the right address?"
            raise ModelError(message, retryable=False, kind=FailureKind.INVALID_RESPONSE)
        # A call that ran into the server's limit of tokens lacks arguments, or has half of them.
        if finish_reason in (None, "error") or (finish_reason == "length" and has_calls):
            raise cut_off(self.profile.name)

    async def _chunks(self, prompt: Prompt, **options: Any) -> AsyncGenerator[Chunk, None]:
        async with self._open(prompt, **options) as response, aclosing(read_chunks(response)) as chunks:
            async for chunk in chunks:
                yield chunk

    @asynccontextmanager
    async def _open(self, prompt: Prompt, **options: Any) -> AsyncIterator[httpx2.Response]:
        # The SDK would walk through every field of `messages` and `tools`: 60 ms of the event loop for a long
        # conversation. What is in `extra_body` it sends as it is.
        body: dict[str, Any] = {"messages": self._messages(prompt)}
        if prompt.tools:
            body["tools"] = list(prompt.tools)
        try:
            async with self._client.chat.completions.with_streaming_response.create(
                model=self._reference.model,
                messages=[],
                extra_body=body,
                stream=True,
                stream_options={"include_usage": True},
                extra_headers=self._headers,
                **options,
            ) as response:
                yield response.http_response
        except openai.APIStatusError as error:
            raise Refusal(error.status_code, error.body, error.response.headers) from error
        except openai.APITimeoutError as error:
            raise TimedOut from error
        except openai.APIConnectionError as error:
            raise ConnectionLost(has_connected=not isinstance(error.__cause__, httpx2.ConnectError)) from error
        except openai.OpenAIError as error:
            raise ValueError("the SDK could not read the answer") from error

    def _messages(self, prompt: Prompt) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = [{"role": "system", "content": prompt.system}] if prompt.system else []
        for message in prompt.told_messages:
            match message:
                case UserMessage(text=text):
                    messages.append({"role": "user", "content": text})
                case AssistantMessage(text=text, calls=()):
                    # Nothing was said: Gemini refuses an empty message.
                    messages += [{"role": "assistant", "content": text}] if text else []
                case AssistantMessage(text=text, calls=calls):
                    # No content is null here, and only here: Ollama takes null only beside calls.
                    messages.append({"role": "assistant", "content": text or None, "tool_calls": self._calls(calls)})
                case ToolMessage(call_id=call_id, content=content):
                    messages.append({"role": "tool", "tool_call_id": call_id, "content": _text(content)})
        return messages

    def _calls(self, calls: Sequence[CallMade]) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        for call in calls:
            # Servers parse this string, and most fail on anything but an object; Ollama on "" too.
            args = call.args if isinstance(call.args, dict) else {"invalid_arguments": call.args}
            entry = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _text(args)}}
            match call.extra:
                case {"model": self.profile.name, "extra_content": extra_content}:
                    entry["extra_content"] = extra_content
            entries.append(entry)
        if self._reference.provider is Provider.GEMINI and "extra_content" not in entries[0]:
            entries[0]["extra_content"] = UNSIGNED
        return entries

    def _mark(self, call: ToolCall) -> ToolCall:
        """Marks whose extra content it is: after a change of models, OpenAI refuses a message with Gemini's."""
        if call.extra is None:
            return call
        return msgspec.structs.replace(call, extra={"model": self.profile.name, "extra_content": call.extra})


def _text(content: Any) -> str:
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()

"""Chat completions over HTTP: OpenAI, and the servers that imitate it (Ollama, vLLM, llama.cpp, one of Gemini's).

It reads the SDK's raw stream. The SDK's `.stream()` helper puts tool calls together as OpenAI sends them, and fails or
mixes them up with everyone else's (`accumulator.py`). Of a chunk, only what stands in the structs below is looked at:
reasoning is skipped, and `finish_reason` too, since several servers send "stop" or nothing with tool calls.

This module needs the package `openai`; `open_text_model` says so if it is missing.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

import msgspec
import openai
from msgspec import Struct
from openai.types.chat import ChatCompletionChunk

from antiphon.models.base import (
    CallRequested,
    Event,
    ModelError,
    OutputText,
    Prompt,
    StopReason,
    TextProfile,
    TurnComplete,
    Usage,
)
from antiphon.models.providers.accumulator import Calls, Fragment
from antiphon.models.providers.failures import explain
from antiphon.models.providers.references import ModelReference, Provider
from antiphon.tools.call import ToolCall
from antiphon.transcript import AssistantMessage, CallMade, ToolMessage, UserMessage

CONNECT_TIMEOUT_S: Final = 5.0
CHUNK_TIMEOUT_S: Final = 60.0
"""The longest silence of a server; before its first chunk a local one may be loading the model."""

# Gemini 3 refuses a history in which a message's first call has no signature. This value, which Google documents for
# calls that another model made, or nobody (a confirmed one), passes.
UNSIGNED: Final = {"google": {"thought_signature": "skip_thought_signature_validator"}}

_END: Final = object()


class _Delta(Struct, frozen=True):
    content: str | None = None
    tool_calls: list[Fragment] | None = None


class _Choice(Struct, frozen=True):
    delta: _Delta | None = None


class _Tokens(Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(Struct, frozen=True):
    choices: list[_Choice] | None = None
    """Empty in the chunk that counts the tokens."""
    usage: _Tokens | None = None


class OpenAICompatibleModel:
    """Takes the tools of a prompt as the schemas "openai_chat". Holds connections: close it."""

    def __init__(
        self, reference: ModelReference, env: Mapping[str, str], *, chunk_timeout_s: float = CHUNK_TIMEOUT_S
    ) -> None:
        self._reference = reference
        self._endpoint = endpoint = reference.endpoint(env)
        self.profile = TextProfile(str(reference), needs_network=not endpoint.is_loopback)
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.url,
            api_key=endpoint.api_key or "none",
            # The SDK's own retries would hide a rate limit for minutes.
            max_retries=0,
            timeout=openai.Timeout(chunk_timeout_s, connect=CONNECT_TIMEOUT_S),
            # A proxy of the environment is for the world outside; on loopback it would be another machine's loopback.
            http_client=openai.DefaultAsyncHttpxClient(trust_env=not endpoint.is_loopback),
        )
        # The SDK insists on a key, so without one the header is taken out again.
        self._headers = {} if endpoint.api_key else {"Authorization": openai.Omit()}

    async def aclose(self) -> None:
        await self._client.close()

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        calls, usage, is_empty = Calls(), None, True
        try:
            async with aclosing(self._chunks(prompt)) as chunks:
                async for chunk in chunks:
                    is_empty = False
                    usage = chunk.usage or usage
                    delta = chunk.choices[0].delta if chunk.choices else None
                    if delta is None:
                        continue
                    for fragment in delta.tool_calls or ():
                        calls.add(fragment)
                    if delta.content:
                        yield OutputText(delta.content)
        except (openai.OpenAIError, ValueError, RecursionError) as error:
            raise explain(error, self.profile.name, self._endpoint) from error
        if is_empty:
            # A page of another server, or a whole completion from one that cannot stream.
            message = (
                f"{self.profile.name} answered with no stream of chunks. Is {self._endpoint.url} the right address?"
            )
            raise ModelError(message, retryable=False)
        requested = calls.finish()
        for call in requested:
            yield CallRequested(self._mark(call))
        if usage is not None:
            yield Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0)
        yield TurnComplete(StopReason.CALLS if requested else StopReason.DONE)

    async def _chunks(self, prompt: Prompt) -> AsyncGenerator[_Chunk, None]:
        """Asks once more if the connection breaks before anything came: a kept one may have died unnoticed."""
        may_retry = True
        while True:
            try:
                async with await self._open(prompt) as stream:
                    while (chunk := await anext(stream, _END)) is not _END:
                        may_retry = False
                        yield msgspec.convert(chunk, _Chunk, from_attributes=True)
                    return
            except openai.APIConnectionError as error:
                if not may_retry or isinstance(error, openai.APITimeoutError):
                    raise
                may_retry = False

    async def _open(self, prompt: Prompt) -> openai.AsyncStream[ChatCompletionChunk]:
        return await self._client.chat.completions.create(
            model=self._reference.model,
            messages=cast(Any, self._messages(prompt)),
            tools=cast(Any, list(prompt.tools)) if prompt.tools else openai.omit,
            stream=True,
            stream_options={"include_usage": True},
            extra_headers=self._headers,
        )

    def _messages(self, prompt: Prompt) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = [{"role": "system", "content": prompt.system}] if prompt.system else []
        for message in prompt.messages:
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
        if self._reference.provider is Provider.GEMINI and not any("extra_content" in entry for entry in entries):
            entries[0]["extra_content"] = UNSIGNED
        return entries

    def _mark(self, call: ToolCall) -> ToolCall:
        """Says whose the extra content is: OpenAI refuses a message with Gemini's, after a change of models."""
        if call.extra is None:
            return call
        return msgspec.structs.replace(call, extra={"model": self.profile.name, "extra_content": call.extra})


def _text(content: Any) -> str:
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()

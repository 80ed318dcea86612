"""Ollama's own API, answered by any text model: /api/chat, /api/tags, /api/show, /api/pull and /api/version."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from antiphon.models.base import CallRequested, ModelError, Prompt, TextDelta, TextModel
from antiphon.sim.vendors.base import Message
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, ToolMessage, UserMessage
from antiphon.transcript import Message as TranscriptMessage

VERSION: Final = "0.13.5"
MAX_BODY_BYTES: Final = 16 * 1024 * 1024
PULL_STEP_S: Final = 0.05
NDJSON: Final = "application/x-ndjson"
THOUGHT: Final = "The user asks: "
MAX_THOUGHT_CHARS: Final = 100

_GO_FIELD: Final = "json: cannot unmarshal value into Go struct field"
_WORDS: Final = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class Installed:
    capabilities: tuple[str, ...]
    size_bytes: int


INSTALLED: Final[Mapping[str, Installed]] = {
    "qwen3:latest": Installed(("completion", "tools", "thinking"), 5_200_000_000),
    "llama3.2:latest": Installed(("completion", "tools"), 2_000_000_000),
}
LIBRARY: Final[Mapping[str, Installed]] = {
    **INSTALLED,
    "smollm2:135m": Installed(("completion",), 270_000_000),
    "qwen2.5:1.5b": Installed(("completion", "tools"), 986_000_000),
}
"""The models that can be pulled. The one that cannot call tools refuses them, as in Ollama."""


class ApiError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class OllamaApi:
    """One simulated server with its models. All of them answer with the same text model."""

    def __init__(
        self,
        model: TextModel,
        extra_models: frozenset[str] = frozenset(),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._model = model
        self._now = now
        self._models = {**INSTALLED, **{full_name(each): INSTALLED["qwen3:latest"] for each in extra_models}}
        self._calls = count(1)

    def make_app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self._root),
                Route("/api/version", self._version),
                Route("/api/tags", self._tags),
                Route("/api/show", self._show, methods=["POST"]),
                Route("/api/chat", self._chat, methods=["POST"]),
                Route("/api/pull", self._pull, methods=["POST"]),
            ],
            exception_handlers={ApiError: _answer_error, 404: _answer_404},
        )

    async def _root(self, request: Request) -> Response:
        return PlainTextResponse("Ollama is running")

    async def _version(self, request: Request) -> Response:
        return JSONResponse({"version": VERSION})

    async def _tags(self, request: Request) -> Response:
        return JSONResponse({"models": [self._describe(name) for name in self._models]})

    def _describe(self, name: str) -> Message:
        model = self._models[name]
        return {"name": name, "model": name, "size": model.size_bytes, "details": {"format": "gguf"}}

    async def _show(self, request: Request) -> Response:
        body = await _read(request)
        model = self._find(body)
        return JSONResponse({"capabilities": list(model.capabilities), "details": {"format": "gguf"}, "model_info": {}})

    async def _pull(self, request: Request) -> Response:
        body = await _read(request)
        name = full_name(str(body.get("model") or body.get("name") or ""))

        async def lines() -> AsyncIterator[Message]:
            yield {"status": "pulling manifest"}
            if name not in LIBRARY:
                yield {"error": "pull model manifest: file does not exist"}
                return
            size, digest = LIBRARY[name].size_bytes, "sha256:" + "5e" * 32
            step = {"status": f"pulling {digest[7:19]}", "digest": digest, "total": size}
            yield step  # without "completed": Ollama leaves out zeros
            for quarter in range(1, 5):
                await asyncio.sleep(PULL_STEP_S)
                yield {**step, "completed": size * quarter // 4}
            for status in ("verifying sha256 digest", "writing manifest"):
                yield {"status": status}
            self._models[name] = LIBRARY[name]
            yield {"status": "success"}

        return await _stream(lines(), is_stream=body.get("stream", True))

    async def _chat(self, request: Request) -> Response:
        body = await _read(request)
        model, name = self._find(body), full_name(str(body["model"]))
        if body.get("tools") and "tools" not in model.capabilities:
            raise ApiError(400, f"registry.ollama.ai/library/{name} does not support tools")
        if body.get("think") and "thinking" not in model.capabilities:
            raise ApiError(400, f'"{name}" does not support thinking')
        lines = self._answer(str(body["model"]), make_prompt(body), bool(body.get("think")))
        return await _stream(lines, is_stream=body.get("stream", True))

    async def _answer(self, name: str, prompt: Prompt, thinks: bool) -> AsyncIterator[Message]:
        def line(content: str = "", **fields: Any) -> Message:
            at = self._now().isoformat().replace("+00:00", "Z")
            return {"model": name, "created_at": at, "message": {"role": "assistant", "content": content, **fields}}

        asked = next((each.text for each in reversed(prompt.messages) if isinstance(each, UserMessage)), "")
        if thinks:
            yield {**line(thinking=f"{THOUGHT}{asked[:MAX_THOUGHT_CHARS]}"), "done": False}
        words, calls = 0, 0
        try:
            async for event in self._model.reply(prompt):
                match event:
                    case TextDelta(text=text):
                        for piece in _WORDS.findall(text):
                            words += 1
                            yield {**line(piece), "done": False}
                    case CallRequested(call=call):
                        function = {"index": calls, "name": call.name, "arguments": call.args}
                        calls += 1
                        made = {"id": f"call_sim{next(self._calls):05}", "function": function}
                        yield {**line(tool_calls=[made]), "done": False}
        except ModelError as error:
            yield {"error": str(error)}
            return
        counts = {"prompt_eval_count": len(asked.split()) + 1, "eval_count": words + calls}
        durations = {"total_duration": 182_242_375, "load_duration": 41_295_167, "eval_duration": 115_959_084}
        yield {**line(), "done_reason": "stop", "done": True, **durations, **counts}

    def _find(self, body: Message) -> Installed:
        name = str(body.get("model") or "")
        model = self._models.get(full_name(name))
        if model is None:
            raise ApiError(404, f"model '{name}' not found")
        return model


def full_name(name: str) -> str:
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def make_prompt(body: Message) -> Prompt:
    """Makes the prompt of a chat. Raises `ApiError` with Go's words for types that its decoder refuses."""
    messages: list[TranscriptMessage] = []
    system: list[str] = []
    given = [] if body.get("messages") is None else body["messages"]
    if not isinstance(given, list):
        raise ApiError(
            400, "json: cannot unmarshal object into Go struct field ChatRequest.messages of type []api.Message"
        )
    for each in given:
        content, role = (each.get("content"), each.get("role")) if isinstance(each, dict) else (None, None)
        if content is not None and not isinstance(content, str):
            raise ApiError(
                400, "json: cannot unmarshal value into Go struct field Message.messages.content of type string"
            )
        text = content or ""
        match role:
            case "system":
                system.append(text)
            case "user":
                messages.append(UserMessage(text))
            case "assistant":
                messages.append(AssistantMessage(text, tuple(_calls_made(each.get("tool_calls") or ()))))
            case "tool":
                name = str(each.get("tool_name") or each.get("name") or "")
                messages.append(ToolMessage(str(each.get("tool_call_id") or ""), name, _decode(text)))
            case _:
                raise ApiError(
                    400, f'invalid role: {role}, role must be one of ["user", "assistant", "system", "tool"]'
                )
    return Prompt("\n\n".join(system), messages, body.get("tools") or (), Mode.TEXT)


def _calls_made(calls: Any) -> list[CallMade]:
    made: list[CallMade] = []
    for call in calls:
        function = call.get("function") or {}
        if not isinstance(function.get("arguments") or {}, dict):
            raise ApiError(400, f"{_GO_FIELD} ToolCallFunction.arguments of type map")
        made.append(CallMade(str(call.get("id") or ""), str(function.get("name")), function.get("arguments") or {}))
    return made


def _decode(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


async def _read(request: Request) -> Message:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise ApiError(413, "request body too large")
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        raise ApiError(400, "invalid character looking for beginning of value") from None
    if not isinstance(parsed, dict):
        raise ApiError(400, "json: cannot unmarshal array into Go value of type api.ChatRequest")
    return parsed


async def _stream(lines: AsyncIterator[Message], *, is_stream: Any) -> Response:
    if is_stream is not False:
        return StreamingResponse((json.dumps(line) + "\n" async for line in lines), media_type=NDJSON)
    whole: Message = {}
    content, calls = "", list[Any]()
    async for line in lines:
        whole |= line
        said = line.get("message") or {}
        content += said.get("content") or ""
        calls += said.get("tool_calls") or []
    if "message" in whole:
        whole["message"] = {"role": "assistant", "content": content} | ({"tool_calls": calls} if calls else {})
    return JSONResponse(whole, 500 if "error" in whole else 200)


async def _answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return JSONResponse({"error": str(error)}, error.status)


async def _answer_404(request: Request, error: Exception) -> Response:
    return PlainTextResponse("404 page not found", 404)

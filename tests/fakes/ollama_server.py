"""An Ollama server on loopback. It keeps Ollama's rules, and answers chats as it is told.

Its refusals are Ollama's: an unknown model, tools or thoughts asked of a model that has none, and a history that Go
could not decode.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from antiphon.config import Ollama
from antiphon.models.providers.ollama import OllamaModel
from antiphon.models.providers.references import ModelReference, Provider
from tests.fakes.chat_server import Answer, ChatServer, End, Request, refusal

VERSION: Final = "0.13.5"
LIBRARY: Final[Mapping[str, int]] = {"qwen3:latest": 5_200_000_000, "smollm2:135m": 270_000_000}
"""The models that can be pulled, and their sizes."""
NDJSON: Final = {"content-type": "application/x-ndjson"}


@dataclass
class Installed:
    capabilities: frozenset[str] = frozenset({"completion", "tools"})
    size: int = 1_000_000_000


@dataclass
class Rules:
    """What a server has, and how it answers each request."""

    chat: Callable[[Request], Answer]
    models: dict[str, Installed] = field(default_factory=lambda: {"m:latest": Installed()})
    refuses_think: bool = False
    """Some versions refuse even `"think": false` for a model that cannot think."""

    def answer(self, request: Request) -> Answer:
        routes: dict[tuple[str, str], Callable[[Request], Answer]] = {
            ("GET", "/api/version"): lambda _: _whole({"version": VERSION}),
            ("GET", "/api/tags"): self._tags,
            ("POST", "/api/show"): self._show,
            ("POST", "/api/chat"): self._chat,
            ("POST", "/api/pull"): self._pull,
        }
        route = routes.get((request.method, request.path))
        return route(request) if route else refusal(404, "404 page not found", content_type="text/plain")

    def _tags(self, _: Request) -> Answer:
        models = [{"name": name, "model": name, "size": model.size} for name, model in self.models.items()]
        return _whole({"models": models})

    def _show(self, request: Request) -> Answer:
        model = self.models.get(full_name(request.body["model"]))
        if model is None:
            return _no_model(request)
        return _whole({"capabilities": sorted(model.capabilities), "details": {"format": "gguf"}, "model_info": {}})

    def _chat(self, request: Request) -> Answer:
        body = request.body
        model = self.models.get(full_name(body["model"]))
        if model is None:
            return _no_model(request)
        name = full_name(body["model"])
        if body.get("tools") and "tools" not in model.capabilities:
            return refusal(400, {"error": f"registry.ollama.ai/library/{name} does not support tools"})
        asks_to_think = body.get("think") or (self.refuses_think and "think" in body)
        if asks_to_think and "thinking" not in model.capabilities:
            return refusal(400, {"error": f'"{name}" does not support thinking'})
        if problem := _undecodable(body):
            return refusal(400, {"error": problem})
        return self.chat(request)

    def _pull(self, request: Request) -> Answer:
        name = full_name(request.body["model"])
        lines: list[dict[str, Any]] = [{"status": "pulling manifest"}]
        if name not in LIBRARY:
            return ndjson(*lines, {"error": "pull model manifest: file does not exist"})
        size, digest = LIBRARY[name], "sha256:8934d96d3f08982e95922b2b7a2c626a1fe873d7c3b06e8e56d7bc0a1fef9246"
        step = {"status": f"pulling {digest[7:19]}", "digest": digest, "total": size}
        # Ollama leaves out zeros.
        lines += [step, {**step, "completed": size // 2}, {**step, "completed": size}]
        lines += [{"status": "verifying sha256 digest"}, {"status": "writing manifest"}, {"status": "success"}]
        self.models[name] = Installed(size=size)
        return ndjson(*lines)


def full_name(name: str) -> str:
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def line(content: str = "", *, done: bool = False, **fields: Any) -> dict[str, Any]:
    """A line of a chat; `fields` are those of the message."""
    message = {"role": "assistant", "content": content, **fields}
    return {"model": "m", "created_at": "2026-01-01T00:00:00.1Z", "message": message, "done": done}


def last_line(done_reason: str = "stop", **counts: int) -> dict[str, Any]:
    return {**line(done=True), "done_reason": done_reason, "total_duration": 182242375, **counts}


def call(name: str, arguments: Any, id: str | None = None, index: int = 0) -> dict[str, Any]:
    function = {"index": index, "name": name, "arguments": arguments}
    return {"function": function} if id is None else {"id": id, "function": function}


def ndjson(*lines: Any, end: End = End.CLEAN) -> Answer:
    pieces = (each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in lines)
    return Answer(tuple(pieces), headers=NDJSON, end=end)


def chat(*lines: Any, **counts: int) -> Answer:
    """A whole answer: the lines, and the last one."""
    return ndjson(*lines, last_line("stop", **counts))


def _whole(body: Any) -> Answer:
    return refusal(200, body)


def _no_model(request: Request) -> Answer:
    return refusal(404, {"error": f"model '{request.body['model']}' not found"})


def _undecodable(body: Mapping[str, Any]) -> str | None:
    """What Go says of a history whose types are wrong."""
    for message in body["messages"]:
        if message["role"] not in ("system", "user", "assistant", "tool"):
            return "invalid role"
        if not isinstance(message["content"], str):
            return "invalid message content type: <nil>"
        for made in message.get("tool_calls", ()):
            if not isinstance(made["function"]["arguments"], dict):
                return "json: cannot unmarshal string into Go struct field ToolCallFunction.arguments of type map"
    return None


@asynccontextmanager
async def serve_ollama(
    answers: Iterable[Answer] | Callable[[Request], Answer],
    *,
    settings: Ollama | None = None,
    env: Mapping[str, str] | None = None,
    model: str = "m",
    refuses_think: bool = False,
    models: dict[str, Installed] | None = None,
    **options: Any,
) -> AsyncIterator[tuple[ChatServer, OllamaModel]]:
    """Yields a server and one of its models."""
    script = None if callable(answers) else iter(answers)
    rules = Rules(answers if callable(answers) else lambda _: next(script or iter(())), refuses_think=refuses_think)
    rules.models |= models or {}
    async with ChatServer(rules.answer) as server:
        url = server.url.removesuffix("/v1")
        client = OllamaModel(ModelReference(Provider.OLLAMA, model, url), env or {}, settings, **options)
        try:
            yield server, client
        finally:
            await client.aclose()

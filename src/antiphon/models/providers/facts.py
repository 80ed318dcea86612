"""What a model's server tells about the model: whether it has it, and how long its context is.

No two servers agree on where they tell it, and many do not tell at all. Nothing here is an error.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import httpx2
from msgspec import Struct

from antiphon.models.providers.references import Endpoint, ModelReference, Provider

TIMEOUT_S: Final = 10.0
MAX_BYTES: Final = 4 << 20
"""The longest answer that is read. A public server lists some thousand models in one megabyte."""
_CONTEXT_KEYS: Final = ("max_model_len", "context_length", "max_context_length", "context_window", "n_ctx")


class ServerFacts(Struct, frozen=True):
    """None stands for what the server does not tell."""

    has_model: bool | None = None
    context_tokens: int | None = None
    can_think: bool | None = None


async def read_facts(reference: ModelReference, env: Mapping[str, str]) -> ServerFacts:
    """Raises `ModelError` only if the settings are wrong: a missing key, or an invalid address."""
    endpoint = reference.endpoint(env)
    headers = {"Accept-Encoding": "identity"}
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    async with httpx2.AsyncClient(
        headers=headers, timeout=TIMEOUT_S, trust_env=not endpoint.is_loopback, follow_redirects=False
    ) as client:
        if reference.provider is Provider.OLLAMA:
            return await _ask_ollama(client, endpoint, reference.model)
        return await _ask_compatible(client, endpoint, reference.model)


async def _ask_ollama(client: httpx2.AsyncClient, endpoint: Endpoint, model: str) -> ServerFacts:
    status, told = await _fetch(client, "POST", f"{endpoint.url}/api/show", {"model": model})
    if status != 200:
        return ServerFacts(has_model=False if status == 404 else None)
    info, capabilities = _object(told.get("model_info")), told.get("capabilities")
    lengths = [value for key, value in info.items() if key.endswith(".context_length")]
    can_think = "thinking" in capabilities if isinstance(capabilities, list) else None
    return ServerFacts(True, _first_count(lengths), can_think)


async def _ask_compatible(client: httpx2.AsyncClient, endpoint: Endpoint, model: str) -> ServerFacts:
    status, told = await _fetch(client, "GET", f"{endpoint.url}/models")
    listed = told.get("data")
    if status != 200 or not isinstance(listed, list):
        return ServerFacts()
    # Gemini lists "models/NAME".
    entry = next((each for each in map(_object, listed) if str(each.get("id")).endswith(model)), None)
    if entry is None:
        return ServerFacts(has_model=False)
    meta = _object(entry.get("meta"))
    context = _first_count([entry.get(key) for key in _CONTEXT_KEYS])
    if context is None and meta:
        # llama.cpp tells what the model was trained with, and elsewhere what it was started with.
        context = await _ask_llama_cpp(client, endpoint) or _first_count([meta.get("n_ctx_train")])
    return ServerFacts(True, context)


async def _ask_llama_cpp(client: httpx2.AsyncClient, endpoint: Endpoint) -> int | None:
    _, told = await _fetch(client, "GET", f"{endpoint.url.removesuffix('/v1')}/props")
    return _first_count([_object(told.get("default_generation_settings")).get("n_ctx")])


async def _fetch(client: httpx2.AsyncClient, method: str, url: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    """Returns the status and the object of the answer; status 0 if there is no usable answer."""
    read = b""
    try:
        async with client.stream(method, url, json=body) as response:
            async for piece in response.aiter_raw():
                read += piece
                if len(read) > MAX_BYTES:
                    return 0, {}
        told = json.loads(read)
    except (httpx2.HTTPError, ValueError, RecursionError):
        return 0, {}
    return response.status_code, _object(told)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _first_count(values: list[Any]) -> int | None:
    return next((value for value in values if isinstance(value, int) and 0 < value < 1 << 31), None)

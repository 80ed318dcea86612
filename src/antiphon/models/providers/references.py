"""How a model is named in the settings, and where its server is.

`builtin`, `openai:gpt-5`, `openai:http://127.0.0.1:8080/v1#qwen3`, `ollama:qwen3`, `gemini:gemini-3-flash`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from antiphon.errors import AntiphonError
from antiphon.models.base import ModelError

OPENAI_URL: Final = "https://api.openai.com/v1"
GEMINI_URL: Final = "https://generativelanguage.googleapis.com/v1beta/openai"
OLLAMA_HOST_VARIABLE: Final = "OLLAMA_HOST"
OLLAMA_PORT: Final = 11434
FORMS: Final = (
    '"builtin", "openai:NAME", "openai:URL#NAME", "ollama:NAME" or "gemini:NAME", such as "openai:gpt-5", '
    '"openai:http://127.0.0.1:8080/v1#qwen3" or "ollama:qwen3"'
)


class ModelReferenceError(AntiphonError):
    """A text that names no model."""

    code = "model_reference"


class Provider(StrEnum):
    BUILTIN = "builtin"
    OPENAI = "openai"
    OLLAMA = "ollama"
    GEMINI = "gemini"


KEY_VARIABLES: Final[Mapping[Provider, str]] = {
    Provider.OPENAI: "OPENAI_API_KEY",
    Provider.OLLAMA: "OLLAMA_API_KEY",
    Provider.GEMINI: "GEMINI_API_KEY",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model's server is, and what opens it."""

    url: str
    """Up to and without `/chat/completions`."""
    key_variable: str
    """Where the key comes from, for messages."""
    api_key: str | None = field(repr=False)

    @property
    def is_loopback(self) -> bool:
        return _is_loopback(urlsplit(self.url).hostname or "")


@dataclass(frozen=True, slots=True)
class ModelReference:
    """Its text is what the settings say."""

    provider: Provider
    model: str = ""
    url: str | None = None
    """Only where the settings name one."""

    def __str__(self) -> str:
        if self.provider is Provider.BUILTIN:
            return str(self.provider)
        return f"{self.provider}:{self.url}#{self.model}" if self.url else f"{self.provider}:{self.model}"

    def endpoint(self, env: Mapping[str, str]) -> Endpoint:
        """The server of any model but the built-in one, with its key from the environment.

        Raises `ModelError` if a server that is known to want a key would get none.
        """
        variable = KEY_VARIABLES[self.provider]
        key = env.get(variable, "").strip() or None
        if key is not None and not (key.isascii() and key.isprintable()):
            raise ModelError(f"{variable} holds characters that no API key has. Set it again.", retryable=False)
        if key is None and self.url is None and self.provider is not Provider.OLLAMA:
            raise ModelError(f"{self} needs an API key. Set {variable}.", retryable=False)
        return Endpoint(self.url or _default_url(self.provider, env), variable, key)


def parse(text: str) -> ModelReference:
    """Raises `ModelReferenceError`."""
    if text == Provider.BUILTIN:
        return ModelReference(Provider.BUILTIN)
    name, separator, rest = text.partition(":")
    if not separator or name not in KEY_VARIABLES:
        raise ModelReferenceError(f'there is no model "{text}". Write {FORMS}.')
    provider = Provider(name)
    url, model = None, rest
    if "://" in rest:
        if provider is not Provider.OPENAI:
            raise ModelReferenceError(f'"{name}:" takes no address. Write "openai:URL#NAME" for a server of your own.')
        url, _, model = rest.partition("#")
        _check_url(url)
    if not model:
        raise ModelReferenceError(f'"{text}" does not say which model. {_completion(provider, url)}')
    if not model.isprintable() or " " in model:
        raise ModelReferenceError(f"{model!r} is no name of a model: it has blanks or control characters in it.")
    return ModelReference(provider, model, url.rstrip("/") if url else None)


def _completion(provider: Provider, url: str | None) -> str:
    return f'Write "{provider}:{url}#NAME".' if url else f'Write "{provider}:NAME".'


def _check_url(url: str) -> None:
    """The address itself is left out of the messages that are about a secret in it."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises for a port that is no number
    except ValueError as error:
        raise ModelReferenceError(f'"{url}" is no address of a server: {error}.') from error
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", url):
        raise ModelReferenceError(
            f'"{url}" is no address of a server. It must start with http:// or https:// and a host.'
        )
    if "@" in parts.netloc or parts.query:
        variable = KEY_VARIABLES[Provider.OPENAI]
        raise ModelReferenceError(
            f"the address of a model holds a user or a query. Leave it out; a key belongs in {variable}."
        )


def _default_url(provider: Provider, env: Mapping[str, str]) -> str:
    if provider is Provider.OLLAMA:
        return _ollama_url(env.get(OLLAMA_HOST_VARIABLE, ""))
    return GEMINI_URL if provider is Provider.GEMINI else OPENAI_URL


def _ollama_url(host: str) -> str:
    """`OLLAMA_HOST` as Ollama's own client reads it: a host, a port, both, or a URL."""
    host = host.strip().rstrip("/")
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        port = parts.port
    except ValueError as error:
        raise ModelError(
            f"{OLLAMA_HOST_VARIABLE} is {host!r}, which is no address: {error}.", retryable=False
        ) from error
    name = parts.hostname or "127.0.0.1"
    # The variable is also what the server listens on: on all addresses means on this machine.
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)
    bracketed = f"[{name}]" if ":" in name else name
    default_port = f":{OLLAMA_PORT}" if "://" not in host else ""
    return f"{parts.scheme}://{bracketed}{f':{port}' if port else default_port}{parts.path}/v1"


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False

"""How a model is named in the settings, and where its server is.

Text models: `builtin`, `openai:gpt-5`, `openai:http://127.0.0.1:8080/v1#qwen3`, `ollama:qwen3`,
`ollama:http://box:11434#qwen3`, `gemini:gemini-3-flash`.
Voice models: `gemini-live:gemini-3.8-live`, `openai-realtime:gpt-realtime-2`, `azure-realtime:https://….azure.com#mine`.
Image models: `openai:gpt-image-2.5-flare`, `openai:http://127.0.0.1:8080/v1#flux`, `gemini:gemini-3.1-flash-image`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from antiphon.errors import AntiphonError
from antiphon.models.base import ModelError
from antiphon.security.addresses import OPENAI_KEY, OPENAI_URL, AddressError, is_own, leads_here, parse_place, read_key

GEMINI_HOST: Final = "https://generativelanguage.googleapis.com"
GEMINI_URL: Final = f"{GEMINI_HOST}/v1beta/openai"
OLLAMA_HOST_VARIABLE: Final = "OLLAMA_HOST"
OLLAMA_PORT: Final = 11434
FORMS: Final = (
    '"builtin", "openai:NAME", "openai:URL#NAME", "ollama:NAME", "ollama:URL#NAME" or "gemini:NAME", such as '
    '"openai:gpt-5", "openai:http://127.0.0.1:8080/v1#qwen3" or "ollama:qwen3"'
)
VOICE_FORMS: Final = (
    '"cascade", "gemini-live:NAME", "openai-realtime:NAME", "azure-realtime:URL#DEPLOYMENT" or "none", such as '
    '"gemini-live:gemini-3.8-live" or "openai-realtime:gpt-realtime-2"'
)
IMAGE_FORMS: Final = (
    '"openai:NAME", "openai:URL#NAME", "gemini:NAME" or "", such as "openai:gpt-image-2.5-flare" or '
    '"openai:http://127.0.0.1:8080/v1#flux"'
)
CASCADE: Final = "cascade"
NO_VOICE: Final = "none"


class ModelReferenceError(AntiphonError):
    """The text does not name a model."""

    code = "model_reference"


class Provider(StrEnum):
    BUILTIN = "builtin"
    OPENAI = "openai"
    OLLAMA = "ollama"
    GEMINI = "gemini"
    GEMINI_LIVE = "gemini-live"
    OPENAI_REALTIME = "openai-realtime"
    AZURE_REALTIME = "azure-realtime"


TEXT_PROVIDERS: Final = (Provider.OPENAI, Provider.OLLAMA, Provider.GEMINI)
IMAGE_PROVIDERS: Final = (Provider.OPENAI, Provider.GEMINI)
VOICE_PROVIDERS: Final = (Provider.GEMINI_LIVE, Provider.OPENAI_REALTIME, Provider.AZURE_REALTIME)

KEY_VARIABLES: Final[Mapping[Provider, str]] = {
    Provider.OPENAI: OPENAI_KEY,
    Provider.OLLAMA: "OLLAMA_API_KEY",
    Provider.GEMINI: "GEMINI_API_KEY",
    Provider.GEMINI_LIVE: "GEMINI_API_KEY",
    Provider.OPENAI_REALTIME: OPENAI_KEY,
    Provider.AZURE_REALTIME: "AZURE_OPENAI_API_KEY",
}
DEFAULT_URLS: Final[Mapping[Provider, str]] = {
    Provider.OPENAI: OPENAI_URL,
    Provider.GEMINI: GEMINI_URL,
    Provider.GEMINI_LIVE: GEMINI_HOST,
    Provider.OPENAI_REALTIME: OPENAI_URL,
}

CONTEXT_TOKENS: Final = (
    (Provider.GEMINI, "gemini-", 1_048_576),
    (Provider.OPENAI, "gpt-5", 400_000),
    (Provider.OPENAI, "gpt-4.1", 1_047_576),
    (Provider.OPENAI, "gpt-4o", 128_000),
    (Provider.OPENAI, "o3", 200_000),
    (Provider.OPENAI, "o4", 200_000),
)
"""The contexts of the vendors' own models, by the beginning of their names."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a model's server, and its key."""

    url: str
    """The address without the path of a method, such as `/chat/completions`, `/realtime` or Ollama's `/api`."""
    key_variable: str
    """Where the key comes from, for messages."""
    api_key: str | None = field(repr=False)

    @property
    def is_loopback(self) -> bool:
        return leads_here(self.url)

    @property
    def is_own(self) -> bool:
        """Whether requests cost nothing: the server is on this machine or in its network."""
        return is_own(self.url)


@dataclass(frozen=True, slots=True)
class ModelReference:
    """A model as named in the settings; `str` gives that name."""

    provider: Provider
    model: str = ""
    url: str | None = None
    """Only where the settings name one."""

    def __str__(self) -> str:
        if self.provider is Provider.BUILTIN:
            return str(self.provider)
        return f"{self.provider}:{self.url}#{self.model}" if self.url else f"{self.provider}:{self.model}"

    @property
    def public_name(self) -> str:
        """The name without the address of its server, which clients need not know."""
        return f"{self.provider}:{self.model}" if self.model else str(self.provider)

    def endpoint(self, env: Mapping[str, str]) -> Endpoint:
        """Returns the server of any model except the built-in one, with its key from the environment.

        Raises `ModelError` if the key is missing for a server that is known to require one.
        """
        variable = KEY_VARIABLES[self.provider]
        try:
            key = read_key(env, variable)
        except AddressError as error:
            raise ModelError(str(error), retryable=False) from error
        is_keyless = self.provider is Provider.OLLAMA or (
            self.url is not None and (self.provider is not Provider.AZURE_REALTIME or leads_here(self.url))
        )
        if key is None and not is_keyless:
            raise ModelError(f"{self} needs an API key. Set {variable}.", retryable=False)
        return Endpoint(self.url or _default_url(self.provider, env), variable, key)


def known_context_tokens(reference: ModelReference) -> int | None:
    """Returns the context of a vendor's model; None if it is not known, as on other servers, whatever their name."""
    known = CONTEXT_TOKENS if reference.url is None else ()
    return next(
        (tokens for owner, name, tokens in known if owner is reference.provider and reference.model.startswith(name)),
        None,
    )


def parse(text: str) -> ModelReference:
    """Parses the name of a text model. Raises `ModelReferenceError`."""
    if text == Provider.BUILTIN:
        return ModelReference(Provider.BUILTIN)
    name = text.partition(":")[0]
    if name in VOICE_PROVIDERS:
        raise ModelReferenceError(f'"{text}" is a model for voice. Set model.voice to it, and model.text to {FORMS}.')
    if name == Provider.GEMINI and "://" in text:
        raise ModelReferenceError(f'"{name}:" takes no address. Write "openai:URL#NAME" for a server of your own.')
    return _parse(text, TEXT_PROVIDERS, FORMS)


def parse_voice(text: str) -> ModelReference | None:
    """Parses `model.voice`; None for the cascade, and for no voice at all. Raises `ModelReferenceError`."""
    if text in (CASCADE, NO_VOICE):
        return None
    name = text.partition(":")[0]
    if name == Provider.BUILTIN or name in TEXT_PROVIDERS:
        hint = 'Set model.text to it, and model.voice to "cascade", which listens and speaks for any text model.'
        raise ModelReferenceError(f'"{text}" is a model for text. {hint}')
    return _parse(text, VOICE_PROVIDERS, VOICE_FORMS)


def parse_images(text: str) -> ModelReference | None:
    """Parses `images.model`; None for no model. Raises `ModelReferenceError`."""
    try:
        return _parse(text, IMAGE_PROVIDERS, IMAGE_FORMS) if text else None
    except ModelReferenceError as error:
        raise ModelReferenceError(f"images.model: {error}") from error


def _parse(text: str, providers: Collection[Provider], forms: str) -> ModelReference:
    name, separator, rest = text.partition(":")
    if not separator or name not in providers:
        raise ModelReferenceError(f'there is no model "{text}". Write {forms}.')
    provider = Provider(name)
    try:
        url, model = parse_place(rest)
    except AddressError as error:
        raise ModelReferenceError(str(error)) from error
    reference = ModelReference(provider, model or "NAME", url)
    if not model:
        raise ModelReferenceError(f'"{text}" does not say which model. Write "{reference}".')
    if url is None and provider is Provider.AZURE_REALTIME:
        raise ModelReferenceError(f'"{text}" does not say where. Write "azure-realtime:https://RESOURCE#{model}".')
    if provider is Provider.OLLAMA and url is not None and url.endswith(("/v1", "/api")):
        shorter = ModelReference(provider, model, url.rpartition("/")[0])
        raise ModelReferenceError(f'"{text}" has more than the address of the server. Write "{shorter}".')
    return reference


def _default_url(provider: Provider, env: Mapping[str, str]) -> str:
    return _ollama_url(env.get(OLLAMA_HOST_VARIABLE, "")) if provider is Provider.OLLAMA else DEFAULT_URLS[provider]


def _ollama_url(host: str) -> str:
    """Reads `OLLAMA_HOST` as Ollama's own client does: a host, a port, both, or a URL."""
    host = host.strip().rstrip("/")
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        port = parts.port
    except ValueError as error:
        raise ModelError(
            f"{OLLAMA_HOST_VARIABLE} is {host!r}, which is not an address: {error}.", retryable=False
        ) from error
    name = parts.hostname or "127.0.0.1"
    # Ollama's server uses the same variable, where a wildcard address means that it is on this machine.
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)
    bracketed = f"[{name}]" if ":" in name else name
    default_port = f":{OLLAMA_PORT}" if "://" not in host else ""
    return f"{parts.scheme}://{bracketed}{f':{port}' if port else default_port}{parts.path}"

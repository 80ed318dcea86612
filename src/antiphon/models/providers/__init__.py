"""Models of providers, behind the interfaces of `models/`. Each file implements one wire format."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from antiphon.config import Ollama
from antiphon.models.base import ModelError, TextModel
from antiphon.models.providers.references import ModelReference, Provider


class OpenTextModel(TextModel, Protocol):
    """A text model that holds connections: close it."""

    async def aclose(self) -> None: ...


def open_text_model(reference: ModelReference, env: Mapping[str, str], ollama: Ollama | None = None) -> OpenTextModel:
    """Opens any model except the built-in one, without connecting yet. The caller closes it.

    Raises `ModelError` if its package or its key is missing. Loads the package, which takes a good part of a second:
    call it when a process starts.
    """
    if reference.provider is Provider.OLLAMA:
        with needing(reference, package="httpx2", extra="ollama"):
            from antiphon.models.providers.ollama import OllamaModel
        return OllamaModel(reference, env, ollama)
    with needing(reference, package="openai", extra="openai"):
        from antiphon.models.providers.openai_compatible import OpenAICompatibleModel
    return OpenAICompatibleModel(reference, env)


@contextmanager
def needing(reference: ModelReference, *, package: str, extra: str) -> Iterator[None]:
    """Raises `ModelError` if what is imported within needs a package that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        message = f"{reference} needs a package that is not installed. Run: pip install 'antiphon[{extra}]'"
        raise ModelError(message, retryable=False) from error

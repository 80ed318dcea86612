"""Models of providers, behind the interfaces of `models/`. Each file implements one wire format."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from antiphon.models.base import ModelError
from antiphon.models.providers.references import ModelReference

if TYPE_CHECKING:
    from antiphon.models.providers.openai_compatible import OpenAICompatibleModel


def open_text_model(reference: ModelReference, env: Mapping[str, str]) -> "OpenAICompatibleModel":
    """Opens any model except the built-in one, without connecting yet. The caller closes it.

    Raises `ModelError` if its package or its key is missing. Loads the package, which takes a good part of a second:
    call it when a process starts.
    """
    try:
        from antiphon.models.providers.openai_compatible import OpenAICompatibleModel
    except ModuleNotFoundError as error:
        if error.name != "openai":
            raise
        message = f"{reference} needs a package that is not installed. Run: pip install 'antiphon[openai]'"
        raise ModelError(message, retryable=False) from error
    return OpenAICompatibleModel(reference, env)

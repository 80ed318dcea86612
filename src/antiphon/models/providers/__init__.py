"""Models of providers, behind the interfaces of `models/`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Final, Protocol

from antiphon.config import Model, Ollama
from antiphon.models.base import ModelError, TextModel
from antiphon.models.live import LiveProfile, ModelFactory
from antiphon.models.providers.references import ModelReference, Provider
from antiphon.models.unavailable import UnavailableModel

SOUND_PACKAGES: Final = ("numpy", "soxr")
"""What changes the rate of audio. Every model that hears or speaks needs them."""


class OpenTextModel(TextModel, Protocol):
    """A text model that holds connections: close it."""

    async def aclose(self) -> None: ...


def open_text_model(reference: ModelReference, env: Mapping[str, str], ollama: Ollama | None = None) -> OpenTextModel:
    """Opens any model except the built-in one, without connecting yet. The caller closes it.

    Raises `ModelError` if its package or its key is missing. Loads the package, which takes a good part of a second:
    call it when a process starts.
    """
    if reference.provider is Provider.OLLAMA:
        with explain_missing_package(reference, package="httpx2", extra="ollama"):
            from antiphon.models.providers.ollama import OllamaModel
        return OllamaModel(reference, env, ollama)
    with explain_missing_package(reference, package="openai", extra="openai"):
        from antiphon.models.providers.openai_compatible import OpenAICompatibleModel
    return OpenAICompatibleModel(reference, env)


def open_live_model(
    reference: ModelReference,
    env: Mapping[str, str],
    settings: Model,
    voice: str | None = None,
    *,
    needs_voice: bool = True,
) -> tuple[ModelFactory, ModelError | None]:
    """Returns the factory of a model that hears and speaks, and what is wrong with it: its key is missing. Then each
    of its models says so when it is connected. Raises `ModelError` if a package is missing, or if the model has no such
    voice and needs it.

    Loads the package, which takes a good part of a second: call it when a process starts.
    """
    key, problem = None, None
    try:
        key = reference.endpoint(env).api_key
    except ModelError as error:
        problem = error
    factory = _live_factory(reference, key, settings)
    if voice is not None:
        factory = replace(factory, profile=_with_voice(factory.profile, voice, is_needed=needs_voice))
    if problem is None:
        return factory, None
    return ModelFactory(factory.profile, partial(UnavailableModel, factory.profile, problem)), problem


def _with_voice(profile: LiveProfile, voice: str, *, is_needed: bool) -> LiveProfile:
    """Makes a voice of the model the default one. Raises `ModelError` if it has no such voice and needs it."""
    others = [name for name in profile.voices if name.lower() != voice.lower()]
    if len(others) == len(profile.voices) and not is_needed:
        return profile
    if len(others) == len(profile.voices):
        nearest = get_close_matches(voice, profile.voices, n=1, cutoff=0.0)[0]
        message = f'{profile.name} has no voice "{voice}", which speech.voice names. The nearest is "{nearest}".'
        raise ModelError(message, retryable=False)
    (known,) = set(profile.voices) - set(others)
    return replace(profile, voices=(known, *others))


def _live_factory(reference: ModelReference, key: str | None, settings: Model) -> ModelFactory:
    if reference.provider is Provider.GEMINI_LIVE:
        with explain_missing_package(reference, package="google", extra="gemini"):
            from antiphon.models.providers.gemini_live import gemini_factory
        return gemini_factory(reference.model, reference.url, key)
    with explain_missing_package(reference, package="openai", extra="realtime"):
        from antiphon.models.providers.openai_realtime import azure_endpoint, openai_endpoint, realtime_factory
        from antiphon.models.providers.realtime_profiles import DEFAULT_TRANSCRIPTION, RealtimeOptions, TurnDetection

    is_azure = reference.provider is Provider.AZURE_REALTIME
    # On Azure, a model for transcripts is a deployment that only its owner can name.
    usual = None if is_azure else DEFAULT_TRANSCRIPTION
    options = RealtimeOptions(
        transcription=settings.transcription or usual,
        turn_detection=TurnDetection(settings.turn_detection),
        reasoning_effort=settings.reasoning_effort or None,
    )
    if is_azure:
        assert reference.url is not None
        return realtime_factory(azure_endpoint(reference.model, reference.url, key), options)
    return realtime_factory(openai_endpoint(reference.model, reference.url, key), options)


@contextmanager
def explain_missing_package(reference: ModelReference, *, package: str, extra: str) -> Iterator[None]:
    """Raises `ModelError` if what is imported within needs a package that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in (package, *SOUND_PACKAGES):
            raise
        message = f"{reference} needs a package that is not installed. Run: pip install 'antiphon[{extra}]'"
        raise ModelError(message, retryable=False) from error

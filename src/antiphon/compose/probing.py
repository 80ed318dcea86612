"""Tests a model of the settings: a text model with the prompt and the tools of this project, a live model by a call."""

import asyncio
import os
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import msgspec

from antiphon.compose.app import load_tools
from antiphon.compose.rungs import best_text, text_rungs, voice_rungs
from antiphon.compose.warming import make_prompt
from antiphon.config import Settings
from antiphon.errors import AntiphonError
from antiphon.models.probe.report import Finding, Mark, Report, Tell
from antiphon.models.providers import open_live_model, open_text_model
from antiphon.models.providers.references import (
    FORMS,
    VOICE_PROVIDERS,
    ModelReference,
    ModelReferenceError,
    Provider,
    parse,
    parse_voice,
)
from antiphon.prompts.composer import Composer

if TYPE_CHECKING:
    from antiphon.speech.base import Synthesizer

LIVE_FORMS: Final = '"gemini-live:NAME", "openai-realtime:NAME" or "azure-realtime:URL#DEPLOYMENT"'
LIVE_LIMIT_S: Final = 120.0
"""The longest time for an answer of a live model, which must answer at once to be of use in a call."""


def configured_models(settings: Settings) -> list[str]:
    """Returns the names of the models that the settings choose: for text, and those for voice that are a provider's."""
    voices = [name for name in voice_rungs(settings).values() if parse_voice(name) is not None]
    # The offline assistant, if it is only the fallback, needs no test.
    fallbacks = [name for name in text_rungs(settings).values() if name != Provider.BUILTIN]
    return list(dict.fromkeys([best_text(settings), *fallbacks, *voices]))


def _best_live_voice(settings: Settings) -> ModelReference | None:
    """Returns the voice model whose voice `speech.voice` names; None if that is the speech engine."""
    rungs = voice_rungs(settings)
    return parse_voice(rungs[max(rungs)]) if rungs else None


async def probe_model(settings: Settings, name: str, *, tell: Tell, limit_s: float) -> Report:
    """Tests the model of this name, as the settings would name it. `limit_s` is the time for each answer.

    Raises `AntiphonError` if the name, the key or the tools of the project are wrong.
    """
    provider = name.partition(":")[0]
    if provider not in tuple(Provider):
        raise ModelReferenceError(f'there is no model "{name}". Write {FORMS}, or for voice {LIVE_FORMS}.')
    if provider in VOICE_PROVIDERS:
        reference = parse_voice(name)
        assert reference is not None
        return await _probe_live(settings, reference, tell=tell, limit_s=min(limit_s, LIVE_LIMIT_S))
    reference = parse(name)
    if reference.provider is Provider.BUILTIN:
        return Report(name, True, (Finding("answers", Mark.GOOD, "yes, it is part of this program"),))
    return await _probe_text(settings, reference, tell=tell, limit_s=limit_s)


async def _probe_text(settings: Settings, reference: ModelReference, *, tell: Tell, limit_s: float) -> Report:
    snapshot, composer = load_tools(settings).snapshot(), Composer(settings.assistant)
    model = open_text_model(reference, os.environ, settings.ollama)
    try:
        # Loaded with the model's own package.
        from antiphon.models.probe.text import TextProbe
        from antiphon.models.providers.facts import read_facts

        tell("Asking the server about the model")
        facts = await read_facts(reference, os.environ)
        is_ollama = reference.provider is Provider.OLLAMA
        if is_ollama and facts.context_tokens is not None:
            facts = msgspec.structs.replace(facts, context_tokens=min(facts.context_tokens, settings.ollama.num_ctx))
        return await TextProbe(
            model,
            facts,
            lambda text: make_prompt(model, composer, snapshot, text),
            tell=tell,
            limit_s=limit_s,
            is_ollama=is_ollama,
            nonce=uuid4().hex,
        ).run()
    finally:
        await model.aclose()


async def _probe_live(settings: Settings, reference: ModelReference, *, tell: Tell, limit_s: float) -> Report:
    from antiphon.compose.voice import chosen_voice
    from antiphon.models.probe.live import LiveProbe

    voice = chosen_voice(settings) if reference == _best_live_voice(settings) else None
    factory, problem = await asyncio.to_thread(open_live_model, reference, os.environ, settings.model, voice)
    if problem is not None:
        raise problem
    tell("Preparing a spoken question")
    question, why_not = await _speak_question(settings)
    probe = LiveProbe(factory, question=question, why_no_question=why_not, tell=tell, limit_s=limit_s)
    return msgspec.structs.replace(await probe.run(), model=str(reference))


async def _speak_question(settings: Settings) -> tuple[bytes | None, str]:
    """Returns a question in the voice of the settings at the rate of a microphone, or why it cannot be spoken."""
    from antiphon.audio.resample import resample
    from antiphon.compose.voice import open_synthesizer, without_chosen_voice
    from antiphon.models.probe.questions import SPOKEN_QUESTION
    from antiphon.sound_format import MICROPHONE_HZ
    from antiphon.speech.workers import Workers

    if _best_live_voice(settings) is not None:
        settings = without_chosen_voice(settings)
    workers, synthesizer = Workers(threads=1), None
    try:
        synthesizer = await open_synthesizer(settings, workers)
        if synthesizer is None:
            return None, "speech.tts is none, so there is no voice to ask with."
        return resample(await _synthesize(synthesizer, SPOKEN_QUESTION), synthesizer.output_hz, MICROPHONE_HZ), ""
    except AntiphonError as error:
        return None, str(error)
    finally:
        if synthesizer is not None:
            await synthesizer.aclose()
        await workers.aclose()


async def _synthesize(synthesizer: "Synthesizer", text: str) -> bytes:
    return b"".join([sound.pcm async for sound in synthesizer.speak(text)])

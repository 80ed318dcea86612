"""Tests a model of the settings with the prompt and the tools of this project."""

import os
from uuid import uuid4

import msgspec

from antiphon.compose.app import load_tools
from antiphon.compose.warming import make_prompt
from antiphon.config import Settings
from antiphon.models.probe.report import Finding, Mark, Report, Tell
from antiphon.models.probe.text import TextProbe
from antiphon.models.providers import open_text_model
from antiphon.models.providers.references import Provider, parse
from antiphon.prompts.composer import Composer


async def probe_model(settings: Settings, name: str, *, tell: Tell, limit_s: float) -> Report:
    """Tests the model of this name, as the settings would name it. `limit_s` is the time for each answer.

    Raises `AntiphonError` if the name, the key or the tools of the project are wrong.
    """
    reference = parse(name)
    if reference.provider is Provider.BUILTIN:
        return Report(name, True, (Finding("answers", Mark.GOOD, "yes, it is part of this program"),))
    snapshot, composer = load_tools(settings).snapshot(), Composer(settings.assistant)
    model = open_text_model(reference, os.environ, settings.ollama)
    try:
        # Loaded with the model's own package.
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

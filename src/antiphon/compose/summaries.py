"""The model that summarises conversations, by the settings."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from antiphon.config import Settings
from antiphon.continuity.context import ContextPlanner, Summarize
from antiphon.continuity.summarizer import ExtractiveSummarizer, ModelSummarizer
from antiphon.models.base import TextModel
from antiphon.models.builtin import BuiltinModel
from antiphon.models.providers import open_text_model
from antiphon.models.providers.references import Provider, parse


@asynccontextmanager
async def open_summarizer(settings: Settings, model: TextModel) -> AsyncIterator[ModelSummarizer | None]:
    """Opens the model that writes summaries; None if they are extractive, since that model is the offline assistant.

    `model` is the best text model of the server, which also summarises unless the settings name another one. Raises
    `ModelError` if a package or a key is missing.
    """
    if not settings.continuity.summary_model:
        yield None if isinstance(model, BuiltinModel) else ModelSummarizer(model)
        return
    reference = parse(settings.continuity.summary_model)
    if reference.provider is Provider.BUILTIN:
        yield None
        return
    opened = open_text_model(reference, os.environ, settings.ollama)
    try:
        yield ModelSummarizer(opened)
    finally:
        await opened.aclose()


def make_planner(summarizer: ModelSummarizer | None, summarize: Summarize = "always") -> ContextPlanner:
    return ContextPlanner(summarizer or ExtractiveSummarizer(), summarize=summarize)

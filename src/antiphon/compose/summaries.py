"""The model that summarises conversations, by the settings."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from antiphon.compose.rungs import best_text
from antiphon.config import Settings
from antiphon.continuity.context import ContextPlanner, Summarize
from antiphon.continuity.summarizer import ExtractiveSummarizer, ModelSummarizer
from antiphon.models.base import TextModel
from antiphon.models.providers import open_text_model
from antiphon.models.providers.references import Provider, parse


@asynccontextmanager
async def open_summarizer(
    settings: Settings, model: TextModel, summary_model: str = ""
) -> AsyncIterator[ModelSummarizer | None]:
    """Opens the model that writes summaries; None if they are extractive, since that model is the offline assistant.

    `model` is the text model of the settings, which also summarises unless `summary_model` names another one. Raises
    `ModelError` if a package or a key is missing.
    """
    if not summary_model:
        is_offline = parse(best_text(settings)).provider is Provider.BUILTIN
        yield None if is_offline else ModelSummarizer(model)
        return
    reference = parse(summary_model)
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

"""Summarises a part of a conversation, by a model or without one."""

from collections.abc import Sequence
from typing import Final, Protocol

from antiphon.continuity.summary import extract
from antiphon.transcript import Message

UNAVAILABLE: Final = "Summary unavailable."
"""The summary of a call of which none could be made."""


class Summarizer(Protocol):
    async def summarize(self, messages: Sequence[Message]) -> str:
        """Returns a few sentences; an empty text if nothing was said. Raises `ModelError`."""
        ...


class ExtractiveSummarizer:
    """Summarises without a model."""

    async def summarize(self, messages: Sequence[Message]) -> str:
        return extract(messages)

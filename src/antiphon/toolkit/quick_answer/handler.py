"""Looks up a short answer about a thing, a person or a word."""

from typing import Final

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import Citation, ToolResult, fail, ok
from antiphon.words.reported import shorten, split_sentences

SPOKEN_SENTENCES: Final = 2
SPOKEN_CHARS: Final = 300


async def execute(args: Args, context: Context) -> ToolResult:
    query = " ".join(args["query"].split())
    found = await context.web.answer(query)
    if found is None:
        return fail(
            ErrorType.NOT_FOUND,
            f"I couldn't find a short answer about {query}.",
            suggestion="Try web_search, or ask the user for other words.",
        )
    brief = shorten(" ".join(split_sentences(found.text)[:SPOKEN_SENTENCES]), SPOKEN_CHARS)
    return ok(
        {"title": found.title, "answer": found.text, "source": found.source, "url": found.url},
        spoken=f"According to {found.source}: {brief}",
        citations=[Citation(found.url or found.source, f"{found.title} ({found.source})", found.url)],
    )

"""Searches the web."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from antiphon.tools.capabilities.web import SearchResult
from antiphon.tools.context import Args, Context
from antiphon.tools.result import Citation, ToolResult, ok
from antiphon.words.reported import shorten

SPOKEN_CHARS: Final = 200


async def execute(args: Args, context: Context) -> ToolResult:
    query = " ".join(args["query"].split())
    results = await context.web.search(query, args["top_k"])
    return ok(
        {
            "query": query,
            "results": [{"title": each.title, "url": each.url, "snippet": each.snippet} for each in results],
        },
        spoken=_speak(results),
        citations=[Citation(each.url, each.title, each.url) for each in results],
    )


def _speak(results: Sequence[SearchResult]) -> str:
    if not results:
        return "I found nothing about that on the web."
    best = results[0]
    site = (urlsplit(best.url).hostname or "").removeprefix("www.")
    found = shorten(best.snippet or best.title, SPOKEN_CHARS)
    return f"According to {site}: {found}"

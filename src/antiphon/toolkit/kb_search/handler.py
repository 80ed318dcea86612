"""Searches the knowledge base."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from antiphon.tools.capabilities.kb import Answer, Evidence, Found
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import Citation, ToolResult, fail, ok

DEFAULT_FIELDS: Final = ("snippet", "metadata", "url")
TEXT_FIELDS: Final = frozenset({"snippet", "full_text"})
SPOKEN_TITLES: Final = 3
_QUESTION: Final = re.compile(
    r"\W*(?:(?:and|so|ok|okay|please|hey|tell me|do you know|can you tell me)\W+)*"
    r"(?:what|who|whom|whose|when|where|which|why|how|is|are|was|were|do|does|did|can|could|should|may|must|has|have|"
    r"will|would)\b|.*\?\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
"""A text that asks something. Finding the sentence that answers takes longer than the search itself."""


async def execute(args: Args, context: Context) -> ToolResult:
    filters = args.get("filters", {})
    dates = filters.get("date_range", {})
    start, end = (_moment(dates.get(name)) for name in ("start", "end"))
    if start is not None and end is not None and start > end:
        return fail(
            ErrorType.VALIDATION,
            "The period ends before it starts.",
            suggestion="Give a start in date_range that is not after its end.",
        )
    query = args["query"]
    begun = context.clock.monotonic()
    found = await context.kb.search(
        query,
        namespace=args.get("namespace"),
        type=filters.get("type"),
        tags=filters.get("tags", ()),
        start=start,
        end=end,
        top_k=args["top_k"],
    )
    took_ms = round((context.clock.monotonic() - begun) * 1000, 1)
    asks = _QUESTION.match(query) is not None
    answer = await context.kb.answer(query, found) if asks else None
    fields = _fields(args)
    data = {
        "results": [await _describe(evidence, fields, context) for evidence in found.results],
        "query_time_ms": took_ms,
        "clamped": bool(context.clamped),
        "search": "hybrid" if found.by_meaning else "words",
        "answer": None if answer is None else _told(answer),
    }
    citations = [Citation(evidence.id, evidence.title, evidence.url) for evidence in _cited(found, answer, fields)]
    return ok(data, spoken=_speak(found, answer, asks=asks), citations=citations)


def _cited(found: Found, answer: Answer | None, fields: set[str]) -> Sequence[Evidence]:
    """Returns the sources of an answer that is made of this result: not of records whose text it does not have."""
    if answer is not None:
        return [answer.evidence]
    return found.results if fields & TEXT_FIELDS else ()


def _fields(args: Args) -> set[str]:
    fields = set(args.get("return_fields", DEFAULT_FIELDS))
    return fields if args["include_snippets"] else fields - {"snippet"}


async def _describe(evidence: Evidence, fields: set[str], context: Context) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": evidence.id,
        "type": evidence.type,
        "title": evidence.title,
        "score": evidence.score,
        "source_type": evidence.source_type,
        "last_updated": evidence.last_updated,
    }
    if "snippet" in fields:
        told["snippet"] = evidence.snippet
    if "url" in fields:
        told["url"] = evidence.url
    if "metadata" in fields:
        told["metadata"] = dict(evidence.metadata)
    if "sources" in fields:
        source = {"source_type": evidence.source_type, "source": evidence.source}
        told["sources"] = [{"namespace": evidence.namespace, **source}]
    if "full_text" in fields:
        record = await context.kb.get(evidence.id)
        told["full_text"] = evidence.text if record is None else record.body
    return told


def _told(answer: Answer) -> dict[str, str]:
    return {"id": answer.evidence.id, "title": answer.evidence.title, "text": answer.text}


def _speak(found: Found, answer: Answer | None, *, asks: bool) -> str:
    if answer is not None:
        return f"According to “{answer.evidence.title}”: {answer.text}"
    titles = [f"“{evidence.title}”" for evidence in found.results[:SPOKEN_TITLES]]
    if not titles:
        return "I found nothing about that in the knowledge base."
    if asks:
        return f"I found nothing that clearly answers that. The closest is {titles[0]}."
    best = found.results[0]
    others = f" I also found {_listed(titles[1:])}." if titles[1:] else ""
    return f"In {titles[0]} I found: {best.snippet}{others}"


def _listed(items: list[str]) -> str:
    return " and ".join(items)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)

"""Reads one record of the knowledge base."""

from typing import Any, Final

from antiphon.tools.capabilities.kb import FullRecord
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import Citation, ToolResult, fail, ok
from antiphon.tools.spec import Mode

SNIPPET_CHARS: Final = 500
SPOKEN_CHARS: Final = 240
TEXT_FIELDS: Final = ("full_text", "metadata", "url")
VOICE_FIELDS: Final = ("snippet", "metadata", "url")


async def execute(args: Args, context: Context) -> ToolResult:
    record = await context.kb.get(args["id"])
    if record is None:
        return fail(
            ErrorType.NOT_FOUND,
            "I can't find that record.",
            suggestion="Search with kb_search, and use an id from its results.",
        )
    default = VOICE_FIELDS if context.session.mode is Mode.VOICE else TEXT_FIELDS
    data = _describe(record, set(args.get("return_fields", default)))
    spoken = f"{record.title}: {_beginning(record.body, SPOKEN_CHARS)}" if record.body.strip() else f"{record.title}."
    return ok(data, spoken=spoken, citations=[Citation(record.id, record.title, record.url)])


def _describe(record: FullRecord, fields: set[str]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": record.id,
        "type": record.type,
        "title": record.title,
        "tags": list(record.tags),
        "source_type": record.source_type,
        "last_updated": record.last_updated,
    }
    if "snippet" in fields:
        told["snippet"] = _beginning(record.body, SNIPPET_CHARS)
    if "full_text" in fields:
        told["full_text"] = record.body
    if "metadata" in fields:
        told["metadata"] = dict(record.metadata)
    if "url" in fields:
        told["url"] = record.url
    if "sources" in fields:
        source = {"source_type": record.source_type, "source": record.source}
        told["sources"] = [{"namespace": record.namespace, **source}]
    return told


def _beginning(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: text.rfind(" ", 0, most)].rstrip(",;:") + "…"

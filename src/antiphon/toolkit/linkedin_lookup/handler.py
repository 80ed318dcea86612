"""Finds the LinkedIn links that are stored in the knowledge base."""

from typing import Final

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import Citation, ToolResult, fail, ok

HOST: Final = "linkedin.com"


async def execute(args: Args, context: Context) -> ToolResult:
    name = args["name"].strip()
    links = await context.kb.find_links(name, HOST)
    if not links:
        return fail(
            ErrorType.NOT_FOUND,
            f"I have no LinkedIn link for {name}.",
            suggestion="Do not guess a link. Ask the user for it, or search with kb_search for another spelling.",
        )
    data = {"matches": [{"id": link.id, "title": link.title, "url": link.url} for link in links]}
    if len(links) == 1:
        spoken = f"{links[0].title} is on LinkedIn at {links[0].url}."
    else:
        spoken = f"I have LinkedIn links for {' and '.join(link.title for link in links)}. Whose do you want?"
    return ok(data, spoken=spoken, citations=[Citation(link.id, link.title, link.url) for link in links])

# mypy: ignore-errors
"""kb_search as these libraries expect it: a function with the schema's rules in its annotations.

Given the JSON Schema itself, most of them would pass it to the model and check nothing.
"""

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bench.workload import ARGUMENTS, RESULT


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DateRange(Strict):
    start: date | None = None
    end: date | None = None


class Filters(Strict):
    type: Literal["person", "project", "event", "note"] | None = None
    tags: Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=10)] = []
    date_range: DateRange | None = None


Query = Annotated[str, Field(min_length=1, max_length=500)]
Namespace = Literal["studio", "personal", "public"]
TopK = Annotated[int, Field(ge=1, le=10)]
ReturnFields = Annotated[list[Literal["id", "type", "title", "snippet", "score", "url"]], Field(max_length=6)]


class Search(Strict):
    """The arguments as a model, for LangChain's `args_schema`."""

    query: Query
    namespace: Namespace | None = None
    filters: Filters | None = None
    top_k: TopK = 5
    return_fields: ReturnFields | None = None
    include_snippets: bool = True


async def kb_search(
    query: Query,
    namespace: Namespace | None = None,
    filters: Filters | None = None,
    top_k: TopK = 5,
    return_fields: ReturnFields | None = None,
    include_snippets: bool = True,
) -> dict[str, Any]:
    """Searches the knowledge base by meaning and by words, and gives the best records as evidence."""
    return RESULT


async def bare(place: int) -> object:
    """Calls the handler alone."""
    return await kb_search(**ARGUMENTS[place])

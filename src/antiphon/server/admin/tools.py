"""The tools that this process has loaded, what has changed on disk since, and the size of the knowledge base."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from antiphon.security.admission import Caller
from antiphon.server.deps import HttpDeps
from antiphon.server.refusals import reply
from antiphon.storage.knowledge import Namespace


class LoadedTool(Struct, frozen=True, kw_only=True):
    id: str
    version: str
    category: str
    from_files: bool
    """False for a tool of an MCP server."""
    calls: int
    """How often it was called since this process has loaded it."""
    errors: int
    average_ms: float


class LoadedTools(Struct, frozen=True):
    version: str
    """The version of all tools together."""
    built_version: str
    """The version of the tools from files."""
    locked: bool
    """Whether tools that change on disk are loaded only by a restart."""
    tools: tuple[LoadedTool, ...]


class NamespaceCount(Struct, frozen=True):
    namespace: Namespace
    records: int


class KnowledgeCounts(Struct, frozen=True):
    """The whole knowledge base, with the personal records of all users."""

    namespaces: tuple[NamespaceCount, ...]
    records: int
    passages: int
    vectors: int
    """How many passages can be found by their meaning."""
    embedder: str
    """The embedding model; empty if only words are searched."""


async def list_loaded_tools(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    registry, snapshot = deps.registry, deps.registry.snapshot()
    built = registry.built_tools
    tools = []
    for tool in snapshot.tools.values():
        stats = tool.stats.summary()
        tools.append(
            LoadedTool(
                id=tool.id,
                version=tool.spec.version,
                category=tool.spec.category,
                from_files=tool.id in built,
                calls=stats["calls"],
                errors=stats["errors"],
                average_ms=stats["average_ms"],
            )
        )
    return reply(LoadedTools(snapshot.version, registry.built_version, registry.locked, tuple(tools)))


async def compare_tools(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    return reply(await deps.operator.compare_tools())


async def count_knowledge(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    store = deps.knowledge.store
    found, counts, state = await deps.operator.overview.record_counts(), await store.counts(), await store.state()
    namespaces = tuple(NamespaceCount(each, found.get(each, 0)) for each in Namespace)
    return reply(KnowledgeCounts(namespaces, counts.records, counts.passages, counts.vectors, state.embedder))

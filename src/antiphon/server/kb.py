"""`/api/kb`: users search and read the knowledge base, and add and delete records.

Users change their own personal records. A caller who needs no token is the operator, who may change shared ones, too.
"""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from antiphon.security.admission import Caller
from antiphon.security.quota import Account, Kind
from antiphon.server.deps import HttpDeps
from antiphon.server.refusals import Refusal, RefusalCode, reply
from antiphon.server.requests import read_body, read_query
from antiphon.services.kb.records import RecordError, clean_tag, make_id, to_iso
from antiphon.services.kb.snippets import snippet
from antiphon.storage.knowledge import SHARED, Namespace, Readable, Record, RecordType

PAGE: Final = 20
MAX_PAGE: Final = 50
NOTE: Final = "note"
"""The source type of what was written over HTTP."""
GONE: Final = "There is no such record, or you may not read it."


class KnowledgeQuery(Struct, forbid_unknown_fields=True):
    query: Annotated[str, Meta(max_length=200)] = ""
    """What to look for. If it is empty, the newest records are listed."""
    namespace: Namespace | None = None
    """Only this namespace. Absent: all that you may read."""
    type: RecordType | None = None
    tag: str | None = None
    """Only records with this tag."""
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = PAGE


class KnowledgeResult(Struct, frozen=True, kw_only=True):
    id: str
    namespace: Namespace
    type: RecordType
    title: str
    snippet: str
    """The part of the record that was found, or its beginning."""
    score: float | None
    """How well it fits the query, from 0 to 1. Null if there was no query."""
    tags: tuple[str, ...]
    url: str | None
    last_updated: str
    """ISO 8601, in UTC."""


class KnowledgeResults(Struct, frozen=True):
    results: tuple[KnowledgeResult, ...]
    """The best first, or the newest first if there was no query."""
    total: int
    """How many records there are in this namespace, with this type and tag, whatever the query."""
    search: str | None = None
    """"hybrid" if meaning was compared, "words" if only words were. Null if there was no query."""


class KnowledgeRecord(Struct, frozen=True, kw_only=True):
    """A whole record."""

    id: str
    namespace: Namespace
    type: RecordType
    title: str
    body: str
    """Markdown, or plain text."""
    tags: tuple[str, ...]
    url: str | None
    source_type: str
    source: str
    """The file that it was read from; empty if there is none."""
    last_updated: str
    metadata: dict[str, Any]
    writable: bool
    """Whether you may delete it."""


class NewRecord(Struct, forbid_unknown_fields=True):
    title: str
    body: str
    type: RecordType = RecordType.DOC
    namespace: Namespace = Namespace.PERSONAL
    """Only the operator, who needs no token, may add to the others."""
    tags: tuple[str, ...] = ()
    url: str | None = None


async def search_records(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    query = read_query(request, KnowledgeQuery)
    readable = _readable(deps, caller, query.namespace)
    tags = () if query.tag is None else (clean_tag(query.tag),)
    wanted = replace(readable, type=query.type, tags=tags)
    total = await deps.knowledge.store.count(wanted)
    if not query.query.strip():
        newest = await deps.knowledge.store.list(wanted, query.limit)
        return reply(KnowledgeResults(tuple(_listed(record) for record in newest), total))
    _charge(deps, request, caller)
    found = await deps.knowledge.search(query.query, wanted, query.limit)
    results = tuple(
        KnowledgeResult(
            id=each.id,
            namespace=Namespace(each.namespace),
            type=RecordType(each.type),
            title=each.title,
            snippet=each.snippet,
            score=each.score,
            tags=each.tags,
            url=each.url,
            last_updated=each.last_updated,
        )
        for each in found.results
    )
    return reply(KnowledgeResults(results, total, "hybrid" if found.by_meaning else "words"))


async def show_record(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    return reply(_describe(await _find(deps, request, caller), caller))


async def add_record(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    new = await read_body(request, NewRecord)
    if new.namespace is not Namespace.PERSONAL and caller.authenticated:
        raise Refusal(RefusalCode.FORBIDDEN, "You may add personal records only. Leave `namespace` out.")
    _charge(deps, request, caller)
    title = " ".join(new.title.split())
    owner = caller.user if new.namespace is Namespace.PERSONAL else SHARED
    record = Record(
        id=make_id(new.type, title),
        owner=owner,
        namespace=new.namespace,
        type=new.type,
        title=title,
        body=new.body,
        tags=tuple(dict.fromkeys(map(clean_tag, new.tags))),
        url=(new.url or "").strip() or None,
        source_type=NOTE,
        last_updated_ms=deps.clock.now_ms(),
    )
    try:
        record = await deps.knowledge.add_beside(record)
    except RecordError as error:
        raise Refusal(RefusalCode.BAD_REQUEST, f"{str(error)[:1].upper()}{str(error)[1:]}") from None
    return reply(_describe(record, caller), 201)


async def delete_record(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    record = await _find(deps, request, caller)
    if not _may_change(record, caller):
        raise Refusal(RefusalCode.FORBIDDEN, "You may delete personal records only.")
    if not await deps.knowledge.remove(record.id, record.owner):
        raise Refusal(RefusalCode.NOT_FOUND, GONE)
    return Response(status_code=204)


async def _find(deps: HttpDeps, request: Request, caller: Caller) -> Record:
    record = await deps.knowledge.store.get(request.path_params["id"], _readable(deps, caller))
    if record is None:
        raise Refusal(RefusalCode.NOT_FOUND, GONE)
    return record


def _readable(deps: HttpDeps, caller: Caller, namespace: Namespace | None = None) -> Readable:
    try:
        return deps.knowledge.readable(caller.user, namespace)
    except PermissionError as error:
        raise Refusal(RefusalCode.FORBIDDEN, str(error)) from None


def _may_change(record: Record, caller: Caller) -> bool:
    return record.owner == caller.user if record.owner else not caller.authenticated


def _charge(deps: HttpDeps, request: Request, caller: Caller) -> None:
    """Counts the request as the tool call that would do the same."""
    address = request.client.host if request.client is not None else None
    account = Account(user=caller.user, address=address)
    wait_s = deps.quota.take(Kind.TOOL_CALL, account, 1, deps.clock.monotonic())
    if wait_s > 0:
        raise Refusal(RefusalCode.TOO_FAST, "Too many requests. Try again later.", retry_after_s=wait_s)


def _listed(record: Record) -> KnowledgeResult:
    return KnowledgeResult(
        id=record.id,
        namespace=record.namespace,
        type=record.type,
        title=record.title,
        snippet=snippet(record.body, ()),
        score=None,
        tags=record.tags,
        url=record.url,
        last_updated=to_iso(record.last_updated_ms),
    )


def _describe(record: Record, caller: Caller) -> KnowledgeRecord:
    return KnowledgeRecord(
        id=record.id,
        namespace=record.namespace,
        type=record.type,
        title=record.title,
        body=record.body,
        tags=record.tags,
        url=record.url,
        source_type=record.source_type,
        source=record.source,
        last_updated=to_iso(record.last_updated_ms),
        metadata=dict(record.metadata),
        writable=_may_change(record, caller),
    )

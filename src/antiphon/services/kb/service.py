"""The knowledge base of a process: adds, removes, searches and reads records."""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

from msgspec.structs import replace

from antiphon.clock import Clock
from antiphon.services.kb.answers import Answering
from antiphon.services.kb.embedders import LazyEmbedder
from antiphon.services.kb.passages import split
from antiphon.services.kb.records import LINK, check_record, clean_tag, full_record, to_iso, to_ms
from antiphon.services.kb.search import HybridSearch, Ranked
from antiphon.services.kb.snippets import snippet
from antiphon.services.kb.terms import stem, stems, terms
from antiphon.storage.base import StorageError, StoreUnavailable
from antiphon.storage.knowledge import (
    Counts,
    KnowledgeStore,
    Namespace,
    Passage,
    Published,
    Readable,
    Record,
    RecordType,
)
from antiphon.telemetry.log import get_logger
from antiphon.tools.capabilities.kb import Answer, Evidence, Found, FullRecord, StoredLink
from antiphon.tools.context import SessionView
from antiphon.tools.errors import ErrorType, ToolError

if TYPE_CHECKING:
    from antiphon.services.kb.vectors import VectorIndex

STAGED_AT_ONCE: Final = 200
"""How many records are stored in one transaction. It takes about 50 ms, for which a conversation may have to wait."""
EMBEDDED_AT_ONCE: Final = 32
INDEXED_AT_START: Final = 5_000
"""How many vectors the database may index when a server starts, which takes two or three seconds. `antiphon kb reindex`
makes the index for any number of them."""
STALE_MS: Final = 6 * 60 * 60 * 1000
"""An import that has not ended after this time has failed."""
LINKS_READ: Final = 20

log = get_logger(__name__)

Item = TypeVar("Item")
Done = TypeVar("Done")


class Knowledge:
    """One for a process. Close it."""

    def __init__(
        self, store: KnowledgeStore, embedders: LazyEmbedder, clock: Clock, *, studio_readers: Collection[str] = ()
    ) -> None:
        self.store = store
        self._embedders = embedders
        self._clock = clock
        self._studio_readers = frozenset(studio_readers)
        self._search = HybridSearch(store, embedders)
        self._answering = Answering()

    async def aclose(self) -> None:
        await self._embedders.aclose()

    @property
    def vectors(self) -> "VectorIndex | None":
        """The vectors in memory, if there are any."""
        return self._search.vectors

    async def warm(self) -> None:
        """Loads the vectors and the embedding model, if there are vectors, so that the first search is not slow. A
        database that can have an index of the vectors gets it now, unless making it would keep searches waiting."""
        try:
            if not await self.store.make_vector_index(most=INDEXED_AT_START):
                log.debug("vectors_kept_in_memory")
        except StorageError as error:
            log.warning("vector_index_not_made", error=str(error))
        await self._search.follow()

    # Who may read what.

    def namespaces_of(self, user: str) -> tuple[Namespace, ...]:
        """Returns the namespaces that a user may read."""
        may_read_studio = not self._studio_readers or user in self._studio_readers
        return tuple(each for each in Namespace if each is not Namespace.STUDIO or may_read_studio)

    def readable(self, user: str, namespace: Namespace | None = None) -> Readable:
        """Returns what a user may read, in one namespace or in all. Raises `PermissionError`."""
        allowed = self.namespaces_of(user)
        if namespace is None:
            return Readable(user, allowed)
        if namespace not in allowed:
            raise PermissionError(f"You may not read the namespace {namespace}.")
        return Readable(user, (namespace,))

    def session(self, session: SessionView) -> "SessionKnowledge":
        return SessionKnowledge(self, session.user)

    # What is found.

    async def search(self, query: str, readable: Readable, limit: int) -> Found:
        ranked, by_meaning = await self._search.search(query, readable, limit)
        wanted = {stem(word) for word in terms(query)}
        return Found(tuple(_evidence(each, wanted) for each in ranked), by_meaning)

    async def answer(self, question: str, found: Found) -> Answer | None:
        if not found.results:
            return None
        weights = await self._search.weigh(question)
        embedder = await self._embedders.get() if found.by_meaning else None
        return await self._answering.find(question, weights, found.results, embedder)

    async def find_links(self, name: str, host: str, readable: Readable) -> list[StoredLink]:
        wanted = [word for word in terms(name) if word]
        ranked, _ = await self._search.search(name, readable, LINKS_READ)
        found: list[StoredLink] = []
        for each in ranked:
            record = each.hit.record
            named = stems(" ".join((record.title, *record.tags)))
            if not wanted or not all(stem(word) in named for word in wanted):
                continue
            whole = await self.store.get(record.id, readable)
            link = next(iter(_links_to(host, whole or record)), None)
            if link is not None:
                found.append(StoredLink(record.id, record.title, link))
        return found

    async def has_records(self) -> bool:
        """Whether there is anything to find: not if the store cannot be reached."""
        try:
            return await self.store.has_records()
        except StoreUnavailable:
            return False

    async def problem(self) -> str | None:
        """Returns why meaning cannot be compared, or None if it can."""
        await self._embedders.get()
        return self._embedders.problem

    # What is changed.

    async def add(
        self,
        records: Sequence[Record],
        *,
        by_meaning: bool = True,
        on_progress: Callable[[int], None] = lambda done: None,
    ) -> Published:
        """Adds records, or replaces those with the same ids and owners: all of them, or none if it fails."""
        return await self._add(records, self.store.publish, by_meaning=by_meaning, on_progress=on_progress)

    async def add_beside(self, record: Record) -> Record:
        """Adds a record that replaces none, and returns it with its id, which has a number if it was taken."""
        [id] = await self._add([record], self.store.publish_beside)
        return replace(record, id=id)

    async def remove(self, id: str, owner: str) -> bool:
        return await self.store.remove(id, owner)

    async def reindex(self, *, all: bool, on_progress: Callable[[int, int], None]) -> Counts:
        """Makes the vectors that are missing, or all of them and the index of words."""
        if all:
            await self.store.reindex()
        embedder = await self._embedders.get()
        if embedder is not None:
            if all or (await self.store.state()).embedder != embedder.name:
                await self.store.clear_vectors(embedder.name)
            counts = await self.store.counts()
            done, total = 0, counts.passages - counts.vectors
            while missing := await self.store.without_vector(EMBEDDED_AT_ONCE):
                vectors = await self._vectors([f"{title}. {text}" for _, title, text in missing])
                await self.store.set_vectors(list(zip((each[0] for each in missing), vectors, strict=True)))
                done += len(missing)
                on_progress(done, total)
        return await self.store.counts()

    async def _add(
        self,
        records: Sequence[Record],
        publish: Callable[[str], Awaitable[Done]],
        *,
        by_meaning: bool = True,
        on_progress: Callable[[int], None] = lambda done: None,
    ) -> Done:
        for record in records:
            check_record(record)
        await self._sweep_stale()
        embeds = by_meaning and await self._prepare_vectors()
        batch = f"{self._clock.now_ms()} {uuid4().hex}"
        done = 0
        try:
            for part in _parts(records, STAGED_AT_ONCE):
                staged = [(record, [Passage(text) for text in split(record.body)]) for record in part]
                if embeds:
                    staged = await self._embed(staged, lambda count: on_progress(done + count))  # noqa: B023
                await self.store.stage(batch, staged)
                done += len(part)
                on_progress(done)
            return await publish(batch)
        except BaseException:
            await self.store.sweep([batch])
            raise

    async def _prepare_vectors(self) -> bool:
        """Whether new records get vectors: not if there is no model, or if the vectors are of another one."""
        embedder = await self._embedders.get()
        if embedder is None:
            return False
        known = (await self.store.state()).embedder
        if not known:
            await self.store.clear_vectors(embedder.name)
        return known in ("", embedder.name)

    async def _embed(
        self, staged: Sequence[tuple[Record, Sequence[Passage]]], on_progress: Callable[[int], None]
    ) -> list[tuple[Record, list[Passage]]]:
        embedded: list[tuple[Record, list[Passage]]] = []
        for record, passages in staged:
            vectors: list[bytes] = []
            for part in _parts(passages, EMBEDDED_AT_ONCE):
                vectors += await self._vectors([f"{record.title}. {passage.text}" for passage in part])
            embedded.append((record, [replace(p, vector=v) for p, v in zip(passages, vectors, strict=True)]))
            on_progress(len(embedded))
        return embedded

    async def _vectors(self, texts: Sequence[str]) -> list[bytes]:
        from antiphon.services.kb.vectors import pack

        embedder = await self._embedders.get()
        assert embedder is not None
        return pack(await embedder.embed(texts))

    async def _sweep_stale(self) -> None:
        """Deletes what failed imports have left."""
        before_ms = self._clock.now_ms() - STALE_MS
        stale = []
        for batch in await self.store.abandoned():
            begun, _, _ = batch.partition(" ")
            if not begun.isdigit() or int(begun) < before_ms:
                stale.append(batch)
        await self.store.sweep(stale)


class SessionKnowledge:
    """The knowledge base for the tools of one user's session."""

    def __init__(self, knowledge: Knowledge, user: str) -> None:
        self._knowledge = knowledge
        self._user = user

    async def search(
        self,
        query: str,
        *,
        namespace: str | None = None,
        type: str | None = None,
        tags: Sequence[str] = (),
        start: datetime | None = None,
        end: datetime | None = None,
        top_k: int = 5,
    ) -> Found:
        readable = self._readable(None if namespace is None else Namespace(namespace))
        wanted = replace(
            readable,
            type=None if type is None else RecordType(type),
            tags=tuple(map(clean_tag, tags)),
            start_ms=None if start is None else to_ms(start),
            end_ms=None if end is None else to_ms(end),
        )
        return await self._knowledge.search(query, wanted, top_k)

    async def answer(self, question: str, found: Found) -> Answer | None:
        return await self._knowledge.answer(question, found)

    async def get(self, id: str) -> FullRecord | None:
        record = await self._knowledge.store.get(id, self._readable(None))
        return None if record is None else full_record(record)

    async def find_links(self, name: str, host: str) -> Sequence[StoredLink]:
        return await self._knowledge.find_links(name, host, self._readable(None))

    def _readable(self, namespace: Namespace | None) -> Readable:
        try:
            return self._knowledge.readable(self._user, namespace)
        except PermissionError as error:
            raise ToolError(
                ErrorType.AUTH, str(error), suggestion="Leave namespace out to search all that the user may read."
            ) from None


def _evidence(ranked: Ranked, wanted: Collection[str]) -> Evidence:
    record, text = ranked.hit.record, ranked.hit.text
    return Evidence(
        id=record.id,
        namespace=record.namespace,
        type=record.type,
        title=record.title,
        snippet=snippet(text, wanted),
        text=text,
        score=ranked.score,
        coverage=ranked.coverage,
        similarity=ranked.similarity,
        tags=record.tags,
        source_type=record.source_type,
        source=record.source,
        last_updated=to_iso(record.last_updated_ms),
        url=record.url,
        metadata=record.metadata,
    )


def _links_to(host: str, record: Record) -> Iterator[str]:
    """Yields the links to a host in a record: its own one first, then those of its metadata, then those in its text."""
    texts: Iterable[Any] = (record.url or "", *_values(record.metadata), record.body)
    for text in texts:
        for match in LINK.finditer(str(text)):
            name = re.split(r"[/?#:]", match[0].split("//", 1)[1], maxsplit=1)[0].lower()
            if name == host or name.endswith(f".{host}"):
                yield match[0].rstrip(".,;:!?")


def _values(metadata: Mapping[str, Any]) -> Iterator[Any]:
    return (value for value in metadata.values() if isinstance(value, str))


def _parts(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))

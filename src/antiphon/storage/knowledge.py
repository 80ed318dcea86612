"""The interface of the knowledge base store: records, the passages that they are found by, and their vectors."""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Protocol

from msgspec import Struct

from antiphon.storage.base import StorageError

SHARED: Final = ""
"""The owner of every record that is not personal."""


class Namespace(StrEnum):
    STUDIO = "studio"
    """What the people who use this server share."""
    PERSONAL = "personal"
    """What belongs to one user, and what nobody else can read."""
    PUBLIC = "public"
    """What anybody may know."""


class RecordType(StrEnum):
    PROJECT = "project"
    PERSON = "person"
    PROCESS = "process"
    LINK = "link"
    DOC = "doc"


class RecordConflict(StorageError):
    """Two records of one import have the same id."""

    code = "record_conflict"


class Record(Struct, frozen=True, kw_only=True):
    """One entry of the knowledge base. Its id is unique among the shared records, or among those of its owner."""

    id: str
    """The type and a name: `person:ada_lovelace`."""
    owner: str = SHARED
    """The user whose personal record it is."""
    namespace: Namespace
    type: RecordType
    title: str
    body: str
    tags: tuple[str, ...] = ()
    """In lower case."""
    url: str | None = None
    source_type: str
    """Where it came from, in a word: markdown, csv, note."""
    source: str = ""
    """The file that it was read from; empty if there is none."""
    last_updated_ms: int
    metadata: Mapping[str, Any] = {}


class Passage(Struct, frozen=True):
    """A part of a record's body. All passages of a record, joined, are its body."""

    text: str
    vector: bytes | None = None


class PassageHit(Struct, frozen=True):
    """A passage that was found, with its record, whose body is left out."""

    passage: int
    text: str
    record: Record


class Readable(Struct, frozen=True):
    """Which records are wanted: those that a user may read, and of these those that pass the filters."""

    user: str
    namespaces: tuple[Namespace, ...] = tuple(Namespace)
    type: RecordType | None = None
    tags: tuple[str, ...] = ()
    """All of them must be there."""
    start_ms: int | None = None
    end_ms: int | None = None
    """The last moment that counts, by `last_updated_ms`."""

    @property
    def is_filtered(self) -> bool:
        return bool(self.type or self.tags) or self.start_ms is not None or self.end_ms is not None


class Published(Struct, frozen=True):
    added: int
    updated: int


class KnowledgeState(Struct, frozen=True):
    """What a process compares to notice the changes of other processes."""

    version: int
    """Every change of the records increases it."""
    epoch: int
    """Every change of all vectors increases it."""
    embedder: str
    """The embedding model of the vectors; empty if there are none."""


class Counts(Struct, frozen=True):
    records: int
    passages: int
    vectors: int


class KnowledgeStore(Protocol):
    """Records come in batches: `stage` makes them durable but invisible, and `publish` shows all of them at once, in
    place of older records with the same ids. No transaction is long, so that an import of 100,000 records delays no
    conversation, and one that fails leaves nothing that anybody could find."""

    async def stage(self, batch: str, records: Sequence[tuple[Record, Sequence[Passage]]]) -> None:
        """Raises `RecordConflict` if the batch has a record with such an id and owner."""
        ...

    async def publish(self, batch: str) -> Published: ...

    async def publish_beside(self, batch: str) -> Sequence[str]:
        """Publishes a batch that replaces nothing, and returns the ids of its records in their order.

        A record gets a number after its id if its owner, or the shared records, have that id already. Of any number
        of concurrent calls, in any number of processes, each gets ids of its own.
        """
        ...

    async def sweep(self, batches: Collection[str]) -> None:
        """Deletes what belongs to these batches and was not published."""
        ...

    async def abandoned(self) -> Sequence[str]:
        """Returns the batches that were staged and not published, and replaced records that were not deleted."""
        ...

    async def get(self, id: str, readable: Readable) -> Record | None:
        """Returns the user's personal record rather than a shared one with the same id."""
        ...

    async def list(self, readable: Readable, limit: int) -> Sequence[Record]:
        """Returns the most recently updated records first, with the first passages of their bodies alone."""
        ...

    async def count(self, readable: Readable) -> int: ...

    async def sources(self, owner: str) -> Mapping[str, str]:
        """Returns the ids of the owner's records, each with the file that it was read from."""
        ...

    async def remove(self, id: str, owner: str) -> bool:
        """Removes a record, and returns whether there was one."""
        ...

    async def remove_owner(self, owner: str) -> int:
        """Removes all records of an owner, and returns how many."""
        ...

    async def has_records(self) -> bool: ...

    async def counts(self) -> Counts: ...

    async def counts_by_namespace(self) -> Mapping[str, int]:
        """Returns how many records of all owners there are in each namespace that has any."""
        ...

    async def state(self) -> KnowledgeState: ...

    async def frequencies(self, words: Sequence[str]) -> Sequence[int]:
        """Returns in how many passages each word occurs, in any of its forms."""
        ...

    async def match(self, words: Sequence[str], limit: int, *, every: bool = False) -> Sequence[int]:
        """Returns the passages with any of the words, or with every one, best first by BM25. Some of them may be
        passages that nobody can read."""
        ...

    async def passages(self, passages: Sequence[int], readable: Readable) -> Sequence[PassageHit]:
        """Returns those passages that are readable, in any order."""
        ...

    async def readable_passages(self, readable: Readable) -> Collection[int]: ...

    async def places(self) -> Sequence[tuple[int, str, str]]:
        """Returns the passages that have a vector, each with its namespace and owner."""
        ...

    async def vectors(self, passages: Sequence[int]) -> Sequence[tuple[int, bytes]]: ...

    async def without_vector(self, limit: int) -> Sequence[tuple[int, str, str]]:
        """Returns passages that have no vector, each with the title of its record and its text."""
        ...

    async def set_vectors(self, vectors: Sequence[tuple[int, bytes]]) -> None: ...

    async def clear_vectors(self, embedder: str) -> None:
        """Deletes all vectors, since those to come are of another model."""
        ...

    async def make_vector_index(self, *, most: int | None = None, anew: bool = False) -> bool:
        """Has the database make an index of the vectors, unless it has one or cannot have one. Returns whether it has
        one then. With `most`, it is not made for more vectors than that, since it keeps searches waiting: 20,000
        vectors take about 10 s. With `anew`, one that is there is made again."""
        ...

    async def has_vector_index(self) -> bool:
        """Whether the database finds the nearest vectors. Otherwise whoever searches compares them in memory."""
        ...

    async def nearest(self, question: Sequence[float], readable: Readable, limit: int) -> Sequence[tuple[int, float]]:
        """Returns the readable passages whose vectors are the nearest, with their similarity, the best first. It needs
        `has_vector_index`, and finds nearly all of them."""
        ...

    async def reindex(self) -> int:
        """Makes the full-text index anew, and returns the number of passages."""
        ...

"""The vectors of all passages in memory, and the search for those nearest to a question's.

A vector is kept as 384 small numbers of 8 bits, and as their 384 signs. The signs choose the candidates, which takes a
tenth of the memory traffic; the numbers rank them. This module needs the extra `kb`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

SHORTLIST: Final = 1_000
"""How many passages are chosen by signs for each search. Of the ten nearest of 100,000 passages, they have 9.5; twice
as many would have 9.8, and take 3 ms longer."""
_LARGEST: Final = 127


def pack(vectors: NDArray[np.float32]) -> list[bytes]:
    """Makes what the store keeps of unit vectors: one byte for each number, of which the largest is 127."""
    largest = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-12)
    return [row.tobytes() for row in np.rint(vectors / largest * _LARGEST).astype(np.int8)]


Place = tuple[str, str]
"""The namespace and the owner of a passage."""


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The vectors of passages, in any order. It never changes, so that any number of threads may search it."""

    rows: NDArray[np.int8]
    lengths: NDArray[np.float32]
    signs: NDArray[np.uint64]
    """64 signs in each number, and one row for each 64: a search goes through them row by row."""
    passages: NDArray[np.int64]
    places: NDArray[np.int32]
    """The position in `place_names` of each passage's place."""
    place_names: tuple[Place, ...]

    @classmethod
    def of(cls, vectors: Sequence[tuple[int, bytes]], places: Mapping[int, Place]) -> "VectorIndex":
        """Makes an index of packed vectors by passage, all of the same length."""
        rows = np.frombuffer(b"".join(vector for _, vector in vectors), np.int8).reshape(len(vectors), -1)
        names = tuple(dict.fromkeys(places[passage] for passage, _ in vectors))
        numbers = {name: number for number, name in enumerate(names)}
        return cls(
            rows=rows,
            lengths=np.linalg.norm(rows.astype(np.float32), axis=1),
            signs=_signs(rows),
            passages=np.array([passage for passage, _ in vectors], np.int64),
            places=np.array([numbers[places[passage]] for passage, _ in vectors], np.int32),
            place_names=names,
        )

    def __len__(self) -> int:
        return len(self.passages)

    def without(self, passages: Collection[int]) -> "VectorIndex":
        kept = ~np.isin(self.passages, np.fromiter(passages, np.int64, len(passages)))
        return VectorIndex(
            self.rows[kept],
            self.lengths[kept],
            self.signs[:, kept],
            self.passages[kept],
            self.places[kept],
            self.place_names,
        )

    def joined(self, other: "VectorIndex") -> "VectorIndex":
        return VectorIndex(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.lengths, other.lengths]),
            np.concatenate([self.signs, other.signs], axis=1),
            np.concatenate([self.passages, other.passages]),
            np.concatenate([self.places, other.places + np.int32(len(self.place_names))]),
            self.place_names + other.place_names,
        )

    def search(
        self,
        question: NDArray[np.float32],
        limit: int,
        *,
        places: Collection[Place],
        among: Collection[int] | None = None,
    ) -> list[tuple[int, float]]:
        """Returns the nearest passages in these places, and `among` these if given, with their similarity."""
        readable = [number for number, place in enumerate(self.place_names) if place in places]
        hidden = None
        if len(readable) < len(self.place_names):
            hidden = ~np.isin(self.places, readable)
        if among is not None:
            others = ~np.isin(self.passages, np.fromiter(among, np.int64, len(among)))
            hidden = others if hidden is None else hidden | others
        chosen = self._shortlist(question, hidden)
        similarity = (self.rows[chosen].astype(np.float32) @ question) / self.lengths[chosen]
        best = np.argsort(-similarity, kind="stable")[:limit]
        return [(int(self.passages[chosen[n]]), float(similarity[n])) for n in best]

    def _shortlist(self, question: NDArray[np.float32], hidden: NDArray[np.bool_] | None) -> NDArray[np.intp]:
        if len(self) <= SHORTLIST:
            return np.arange(len(self)) if hidden is None else np.flatnonzero(~hidden)
        different = np.zeros(len(self), np.uint16)
        for word, sign in zip(self.signs, _signs(question[np.newaxis]), strict=True):
            different += np.bitwise_count(word ^ sign)
        if hidden is not None:
            different[hidden] = len(question) + 1
        # The numbers are small, so counting them finds the limit sooner than sorting does.
        counts = np.bincount(different, minlength=len(question) + 2)[:-1].cumsum()
        limit = int(np.searchsorted(counts, min(SHORTLIST, counts[-1])))
        return np.flatnonzero(different <= limit)


def _signs(vectors: NDArray[np.int8] | NDArray[np.float32]) -> NDArray[np.uint64]:
    return np.ascontiguousarray(np.packbits(vectors > 0, axis=1).view(np.uint64).T)

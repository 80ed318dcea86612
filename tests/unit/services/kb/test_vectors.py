"""The search by vectors finds what a product with all vectors finds, and only where it may look."""

import numpy as np
from numpy.typing import NDArray

from antiphon.services.kb.vectors import SHORTLIST, VectorIndex, pack

STUDIO, ANN = ("studio", ""), ("personal", "ann")


def make(count: int) -> NDArray[np.float32]:
    """Vectors in clusters, as those of texts are."""
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(50, 384))
    rows = centres[rng.integers(0, 50, count)] + rng.normal(size=(count, 384))
    unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def index_of(vectors: NDArray[np.float32], first: int = 0, place: tuple[str, str] = STUDIO) -> VectorIndex:
    passages = range(first, first + len(vectors))
    return VectorIndex.of(list(zip(passages, pack(vectors), strict=True)), dict.fromkeys(passages, place))


def nearest(vectors: NDArray[np.float32], question: NDArray[np.float32], count: int) -> list[int]:
    return [int(n) for n in np.argsort(-(vectors @ question))[:count]]


def test_a_small_index_returns_the_nearest_in_order() -> None:
    vectors = make(200)
    found = index_of(vectors).search(vectors[7], 5, places={STUDIO})
    assert [passage for passage, _ in found] == nearest(vectors, vectors[7], 5)
    assert found[0][0] == 7
    assert abs(found[0][1] - 1) < 0.01


def test_the_signs_keep_nearly_all_of_the_nearest() -> None:
    vectors = make(20 * SHORTLIST)
    questions = vectors[:40] + np.random.default_rng(2).normal(scale=0.02, size=(40, 384)).astype(np.float32)
    index = index_of(vectors)
    kept = [
        len(
            {passage for passage, _ in index.search(question, 10, places={STUDIO})}
            & set(nearest(vectors, question, 10))
        )
        for question in questions
    ]
    assert np.mean(kept) > 9


def test_only_the_given_places_are_searched() -> None:
    vectors = make(3 * SHORTLIST)
    both = index_of(vectors).joined(index_of(vectors[:3], first=len(vectors), place=ANN))
    assert {passage for passage, _ in both.search(vectors[0], 10, places={ANN})} == {3_000, 3_001, 3_002}
    assert all(passage < 3_000 for passage, _ in both.search(vectors[0], 10, places={STUDIO}))
    assert both.search(vectors[0], 10, places=set()) == []


def test_only_the_given_passages_are_searched() -> None:
    vectors = make(3 * SHORTLIST)
    found = index_of(vectors).search(vectors[0], 10, places={STUDIO}, among=[5, 6])
    assert {passage for passage, _ in found} == {5, 6}


def test_removed_passages_are_not_found() -> None:
    vectors = make(2 * SHORTLIST)
    assert index_of(vectors).without([7]).search(vectors[7], 1, places={STUDIO})[0][0] != 7

"""The embedding model, with its real files."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from antiphon.embedding.minilm import DIMENSIONS, MiniLmEmbedder
from antiphon.weights.manifest import WeightsError

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def loaded(models_dir: Path) -> MiniLmEmbedder:
    return MiniLmEmbedder(models_dir)


@pytest.fixture
async def embedder(models_dir: Path) -> AsyncIterator[MiniLmEmbedder]:
    embedder = MiniLmEmbedder(models_dir)
    yield embedder
    await embedder.aclose()


def test_a_row_has_unit_length(loaded: MiniLmEmbedder) -> None:
    rows = loaded.embed_now(["what time is it", "", "a" * 10_000])
    assert rows.shape == (3, DIMENSIONS)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_no_texts_are_no_rows(loaded: MiniLmEmbedder) -> None:
    assert loaded.embed_now([]).shape == (0, DIMENSIONS)


def test_sentences_that_mean_the_same_are_closer_than_others(loaded: MiniLmEmbedder) -> None:
    asked, same, other = loaded.embed_now(["is there room left on my drive", "free disk space", "tell me a joke"])
    assert asked @ same > asked @ other + 0.2


def test_a_text_has_the_same_row_alone_and_beside_others(loaded: MiniLmEmbedder) -> None:
    [alone] = loaded.embed_now(["hello there"])
    beside = loaded.embed_now(["hello there", "a much longer sentence than the one before it, with many words"])[0]
    assert alone == pytest.approx(beside, abs=1e-6)


async def test_the_event_loop_runs_while_texts_are_embedded(embedder: MiniLmEmbedder) -> None:
    embedding = asyncio.create_task(embedder.embed(["a sentence of a few words"] * 50))
    turns = 0
    while not embedding.done():
        turns += 1
        await asyncio.sleep(0.001)
    assert turns > 10
    assert embedding.result().shape == (50, DIMENSIONS)


def test_missing_files_are_reported_with_what_pulls_them(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="antiphon models pull minilm"):
        MiniLmEmbedder(tmp_path)

"""Copying rows that are large: few of them are in memory together, and they arrive as they were."""

import asyncio
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from antiphon.storage.conversations import Conversation
from antiphon.storage.images import ImageRecord
from antiphon.storage.recordings import PART_BYTES, Recording
from antiphon.storage.sql import open_database
from antiphon.storage.sql.copying import copy_database

pytestmark = pytest.mark.real_time

MAX_BYTES = 50 << 20
"""How much of the data may be in memory together."""
MAX_IMAGE_BYTES = 20 << 20


async def test_large_rows_are_copied_a_few_at_a_time(tmp_path: Path) -> None:
    source, target = tmp_path / "source.db", tmp_path / "target.db"
    content = os.urandom(100_000)
    database = await open_database(source)
    await database.conversations.create(Conversation("c1", "ann", "A talk", 1, 1))
    await database.recordings.add(Recording("r1", "c1", "ann", "v1", 0, 1, 2, 1, "opus", "f.opus", "here"))
    for number in range(150):
        await database.recordings.add_part("r1", number, content[:100])
    for number in range(5):
        await database.images.add(ImageRecord(f"{number}.png", "ann", "", "m", number, "image/png"), content)
    await database.aclose()
    await (await open_database(target)).aclose()
    progress = [0]
    copied = await asyncio.to_thread(copy_database, source, target, lambda done, total: progress.append(done))
    steps = Counter(after - before for before, after in pairwise(progress))
    # The five images, and the 150 parts.
    assert steps[2] == 2
    assert max(steps) * PART_BYTES <= MAX_BYTES
    assert 2 * MAX_IMAGE_BYTES <= MAX_BYTES
    assert copied == progress[-1]
    database = await open_database(target)
    assert await database.images.read("4.png") == (ImageRecord("4.png", "ann", "", "m", 4, "image/png"), content)
    assert await database.recordings.part("r1", 149) == content[:100]
    await database.aclose()

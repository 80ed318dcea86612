"""Two thousand answers whose connection is cut on the way to a listener. `make soak` runs it."""

from pathlib import Path

import pytest

from tests.fault.test_cuts import run_cuts

pytestmark = pytest.mark.real_time


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("model", ["storyteller", "native"])
@pytest.mark.parametrize("seed", [11, 12, 13, 14, 15])
async def test_an_answer_that_is_cut_is_told_and_heard_once(tmp_path: Path, seed: int, model: str) -> None:
    assert await run_cuts(tmp_path, 200, seed=seed, at_once=40, model=model) == []

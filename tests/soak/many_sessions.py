"""Three times 300 sessions that come and go. `make soak` runs it; `make test` opens a tenth."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wire.served import UNLIMITED, Served, serve
from tests.wire.test_memory import hold_and_assert_nothing_is_left

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(600)]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path, limits=UNLIMITED) as served:
        yield served


async def test_sessions_that_come_and_go_leave_nothing_behind(served: Served) -> None:
    await hold_and_assert_nothing_is_left(served, 300)

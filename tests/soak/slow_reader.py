"""A client that never reads, with the 20 s that a real server gives it. `make soak` runs it; `make test` gives 2 s."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.server.connections import Deadlines
from tests.wire.served import UNLIMITED, Served, serve
from tests.wire.test_slow_reader import disturb_and_assert_closed

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path, limits=UNLIMITED) as served:
        yield served


async def test_a_client_that_never_reads_disturbs_nobody_and_is_closed(served: Served) -> None:
    await disturb_and_assert_closed(served, Deadlines().write_s)

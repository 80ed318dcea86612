"""Ten thousand frames that no client should send. `make soak` runs it; `make test` sends a tenth."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wire.served import UNLIMITED, Served, serve
from tests.wire.test_fuzz import VOICE, send_and_assert_no_harm

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(600)]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path, voice=VOICE, limits=UNLIMITED) as served:
        yield served


async def test_ten_thousand_bad_frames_do_no_harm(served: Served) -> None:
    await send_and_assert_no_harm(served, 10_000)

"""Servers for the tests of sessions."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.calls import House


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House()
    yield house
    await house.aclose()

"""Servers for the tests of the gateway."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.calls import ScriptedServers


@pytest.fixture
async def servers() -> AsyncIterator[ScriptedServers]:
    servers = ScriptedServers()
    yield servers
    await servers.aclose()

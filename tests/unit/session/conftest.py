"""Servers for the tests of sessions, and state machines in the middle of a turn."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.calls import ScriptedServers
from tests.unit.session.machine_steps import LISTENS, Talk, said, spoken


@pytest.fixture
async def servers() -> AsyncIterator[ScriptedServers]:
    servers = ScriptedServers()
    yield servers
    await servers.aclose()


@pytest.fixture
def listening() -> Talk:
    talk = Talk()
    talk.do(LISTENS)
    return talk


@pytest.fixture
def processing(listening: Talk) -> Talk:
    listening.hear("what time is it")
    return listening


@pytest.fixture
def speaking(processing: Talk) -> Talk:
    processing.do(said("It is noon. "), said("Time to eat."))
    processing.do(spoken(b"\0\0", 1_000, "It is noon."), spoken(b"\0\0", 1_000, "Time to eat."))
    return processing

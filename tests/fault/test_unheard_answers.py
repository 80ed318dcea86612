"""An answer that was sent into a dead connection, or lost with its server, is spoken when its listener comes back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon.session.state import WATCHDOG_MS
from tests.fault.cuts import Listener
from tests.fault.servers import Served, Servers, leaving, recital, servers_in

pytestmark = pytest.mark.real_time

SHORT = "recite 4"
SHORT_S = 2.0
"""How long it takes to make and to play its answer."""


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[Servers]:
    async with servers_in(tmp_path) as servers:
        yield servers


async def ask(served: Served, question: str) -> Listener:
    listener = await Listener().open(served)
    await listener.send("text_message", text=question)
    await listener.until("transcript")
    return listener


async def test_an_answer_sent_into_a_dead_connection_is_spoken_by_any_server(servers: Servers) -> None:
    one, two = await asyncio.gather(servers.start(), servers.start())

    async def come_back(heir: Served) -> Listener:
        listener = await ask(one, SHORT)
        # The connection is open, but nothing arrives any more. The server believes that the answer was played.
        dead = listener._socket
        assert dead is not None
        await asyncio.sleep(SHORT_S + WATCHDOG_MS / 1000)
        await listener.resume(heir)
        # After the replay, in which the answer seems to be over.
        await listener.send("ping", t=1)
        await listener.until("pong")
        assert listener.state == "speaking"
        await listener.listen_out(answers=1)
        await dead.close()
        await listener.leave()
        return listener

    for listener in await asyncio.gather(come_back(one), come_back(two)):
        assert listener.session["resumed"] is True
        assert listener.heard == [recital(SHORT).strip()]
        assert listener.shown == [("user", SHORT), ("assistant", recital(SHORT))]


@pytest.mark.parametrize("end", ["kill", "drain"])
async def test_a_model_with_its_own_voice_says_the_rest_on_another_server(servers: Servers, end: str) -> None:
    one, two = await asyncio.gather(servers.start(model="native", drain_s=0.5), servers.start(model="native"))
    question = "recite 12"
    listeners = await asyncio.gather(*(ask(one, question) for _ in range(4)))
    async with leaving(listeners):
        # One has heard nothing, and the others a sentence or two more each.
        await asyncio.gather(*(each.listen(0.8 * number, answers=1) for number, each in enumerate(listeners)))
        if end == "kill":
            await one.kill()
        else:
            one.terminate()
        await asyncio.gather(*(listener.hear_out() for listener in listeners))
        await asyncio.gather(*(listener.resume(two) for listener in listeners))
        await asyncio.gather(*(listener.listen_out(answers=1) for listener in listeners))
    answer, repeated = recital(question), 0
    for listener in listeners:
        [heard] = listener.heard
        assert set(answer.split()) <= set(heard.split()), "words were lost"
        repeated += heard.split() != answer.split()
        assert listener.shown == [("user", question), ("assistant", answer)]
        assert len(listener.every("response")) == 1
    # What a server says in the moment before its death may not be on disk yet, and is then said again.
    assert repeated <= (end == "kill")

"""SIGTERM while requests are being answered: each client gets an explanation, and may retry."""

import asyncio
import json
import signal
from pathlib import Path

import httpx2
import pytest

from antiphon.protocol.closing import RESTARTING
from tests.fakes.chat_server import ChatServer, End, delta, stream
from tests.wire.caller import call
from tests.wire.served import serve

pytestmark = pytest.mark.real_time

PATIENCE_S = 40.0


def is_refused(answer: httpx2.Response) -> bool:
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/json")
    assert answer.json()["error"]["code"] == "unavailable"
    return int(answer.headers["retry-after"]) > 0


async def test_requests_interrupted_by_a_stop_or_sent_during_it_are_told_to_retry(
    tmp_path: Path,
) -> None:
    endless = stream(delta(content="Once upon a time "), done=False, end=End.STALL)
    async with ChatServer(lambda request: endless) as model, httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        with serve(tmp_path, model={"text": f"openai:{model.url}#m"}) as served:
            chat = f"{served.http}/api/chat"
            waiting = asyncio.create_task(client.post(chat, json={"message": "Tell me a story."}))
            events = {"Accept": "text/event-stream"}
            reading = asyncio.create_task(client.post(chat, json={"message": "Tell me a story."}, headers=events))
            async with asyncio.timeout(PATIENCE_S):
                while len(model.requests) < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            served.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE_S):
                while (await client.get(f"{served.http}/ready")).status_code != 503:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            late = await client.post(chat, json={"message": "hello"})
            assert not waiting.done()
            assert is_refused(late)
            assert is_refused(await waiting)
            done = (await reading).text.partition("event: done\ndata: ")[2]
            assert json.loads(done)["error"]["code"] == "unavailable"
            assert await asyncio.to_thread(served.process.wait, PATIENCE_S) == 0
            assert served.failures == []


async def test_a_socket_closed_by_a_stop_gets_the_reason(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            served.process.send_signal(signal.SIGTERM)
            closing = await caller.closing()
        assert (closing.code, closing.reason) == (RESTARTING.code, RESTARTING.reason)

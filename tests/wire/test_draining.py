"""SIGTERM from an orchestrator: callers are told to leave before their sockets are closed."""

import asyncio
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

pytestmark = pytest.mark.real_time

CHILD = Path(__file__).with_name("serving_child.py")


class Child:
    def __init__(self, process: Process, port: int) -> None:
        self.process, self.port = process, port

    async def rest(self) -> list[str]:
        out, _ = await asyncio.wait_for(self.process.communicate(), 10)
        return out.decode().splitlines()

    async def readiness(self) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET /ready HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return int(answer.split()[1])


@asynccontextmanager
async def serving(drain_s: float) -> AsyncIterator[Child]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(CHILD), str(drain_s), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert process.stdout is not None
    try:
        yield Child(process, int(await process.stdout.readline()))
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def call(child: Child) -> ClientConnection:
    caller = await connect(f"ws://127.0.0.1:{child.port}/ws")
    await caller.send("hello")
    assert await caller.recv() == "hello"
    return caller


async def test_a_caller_gets_go_away_before_the_socket_is_closed_with_1012() -> None:
    async with serving(drain_s=0.3) as child:
        caller = await call(child)
        child.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(caller.recv(), 5) == "go_away"
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(caller.recv(), 5)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012
        assert await child.rest() == ["drained", "socket closed with 1012", "stores closed"]


async def test_the_process_exits_cleanly_after_draining() -> None:
    async with serving(drain_s=0) as child:
        child.process.send_signal(signal.SIGTERM)
        assert (await child.rest())[-1] == "stores closed"
        assert child.process.returncode == 0


async def test_a_draining_server_is_not_ready() -> None:
    async with serving(drain_s=2) as child:
        caller = await call(child)
        assert await child.readiness() == 200
        child.process.send_signal(signal.SIGTERM)
        await caller.recv()
        assert await child.readiness() == 503
        await caller.close()


async def test_a_call_continues_while_the_server_drains() -> None:
    async with serving(drain_s=2) as child:
        caller = await call(child)
        child.process.send_signal(signal.SIGTERM)
        await caller.recv()
        await caller.send("last words")
        assert await asyncio.wait_for(caller.recv(), 1) == "last words"
        await caller.close()


async def test_a_second_signal_ends_the_process_at_once() -> None:
    async with serving(drain_s=60) as child:
        caller = await call(child)
        child.process.send_signal(signal.SIGTERM)
        await caller.recv()
        child.process.send_signal(signal.SIGTERM)
        assert (await asyncio.wait_for(child.rest(), 3))[-1] == "stores closed"
        await caller.close()

"""The contenders: our server with its clients, and processes that hold their sessions themselves."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryFile
from typing import IO, Final, Protocol

import psutil

from bench.live.call import make_crowd
from bench.live.simulator import MODEL, TURN_S, Simulator
from bench.load.crowd import Crowd
from bench.load.ledger import Ledger
from bench.load.process import Crashed, ServerProcess, load_server, spawn, started

PATIENCE_S: Final = 90.0


class Run(Protocol):
    """A contender whose sessions are connected."""

    def cpu_s(self) -> float: ...

    async def stream(self, seconds: float) -> None:
        """Streams all microphones."""
        ...

    async def collect(self) -> None:
        """Adds to the ledger what the contender itself has timed."""
        ...


class OurRun:
    def __init__(self, server: ServerProcess, crowd: Crowd) -> None:
        self._server = server
        self._crowd = crowd

    def cpu_s(self) -> float:
        return self._server.cpu_s()

    async def stream(self, seconds: float) -> None:
        await self._crowd.talk_for(seconds)

    async def collect(self) -> None:
        """Its clients are in this process and have written to the ledger."""


class PeerRun:
    def __init__(self, process: Popen[str], log: IO[str], ledger: Ledger) -> None:
        self._process = process
        self._log = log
        self._ledger = ledger
        self._seen = psutil.Process(process.pid)

    def cpu_s(self) -> float:
        times = self._seen.cpu_times()
        return float(times.user + times.system)

    async def stream(self, seconds: float) -> None:
        """It streams by itself, from the time at which it was ready."""
        await asyncio.sleep(seconds)

    async def collect(self) -> None:
        await self.tell("")
        for kind, all_ in json.loads(await self.read()).items():
            for sent_ns, came_ns in all_:
                self._ledger.note(kind, sent_ns, came_ns)

    async def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        await asyncio.to_thread(print, line, file=self._process.stdin, flush=True)

    async def read(self) -> str:
        """Returns the next line of its output. Raises `Crashed`."""
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(asyncio.to_thread(self._process.stdout.readline), PATIENCE_S)
        except TimeoutError:
            self._process.kill()
            raise Crashed(f"It said nothing for {PATIENCE_S:.0f} s.") from None
        if not line:
            self._log.seek(0)
            raise Crashed((self._log.read().strip() or "It said nothing.").splitlines()[-1])
        return line.strip()


@asynccontextmanager
async def run_ours(
    simulator: Simulator,
    ledger: Ledger,
    sessions: int,
    core: int,
    env: Mapping[str, str],
    folder: Path,
    profile: Path | None = None,
) -> AsyncIterator[Run]:
    """Starts our server, which connects to the simulator, and its clients in this process."""
    command = load_server(folder, "sqlite", None, profile, f"gemini-live:{simulator.url}#{MODEL}")
    with started(command, core, env) as server:
        crowd = make_crowd(server.address, simulator, ledger, TURN_S)
        await crowd.gather(sessions)
        await _wait_for(simulator, sessions)
        yield OurRun(server, crowd)
        await crowd.leave()


@asynccontextmanager
async def run_peer(
    command: Sequence[str],
    simulator: Simulator,
    ledger: Ledger,
    sessions: int,
    core: int,
    env: Mapping[str, str],
) -> AsyncIterator[Run]:
    """Starts a process that connects to the simulator and streams by itself. Raises `Crashed`."""
    with TemporaryFile("w+") as log, spawn(command, core, env, log) as process:
        try:
            run = PeerRun(process, log, ledger)
            order = {"url": simulator.url, "model": MODEL, "sessions": sessions, "ramp_s": TURN_S}
            await run.tell(json.dumps(order))
            if await run.read() != "ready":
                raise Crashed("It wrote something else than that it is ready.")
            await _wait_for(simulator, sessions)
            yield run
        finally:
            process.kill()


async def _wait_for(simulator: Simulator, sessions: int) -> None:
    """Waits until all sessions are connected. Raises `Crashed`."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            await simulator.connected(sessions)
    except TimeoutError:
        raise Crashed(f"Only {simulator.open} of {sessions} sessions were connected.") from None

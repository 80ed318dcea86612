"""Measures how a model server that misbehaves in every way we know affects other sessions of our server.

README.md says what is measured.
"""

import argparse
import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.load.watched_child import FILE as STEPS
from tests.fakes.hostile_model import Mode, hostile_model
from tests.wire.served import UNLIMITED, Served, serve

RESULTS: Final = Path(__file__).parent / "results"
SECONDS: Final = 3.0
SERVER: Final = "bench.load.watched_child"
NOBODY: Final = "nobody attacks"
MODES: Final = tuple(mode for mode in Mode if mode is not Mode.PROMPT)
ATTACKERS: Final = 2
BYSTANDERS: Final = 5
PING_EVERY_S: Final = 0.025
MAX_GROWTH_MB: Final = 50.0
MAX_P99_MS: Final = 100.0
MAX_STEP_MS: Final = 50.0


class Row(Struct, frozen=True):
    mode: str
    turns: int
    """How many turns of the attackers ended."""
    growth_mb: float
    """The largest growth of the server's resident size."""
    p50_ms: float
    p99_ms: float
    step_ms: float
    """How long the server's event loop ran without a break at most, in processor time."""


def main() -> None:
    options = _parse()
    if options.bystand:
        print(json.dumps(asyncio.run(bystand(options.bystand, options.seconds))))
        return
    console = Console(highlight=False, soft_wrap=True)
    RESULTS.mkdir(exist_ok=True)
    modes = [None, *(map(Mode, options.modes.split(",")) if options.modes else MODES)]
    rows = []
    with hostile_model() as model:
        for mode in modes:
            with (
                TemporaryDirectory(dir=RESULTS) as folder,
                serve(
                    Path(folder), limits=UNLIMITED, model={"text": model}, child="bench.load.watched_child"
                ) as served,
            ):
                rows.append(asyncio.run(attack(served, mode, options.seconds)))
            console.print(f"{rows[-1].mode}: {rows[-1].growth_mb:+.1f} MB, p99 {rows[-1].p99_ms:.1f} ms", style="dim")
    console.print(show(rows))
    (RESULTS / "hostile_model.json").write_bytes(msgspec.json.format(msgspec.json.encode(rows)))


async def attack(served: Served, mode: Mode | None, seconds: float) -> Row:
    """Runs sessions whose model misbehaves, together with others that only send pings.

    Without a mode nobody attacks, which shows what the machine itself adds.
    """
    async with await enter(served.url) as warm:
        await say(warm, Mode.GOOD)
    known = len(read_steps(served))
    before = most = served.resident_bytes
    # In their own process, so that what the attackers read does not delay them.
    watching = await asyncio.create_subprocess_exec(
        *(sys.executable, __file__, "--bystand", served.url, "--seconds", str(seconds)), stdout=PIPE
    )
    told = asyncio.create_task(watching.communicate())
    attackers = [] if mode is None else [asyncio.create_task(insist(served.url, mode)) for _ in range(ATTACKERS)]
    while not told.done():
        most = max(most, served.resident_bytes)
        await asyncio.sleep(0.02)
    for attacker in attackers:
        attacker.cancel()
    turns = sum(await asyncio.gather(*attackers))
    times_ms = sorted(json.loads(told.result()[0]))
    step_ms = max(read_steps(served)[known:], default=0.0)
    return Row(mode or NOBODY, turns, (most - before) / 2**20, pick(times_ms, 0.5), pick(times_ms, 0.99), step_ms)


async def insist(url: str, mode: Mode) -> int:
    """Asks the model repeatedly; returns the number of turns when it is cancelled."""
    turns = 0
    with suppress(asyncio.CancelledError, ConnectionClosed):
        async with await enter(url) as socket:
            while True:
                await say(socket, mode)
                turns += 1
    return turns


async def bystand(url: str, seconds: float) -> list[float]:
    """Sends pings and returns how long each took, in milliseconds."""
    return [ms for times in await asyncio.gather(*(ping(url, seconds) for _ in range(BYSTANDERS))) for ms in times]


async def ping(url: str, seconds: float) -> list[float]:
    times_ms = []
    async with await enter(url) as socket:
        until_s = perf_counter() + seconds
        while (sent_s := perf_counter()) < until_s:
            await socket.send('{"type":"ping","t":1}')
            while '"pong"' not in str(await socket.recv()):
                pass
            times_ms.append((perf_counter() - sent_s) * 1_000)
            await asyncio.sleep(PING_EVERY_S)
    return times_ms


async def enter(url: str) -> ClientConnection:
    socket = await connect(url, max_size=None, compression=None)
    await socket.send('{"type":"hello","mode":"text"}')
    while '"session"' not in str(await socket.recv()):
        pass
    return socket


async def say(socket: ClientConnection, text: str) -> None:
    """Makes a turn. Messages are not decoded, so that the attackers are not slower than the server."""
    await socket.send(json.dumps({"type": "text_message", "text": text}))
    while '"state":"idle"' not in str(await socket.recv()):
        pass


def read_steps(served: Served) -> list[float]:
    """Returns the long steps of the server's event loop, each in milliseconds without a break."""
    return [float(line) for line in served.log_path.with_name(STEPS).read_text().split()]


def pick(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def show(rows: Sequence[Row]) -> Table:
    table = Table("the model's server", "turns", "memory", "pong p50", "pong p99", "longest step", "bounds")
    for row in rows:
        missed = [
            name
            for name, value, most in (
                ("memory", row.growth_mb, MAX_GROWTH_MB),
                ("p99", row.p99_ms, MAX_P99_MS),
                ("step", row.step_ms, MAX_STEP_MS),
            )
            if value > most
        ]
        verdict = f"[red]missed: {', '.join(missed)}[/]" if missed else "[green]met[/]"
        figures = (f"{row.growth_mb:+.1f} MB", f"{row.p50_ms:.1f} ms", f"{row.p99_ms:.1f} ms", f"{row.step_ms:.0f} ms")
        table.add_row(row.mode, str(row.turns), *figures, verdict)
    return table


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long each kind of misbehaviour is measured")
    parser.add_argument("--modes", default="", help='only these, such as "drip,endless line"')
    parser.add_argument("--bystand", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()

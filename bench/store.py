"""Measures what a conversation waits for: a turn, a session and a tool call being stored, in SQLite and in Postgres.

One session stores one thing after the other; of 200 sessions, each stores one thing a second. README.md says what is
measured.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from msgspec.structs import replace

from antiphon.storage.base import CallRecord
from antiphon.storage.conversations import Conversation, Turn
from antiphon.storage.sessions import Fence, SessionRecord
from antiphon.storage.sql import Database, open_database
from tests.fakes.postgres import run_postgres

RESULTS: Final = Path(__file__).parent / "results"
ON_DISK: Final = Path("/var/tmp")
"""Not /tmp, which is often in memory. The user that Postgres runs as may enter it."""
SIZES: Final = (1, 200)
ALONE: Final = 500
"""How many operations one session makes, as fast as it can."""
SECONDS: Final = 5
"""How long several sessions make one operation a second each."""
WARM_UP: Final = 20
ROUNDS: Final = 3
SAFE: Final = {"fsync": "on", "full_page_writes": "on", "autovacuum": "on", "shared_buffers": "128MB"}
ENGINES: Final = {
    "SQLite": None,
    "Postgres": {**SAFE, "synchronous_commit": "off"},
    "Postgres, synchronous": {**SAFE, "synchronous_commit": "on"},
}
BASELINE: Final = "SQLite"
TURN: Final = Turn("user", "What is the weather like in Oslo today?", False, 2_000, b'{"role":"user"}' * 8)


class Figures(NamedTuple):
    p50_ms: float
    p99_ms: float


class Client:
    """One session in one conversation."""

    def __init__(self, database: Database, number: int, run: str) -> None:
        self._database = database
        self._id = f"{run}-{number}"
        self._record = SessionRecord(
            self._id, "ann", self._id, "text", "v1", 0, b"{}" * 200, self._id, 2**40, "node", 1, 2**40, 0
        )
        self._sent = 0

    async def begin(self) -> None:
        await self._database.conversations.create(Conversation(self._id, "ann", "", 1, 1))
        await self._database.sessions.begin(self._record)

    async def turn(self, number: int) -> None:
        """A message of the transcript with two messages to the client and the record of the session."""
        sent = [(self._sent + 1, "x" * 200), (self._sent + 2, "y" * 200)]
        self._sent += 2
        fence = Fence(self._id, 1)
        await self._database.conversations.append_many(self._id, [TURN], fence, sent=sent, record=self._record)

    async def save(self, number: int) -> None:
        await self._database.sessions.save(self._record)

    async def tool(self, number: int) -> None:
        """The record before a tool runs, and its result after it."""
        name = f"{self._id}-{number}"
        record = CallRecord(name, self._id, name, name, "f" * 64, "set_reminder", 1, number, 2**40)
        await self._database.calls.start(record)
        await self._database.calls.finish(replace(record, result=b'{"ok":true}' * 10))


OPERATION: Final[dict[str, Callable[[Client, int], Awaitable[None]]]] = {
    "store a turn": Client.turn,
    "save a session": Client.save,
    "start and finish a tool call": Client.tool,
}


@asynccontextmanager
async def open_engine(settings: dict[str, str] | None) -> AsyncIterator[Database]:
    async with AsyncExitStack() as stack:
        place: Path | str
        if settings is None:
            place = Path(stack.enter_context(TemporaryDirectory(dir=ON_DISK))) / "bench.db"
        else:
            place = stack.enter_context(run_postgres(settings, ON_DISK)).make_database()
        database = await open_database(place)
        stack.push_async_callback(database.aclose)
        yield database


async def measure(database: Database, sessions: int, operation: str, run: str) -> Figures:
    clients = [Client(database, number, run) for number in range(sessions)]
    await asyncio.gather(*(client.begin() for client in clients))
    took_ms: list[float] = []
    do = OPERATION[operation]

    async def do_once(client: Client, number: int) -> None:
        began = time.perf_counter()
        await do(client, number + WARM_UP)
        took_ms.append((time.perf_counter() - began) * 1000)

    async def do_every_second(place: int, client: Client) -> None:
        begin = asyncio.get_running_loop().time() + place / sessions
        for number in range(SECONDS):
            await asyncio.sleep(begin + number - asyncio.get_running_loop().time())
            await do_once(client, number)

    for number in range(WARM_UP):
        await asyncio.gather(*(do(client, number) for client in clients[:WARM_UP]))
    if sessions == 1:
        for number in range(ALONE):
            await do_once(clients[0], number)
    else:
        await asyncio.gather(*(do_every_second(place, client) for place, client in enumerate(clients)))
    took_ms.sort()
    return Figures(took_ms[len(took_ms) // 2], took_ms[len(took_ms) * 99 // 100])


async def run(console: Console, rounds: int, sizes: Sequence[int]) -> dict[str, list[Figures]]:
    """Returns the figures of each round, by engine, number of sessions and operation."""
    found: dict[str, list[Figures]] = {}
    async with AsyncExitStack() as stack:
        engines = {name: await stack.enter_async_context(open_engine(given)) for name, given in ENGINES.items()}
        for each in range(rounds):
            for sessions in sizes:
                for operation in OPERATION:
                    for name, database in engines.items():
                        console.print(f"round {each + 1}: {operation}, {sessions} at once, {name} …", style="dim")
                        figures = await measure(database, sessions, operation, f"{each}-{sessions}-{operation}")
                        found.setdefault(_key(name, sessions, operation), []).append(figures)
    return found


def _key(engine: str, sessions: int, operation: str) -> str:
    return f"{engine} | {sessions} | {operation}"


def _median(rounds: Sequence[Figures]) -> Figures:
    return Figures(*(sorted(column)[len(rounds) // 2] for column in zip(*rounds, strict=True)))


def show(console: Console, found: dict[str, list[Figures]], sizes: Sequence[int]) -> None:
    table = Table("sessions", "operation", "database", title="Storing what is said: medians of the rounds")
    for heading in ("p50", "p99", "p50 / SQLite", "p99 / SQLite"):
        table.add_column(heading, justify="right")
    for sessions in sizes:
        for operation in OPERATION:
            baseline = _median(found[_key(BASELINE, sessions, operation)])
            for name in ENGINES:
                figures = _median(found[_key(name, sessions, operation)])
                table.add_row(
                    str(sessions),
                    operation,
                    name,
                    f"{figures.p50_ms:.2f} ms",
                    f"{figures.p99_ms:.2f} ms",
                    f"{figures.p50_ms / baseline.p50_ms:.1f}",
                    f"{figures.p99_ms / baseline.p99_ms:.1f}",
                )
            table.add_section()
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often everything is measured ({ROUNDS})")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="how many sessions at once (1 200)")
    options = parser.parse_args()
    if options.rounds < 1 or min(options.sizes) < 1:
        parser.error("--rounds and --sizes are at least 1")
    console = Console(width=120)
    found = asyncio.run(run(console, options.rounds, options.sizes))
    RESULTS.mkdir(exist_ok=True)
    rounds = {key: [figures._asdict() for figures in each] for key, each in found.items()}
    (RESULTS / "store.json").write_text(json.dumps(rounds, indent=2))
    show(console, found, options.sizes)


if __name__ == "__main__":
    main()

"""A second process with the same database: `storage_child.py DATABASE TASK NAME`, told to go by a line on its input."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from antiphon.storage.base import AuditLine, CallRecord
from antiphon.storage.conversations import Turn
from antiphon.storage.sessions import Fence, Fenced
from antiphon.storage.sql import Database, open_database


def record(name: str, number: int) -> CallRecord:
    return CallRecord(
        f"{name}-{number}", "s1", f"p{number % 100}", f"h{number % 100}", "f", "set_reminder", 1, number, 9
    )


async def start_200(database: Database, name: str) -> None:
    """Starts every one of 100 keys twice, and prints the numbers of those that it won."""
    for number in range(200):
        if await database.calls.start(record(name, number)) is None:
            say(str(number % 100))


async def start_for_ever(database: Database, name: str) -> None:
    """Prints a number only once its record is stored."""
    number = 0
    while True:
        started = CallRecord(f"{name}-{number}", "s1", f"p{number}", None, "f", "set_reminder", 1, number, 9)
        await database.calls.start(started)
        say(str(number))
        number += 1


async def write_much(database: Database, name: str) -> None:
    """Runs every kind of write, 16 tasks at a time."""

    async def write(task: int) -> None:
        for number in range(25):
            started = CallRecord(f"{name}-{task}-{number}", f"s{task}", None, None, "f", "kb_search", 1, number, 9)
            await database.calls.start(started)
            await database.audit.append([AuditLine(number, f"s{task}", name, "text", 1, "kb_search")] * 3)

    await asyncio.gather(*(write(task) for task in range(16)))
    say("done")


async def open_only(database: Database, name: str) -> None:
    await database.calls.start(record(name, 0))
    say("opened")


async def append_when_told(database: Database, name: str) -> None:
    """Appends a turn to the session s1 for every input line, until it is fenced."""
    fence = await take(database, name)
    while True:
        await hear()
        try:
            say(str(await append(database, name, fence)))
        except Fenced:
            return say("fenced")


async def append_until_fenced(database: Database, name: str) -> None:
    fence = await take(database, name)
    while True:
        try:
            say(str(await append(database, name, fence)))
        except Fenced:
            return say("fenced")


async def take(database: Database, name: str) -> Fence:
    record = await database.sessions.take_lease("s1", name, 2_000, 6_000)
    say("leased")
    return Fence(record.id, record.lease_token)


async def append(database: Database, name: str, fence: Fence) -> int:
    (seq,) = await database.conversations.append_many("c1", [Turn("user", f"By {name}.", False, 2_000, b"{}")], fence)
    return seq


async def resume_100(database: Database, name: str) -> None:
    """Resumes with every one of 100 handles, and prints the sessions that it got."""
    for number in range(100):
        record = await database.sessions.rotate(f"h{number}", f"{name}-{number}", "ann", 2_000, 9_000)
        if record is not None:
            say(record.id)


TASKS: dict[str, Callable[[Database, str], Awaitable[None]]] = {
    each.__name__: each
    for each in (
        start_200,
        start_for_ever,
        write_much,
        open_only,
        append_when_told,
        append_until_fenced,
        resume_100,
    )
}


def say(word: str) -> None:
    print(word, flush=True)


async def hear() -> None:
    await asyncio.to_thread(sys.stdin.readline)


async def main(place: Path | str, task: str, name: str) -> None:
    say("ready")
    await hear()
    database = await open_database(place)
    try:
        await TASKS[task](database, name)
    finally:
        await database.aclose()


if __name__ == "__main__":
    given, *rest = sys.argv[1:]
    asyncio.run(main(given if "://" in given else Path(given), *rest))

"""A second process with the same database: `storage_child.py DATABASE TASK NAME`, told to go by a line on its input."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

from antiphon.storage.base import AuditLine, CallRecord
from antiphon.storage.sql import Database, open_database


def record(name: str, number: int) -> CallRecord:
    return CallRecord(
        f"{name}-{number}", "s1", f"p{number % 100}", f"h{number % 100}", "f", "set_reminder", 1, number, 9
    )


async def start_200(database: Database, name: str) -> None:
    """Twice every one of 100 keys, and the numbers of those that it won."""
    for number in range(200):
        if await database.calls.start(record(name, number)) is None:
            say(str(number % 100))


async def start_for_ever(database: Database, name: str) -> None:
    """Says a number only when its record is stored."""
    number = 0
    while True:
        started = CallRecord(f"{name}-{number}", "s1", f"p{number}", None, "f", "set_reminder", 1, number, 9)
        await database.calls.start(started)
        say(str(number))
        number += 1


async def write_much(database: Database, name: str) -> None:
    """Everything that writes, 16 tasks at a time."""

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


TASKS: dict[str, Callable[[Database, str], Awaitable[None]]] = {
    each.__name__: each for each in (start_200, start_for_ever, write_much, open_only)
}


def say(word: str) -> None:
    print(word, flush=True)


async def main(path: str, task: str, name: str) -> None:
    say("ready")
    await asyncio.to_thread(sys.stdin.readline)
    database = await open_database(path)
    try:
        await TASKS[task](database, name)
    finally:
        await database.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

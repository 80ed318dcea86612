"""Reminders that ring while servers on one database die: none is lost, and no client gets one twice."""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from random import Random

from antiphon.storage.reminders import ReminderRecord
from antiphon.storage.sql import open_database
from tests.fault.servers import Client, Served, Servers


async def set_reminders(servers: Servers, count: int, within_s: float, seed: int) -> set[str]:
    """Stores reminders of the local user that come due from now on, and returns the ids under which they will ring."""
    rng, now_ms = Random(seed), round(time.time() * 1000)
    database = await open_database(servers.place)
    rings = set()
    try:
        for number in range(count):
            due_ms = now_ms + 500 + round(rng.uniform(0, within_s) * 1000)
            id = f"r{number:04}"
            rings.add(f"{id}-{due_ms}")
            record = ReminderRecord(id, "local", "reminder", f"thing {number}", due_ms, "UTC", None, now_ms)
            await database.reminders.add(record, count)
    finally:
        await database.aclose()
    return rings


def rung(client: Client) -> Counter[str]:
    return Counter(message["id"] for message in client.every("reminder"))


async def connect_stored(served: Served) -> Client:
    """Connects a client whose session can be resumed: it has had a turn."""
    client = await Client().connect(served)
    await client.ask("tell s 1")
    return client


async def move(client: Client, heir: Served) -> None:
    """Reads what still comes from a server that dies, and resumes with the next one."""
    await client.hear_out()
    await client.resume(heir)
    assert client.session["resumed"] is True


async def hear_all(client: Client, rings: set[str], more_s: float = 1.5) -> None:
    """Reads until the client has heard all of these, and then for a while, since there could be more."""
    while not rings <= rung(client).keys():
        await client.hear()
    with suppress(TimeoutError):
        async with asyncio.timeout(more_s):
            while True:
                await client.hear()

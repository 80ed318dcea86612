"""Wakes other processes by LISTEN and NOTIFY of Postgres.

A process has one connection that listens. It notifies the others in a statement of its own, after the change was
committed: a NOTIFY inside a transaction would make all commits of the database wait for one another.
"""

import asyncio
from contextlib import suppress
from typing import Final

from sqlalchemy import URL, bindparam, func, select

from antiphon.storage.base import StorageError
from antiphon.storage.changes import ALL_TOPICS, LocalChanges, Topic
from antiphon.storage.sql.connections import Connections
from antiphon.telemetry.log import get_logger

CHANNEL: Final = "antiphon"
COLLECT_S: Final = 0.02
"""How long announcements are collected, so that many turns at the same time cause one notification."""
RETRY_S: Final = 1.0
LONGEST_RETRY_S: Final = 15.0

_NOTIFY: Final = select(func.pg_notify(CHANNEL, bindparam("topic")))

log = get_logger(__name__)


class PostgresChanges(LocalChanges):
    def __init__(self, connections: Connections, url: URL) -> None:
        super().__init__()
        self._connections = connections
        self._url = url
        self._announced: set[Topic] = set()
        self._sending: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None

    def subscribe(self, *topics: Topic) -> asyncio.Event:
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
        return super().subscribe(*topics)

    def announce(self, topic: Topic) -> None:
        super().announce(topic)
        self._announced.add(topic)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def aclose(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        if self._sending is not None:
            await asyncio.wait([self._sending])

    async def _send(self) -> None:
        while self._announced:
            await asyncio.sleep(COLLECT_S)
            topics, self._announced = self._announced, set()
            for topic in topics:
                # The others look by themselves, if not so soon.
                with suppress(StorageError):
                    await self._connections.fetch(_NOTIFY, {"topic": str(topic)})

    async def _listen(self) -> None:
        """Listens until it is cancelled, on a new connection whenever one was lost."""
        from psycopg import AsyncConnection, Error

        from antiphon.storage.sql.psycopg_connection import PARAMETERS

        address = self._url.set(drivername="postgresql").render_as_string(hide_password=False)
        retry_s = RETRY_S
        while True:
            try:
                async with await AsyncConnection.connect(address, autocommit=True, **PARAMETERS) as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    retry_s = RETRY_S
                    # What was announced while nobody listened is lost.
                    self.wake(ALL_TOPICS)
                    async for notification in connection.notifies():
                        self.wake([topic for topic in Topic if topic == notification.payload])
            except (Error, OSError) as error:
                log.warning("notifications_lost", error=str(error).partition("\n")[0], retry_s=retry_s)
            await asyncio.sleep(retry_s)
            retry_s = min(LONGEST_RETRY_S, retry_s * 2)

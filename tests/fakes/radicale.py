"""A real CalDAV server: Radicale in a process of its own, with its data in a folder of the test."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import icalendar

USER: Final = "ann"
PASSWORD: Final = "a secret of ann"
START_S: Final = 20.0


@dataclass(frozen=True)
class Radicale:
    url: str
    folder: Path

    def make_calendar(self, name: str) -> None:
        """Makes a calendar of the user by writing its files, as the server's administrator may."""
        collection = self.folder / "collection-root" / USER / name.lower()
        collection.mkdir(parents=True)
        (collection / ".Radicale.props").write_text(
            f'{{"tag": "VCALENDAR", "D:displayname": "{name}", "C:supported-calendar-component-set": "VEVENT"}}'
        )

    def put(self, calendar: str, ics: str, name: str = "event") -> None:
        """Adds an event, as another program would."""
        path = self.folder / "collection-root" / USER / calendar.lower() / f"{name}.ics"
        path.write_bytes(ics.replace("\n", "\r\n").encode())

    def events(self) -> list[icalendar.Event]:
        """All events that the server has on its disk, in all calendars."""
        files = sorted((self.folder / "collection-root").glob("*/*/*.ics"))
        calendars = [icalendar.Calendar.from_ical(path.read_text()) for path in files]
        return [event for calendar in calendars for event in calendar.walk("VEVENT")]  # type: ignore[misc]

    def titles(self) -> list[str]:
        return sorted(str(event["SUMMARY"]) for event in self.events())


@contextmanager
def run_radicale(folder: Path) -> Iterator[Radicale]:
    """Runs the server, with the calendar "Personal" of one user, who has a password."""
    users = folder / "users"
    users.write_text(f"{USER}:{PASSWORD}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "config": "",
        "server-hosts": f"127.0.0.1:{port}",
        "storage-filesystem-folder": str(folder / "data"),
        "auth-type": "htpasswd",
        "auth-htpasswd-filename": str(users),
        "auth-htpasswd-encryption": "plain",
        "auth-delay": "0",
        "logging-level": "warning",
    }
    command = [sys.executable, "-m", "radicale", *(f"--{name}={value}" for name, value in options.items())]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stderr=log, stdout=log) as process:
        try:
            _wait_for(port, process)
            server = Radicale(f"http://127.0.0.1:{port}/", folder / "data")
            server.make_calendar("Personal")
            yield server
        finally:
            process.terminate()


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        assert process.poll() is None, "radicale did not start"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise AssertionError("radicale does not answer")

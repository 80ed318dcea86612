"""`antiphon calendar …`: lists events, and imports and exports the local calendar."""

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from antiphon.cli.data import LocalUserOption, local_user, open_data, plain, progress_bar
from antiphon.cli.options import ConfigOption, UsageError, settings_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.progress import Progress

    from antiphon.config import Settings
    from antiphon.storage.calendar import StoredEvent
    from antiphon.tools.capabilities.calendar import Event

app = typer.Typer(no_args_is_help=True)

MAX_FILE_BYTES: Final = 64 * 1024 * 1024
MAX_NAME_CHARS: Final = 60


@app.command("list")
def list_events(
    when: Annotated[
        str, typer.Argument(metavar="WHEN", help='A day or a range, such as "tomorrow" or "next week".')
    ] = "the next 7 days",
    user: LocalUserOption = None,
    config: ConfigOption = None,
) -> None:
    """List the events of a user's calendar, in the time zone of this machine."""
    events = asyncio.run(_list(settings_for(config), user or local_user(), when))
    if not events:
        typer.echo("There are no events in that time.")
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("start", "end", "title", "calendar")
    for event in events:
        last = "all day" if event.all_day else event.end.isoformat(sep=" ", timespec="minutes")[:16]
        start = event.start.isoformat(sep=" ", timespec="minutes")
        cells = (start[:10] if event.all_day else start[:16], last, event.title, event.calendar)
        table.add_row(*(escape(plain(cell)) for cell in cells))
    Console(highlight=False).print(table)


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An iCalendar file (.ics).")],
    calendar: Annotated[
        str, typer.Option("--calendar", metavar="NAME", help="The calendar that gets the events.")
    ] = "primary",
    user: LocalUserOption = None,
    config: ConfigOption = None,
) -> None:
    """Import the events of a file into the local calendar: all of them, or none if one is not valid.

    Events that are there already are replaced.
    """
    settings = _local_settings(config)
    name = calendar.strip()
    if not name or plain(name) != name or len(name) > MAX_NAME_CHARS:
        raise UsageError(f"{calendar!r} is not a valid name. Use 1 to {MAX_NAME_CHARS} printable characters.")
    with progress_bar() as progress:
        events = _read(file, user or local_user(), name, progress)
        asyncio.run(_store(settings, events))
    typer.echo(f"Imported {_count(len(events))} into {plain(name)}.")


@app.command("export")
def export_file(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The new file. [default: standard output]")
    ] = None,
    user: LocalUserOption = None,
    config: ConfigOption = None,
) -> None:
    """Export the local calendar of a user as an iCalendar file."""
    from antiphon.services.calendar.ical import write_file

    settings = _local_settings(config)
    stored = asyncio.run(_stored(settings, user or local_user()))
    content = write_file(event.ics for event in stored)
    if file is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        _write_new(file, content)
    typer.echo(f"Exported {_count(len(stored))}.", err=True)


def _local_settings(config: Path | None) -> "Settings":
    settings = settings_for(config)
    if settings.calendar.provider != "local":
        raise UsageError(
            f'calendar.provider is "{settings.calendar.provider}", so the events are on that server. '
            "Import and export them there."
        )
    return settings


def _read(file: Path, user: str, calendar: str, progress: "Progress") -> "list[StoredEvent]":
    from antiphon.services.calendar.ical import CalendarFileError, read_file
    from antiphon.services.calendar.local import store_event

    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{file} is larger than {MAX_FILE_BYTES // 2**20} MB. Split it.")
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None
    task = progress.add_task("Reading", total=content.count(b"BEGIN:VEVENT"))
    events = []
    try:
        for event in read_file(content):
            events.append(store_event(event, user, calendar))
            progress.advance(task)
    except CalendarFileError as error:
        raise UsageError(f"{file}: {error} Nothing was imported.") from None
    if not events:
        raise UsageError(f"{file} has no events, so nothing was imported.")
    return events


async def _store(settings: "Settings", events: "Sequence[StoredEvent]") -> None:
    async with open_data(settings) as database:
        await database.calendar.put_all(events)


async def _stored(settings: "Settings", user: str) -> "Sequence[StoredEvent]":
    async with open_data(settings) as database:
        return await database.calendar.list(user)


async def _list(settings: "Settings", user: str, when: str) -> "Sequence[Event]":
    import tzlocal

    from antiphon.clock import SystemClock
    from antiphon.compose import open_stores
    from antiphon.services.calendar import open_calendar
    from antiphon.tools.errors import ToolError
    from antiphon.words.periods import parse_period

    clock, zone = SystemClock(), tzlocal.get_localzone()
    period = parse_period(when, clock.now(zone))
    if period is None:
        raise UsageError(f'{when!r} is not a time I understand. Try "tomorrow", "next week" or "2026-01-13".')
    if period.is_moment:
        raise UsageError(f"{when!r} is a moment. Name a day or a range.")
    database = await open_stores(settings)
    try:
        async with open_calendar(settings.calendar, database.calendar, clock, os.environ) as calendars:
            return await calendars.calendar_of(user, zone).events(period.start, period.end)
    except ToolError as error:
        raise UsageError(f"{error.message} {error.suggestion or ''}".strip()) from None
    finally:
        await database.aclose()


def _write_new(file: Path, content: bytes) -> None:
    try:
        # Readable by this user alone, since it says where people are and when.
        with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as target:
            target.write(content)
    except FileExistsError:
        raise UsageError(f"{file} exists. Choose another name.") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}.") from None


def _count(number: int) -> str:
    return "1 event" if number == 1 else f"{number:,} events"

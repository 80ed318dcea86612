"""`antiphon data …`: exports and deletes a user's data, and backs up the database."""

import asyncio
import os
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final

import typer

from antiphon.cli.options import ConfigOption, UsageError, settings_for

if TYPE_CHECKING:
    from rich.progress import Progress

    from antiphon.compose import Database
    from antiphon.config import Settings

app = typer.Typer(no_args_is_help=True)

ALL: Final = 2**31 - 1
PAGE: Final = 100
AUDIT_LINES: Final = 1_000
CHAT_HISTORY: Final = "chat_history"
"""The file in the data folder with what the local user has typed into `antiphon chat`."""
NOTHING_STORED: Final = 'storage.url is "memory", so there is no stored data for this command.'
BACKUP_PAGES: Final = 2_000
"""How many database pages are copied between two steps of the progress bar: 8 MB."""

LocalUserOption = Annotated[str | None, typer.Option("--user", metavar="NAME", help="The user. [default: local]")]


@app.command()
def export(
    user: LocalUserOption = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A new file to write to. [default: standard output]")
    ] = None,
    files: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A new folder to write images and recordings to.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Export everything that is stored about a user, as one JSON object per line.

    These are conversations, calls, records, lists and what else tools keep, and what the local user typed. Images and
    recordings are lines that describe them; with --files, they are also written into a folder, and the lines name
    their files.
    """
    settings = settings_for(config)
    # Both are looked at before either is made.
    for path in (out, files):
        if path is not None and path.exists():
            raise UsageError(f"{path} exists. Choose another name.")
    with _writer(out) as file, progress_bar() as progress:
        exported = asyncio.run(_export(settings, user or local_user(), file, files, progress=progress))
    typer.echo(f"Exported {_list_counts(exported)}.", err=True)


@app.command()
def delete(
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="The user.")],
    yes: Annotated[bool, typer.Option("--yes", help="Confirm the deletion, which cannot be undone.")] = False,
    config: ConfigOption = None,
) -> None:
    """Delete everything that is stored about a user: conversations, calls and their recordings, records, lists and what
    else tools keep, tokens, the block, and what the local user typed.

    The audit of tool calls stays.
    """
    settings = settings_for(config)
    if not yes:
        raise UsageError(
            f"this permanently deletes everything that is stored about the user {user!r}. Add --yes to confirm."
        )
    with progress_bar() as progress:
        deleted = asyncio.run(_delete(settings, user, progress))
    typer.echo(f"Deleted {_list_counts(deleted)}.")


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new file. Its folder must exist.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    config: ConfigOption = None,
) -> None:
    """Copy the database into one file, as a consistent snapshot. The server may keep running.

    The file is a SQLite database, also if the data is in Postgres. It has the recordings of calls if the data is in
    Postgres; otherwise these are files in the data folder, to be copied separately.
    """
    settings = settings_for(config)
    source = database_of(settings)
    if isinstance(source, Path) and not source.exists():
        raise UsageError(f"there is no database at {source} yet, so there is nothing to back up.")
    if file.exists() and not force:
        raise UsageError(f"{file} exists. Choose another name, or replace it with --force.")
    if file.is_dir() or (isinstance(source, Path) and file.exists() and file.samefile(source)):
        raise UsageError(f"{file} cannot be replaced by a backup. Choose another name.")
    with progress_bar() as progress:
        task = progress.add_task("Backing up")
        _copy(source, file, lambda done, total: progress.update(task, completed=done, total=total))
    typer.echo(f"Backed up {settings.database_name} into {file} ({file.stat().st_size:,} bytes).")


# Shared with the other commands that use the database.


@asynccontextmanager
async def open_data(settings: "Settings") -> AsyncIterator["Database"]:
    """Opens the database of the settings. Raises `UsageError` if it is in memory."""
    from antiphon.compose import open_stores

    if not settings.keeps_data:
        raise UsageError(NOTHING_STORED)
    database = await open_stores(settings)
    try:
        yield database
    finally:
        await database.aclose()


def database_of(settings: "Settings") -> Path | str:
    """Returns the file of the database, or its address. Raises `UsageError` if it is in memory."""
    place = settings.database
    if place is None:
        raise UsageError(NOTHING_STORED)
    return place


def check_unused(settings: "Settings", place: Path | str) -> None:
    """Raises `UsageError` if a server uses the database. Who has a file open is not known, so for a file the server of
    the settings must not answer."""
    from antiphon.cli.findings import ask
    from antiphon.cli.target import find_target
    from antiphon.config.quoting import hide_password
    from antiphon.storage.base import StorageError
    from antiphon.storage.sql.copying import find_servers

    if isinstance(place, Path):
        target = find_target(settings, None, None)
        if b'"antiphon"' in (ask(f"{target.http_url}/health", target.tls) or b""):
            raise UsageError(f"a server is running at {target.http_url}. Stop it first, and start it again afterwards.")
        return
    try:
        count = find_servers(place)
    except StorageError as error:
        raise UsageError(str(error)) from None
    if count:
        connections = "a connection" if count == 1 else f"{count} connections"
        raise UsageError(f"servers have {connections} to {hide_password(place)}. Stop them first.")


def local_user() -> str:
    from antiphon.server.authenticator import LOCAL_USER

    return LOCAL_USER


def tell_time(at_ms: int) -> str:
    """Formats a time in the local time zone, to the minute."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    except (ValueError, OverflowError):
        return "forever"
    return moment.astimezone().isoformat(sep=" ", timespec="minutes")


def plain(text: str) -> str:
    """Replaces control characters: names and reasons may come from a model or from another user."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def progress_bar() -> "Progress":
    """Makes a progress bar on standard error, which is shown only at a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    return Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())


# The work of the commands.


async def _export(
    settings: "Settings", user: str, file: IO[bytes], files: Path | None, *, progress: "Progress"
) -> dict[str, int]:
    import msgspec

    def write(kind: str, fields: dict[str, Any]) -> None:
        file.write(msgspec.json.encode({"kind": kind, **fields}) + b"\n")

    async with open_data(settings) as database:
        if files is not None:
            _make_folder(files)
        conversations = await database.conversations.list(user, ALL)
        task = progress.add_task("Exporting", total=len(conversations))
        for conversation in conversations:
            turns = [
                {**msgspec.structs.asdict(turn), "body": msgspec.Raw(turn.body)}
                for turn in await database.conversations.turns(conversation.id)
            ]
            for turn in turns:
                del turn["conversation_id"]
            write("conversation", {**msgspec.structs.asdict(conversation), "turns": turns})
            progress.advance(task)
        calls = await database.voice_calls.list(user, ALL)
        for call in calls:
            write("call", msgspec.structs.asdict(call))
        kept = await _kept_by_tools(database, user)
        kept["recording"] = await _export_recordings(settings, database, user, files)
        kept["image"] = await _export_images(database, user, files)
    typed = _typed_lines(settings, user)
    for kind, rows in {**kept, "typed": [{"user": user, "text": line} for line in typed]}.items():
        for row in rows:
            write(kind, row)
    counts = {"conversation": len(conversations), "call": len(calls)}
    counts |= {kind.replace("_", " "): len(rows) for kind, rows in kept.items()}
    return counts | {"typed line": len(typed)}


async def _export_recordings(
    settings: "Settings", database: "Database", user: str, folder: Path | None
) -> list[dict[str, Any]]:
    """Returns the lines about recordings, and copies those that are complete into a folder."""
    from msgspec.structs import asdict

    from antiphon.services.recordings import open_archive

    archive = open_archive(settings, database.recordings)
    lines = []
    for recording in await archive.store.list(user):
        path = archive.path_of(recording)
        if folder is not None and recording.duration_ms is not None:
            copy = folder / recording.file
            if await archive.copy(recording, copy):
                path = copy
            else:
                typer.echo(f"The sound of the recording {recording.id} is only on {recording.node}.", err=True)
        lines.append({**asdict(recording), "file": str(path)})
    return lines


async def _export_images(database: "Database", user: str, folder: Path | None) -> list[dict[str, Any]]:
    """Returns the lines about images, and writes the images into a folder."""
    from msgspec.structs import asdict

    from antiphon.services.images import address_of

    lines = []
    for record in await database.images.list(user):
        line = {**asdict(record), "url": address_of(record)}
        found = None if folder is None else await database.images.read(record.name)
        if folder is not None and found is not None:
            line["file"] = str(folder / record.name)
            (folder / record.name).write_bytes(found[1])
        lines.append(line)
    return lines


async def _kept_by_tools(database: "Database", user: str) -> dict[str, list[dict[str, Any]]]:
    """Returns what tools store about a user, by the kind of the line."""
    from msgspec import Raw
    from msgspec.structs import asdict

    from antiphon.storage.knowledge import Namespace, Readable

    personal = Readable(user, (Namespace.PERSONAL,))
    records = [await database.knowledge.get(each.id, personal) for each in await database.knowledge.list(personal, ALL)]
    return {
        "record": [asdict(record) for record in records if record is not None],
        "list_item": [asdict(item) for item in await database.lists.items(user)],
        "tool_value": [{**asdict(each), "value": Raw(each.value)} for each in await database.tool_values.list(user)],
        "event": [asdict(event) for event in await database.calendar.list(user)],
        "reminder": [_with_type(asdict(each)) for each in await database.reminders.list(user)],
        "ring": [_with_type(asdict(each.ring)) for each in await database.reminders.open_rings([user], 0)],
    }


def _with_type(fields: dict[str, Any]) -> dict[str, Any]:
    """Renames the kind of a reminder, since the kind of a line is what it describes."""
    return {"type": fields.pop("kind"), **fields}


async def _delete(settings: "Settings", user: str, progress: "Progress") -> dict[str, int]:
    from antiphon.services.recordings import open_archive

    async with open_data(settings) as database:
        task = progress.add_task("Deleting", total=None)
        # Before the conversations, which take the list of the files with them.
        recordings = await open_archive(settings, database.recordings).delete(user)
        conversations = 0
        while page := await database.conversations.list(user, PAGE):
            for conversation in page:
                conversations += await database.conversations.delete(conversation.id, user)
                progress.advance(task)
        typed = _typed_lines(settings, user)
        if typed:
            (settings.data_dir / CHAT_HISTORY).unlink(missing_ok=True)
        # Copies of what tools have told this user, which are kept to recognise a call that is made twice.
        await database.calls.clear(await _sessions_with_calls(database, user))
        await database.confirmations.clear(user)
        tokens = [token.id for token in await database.tokens.list() if token.user == user]
        return {
            "conversation": conversations,
            "call": await database.voice_calls.clear(user),
            "reminder": await database.reminders.clear(user),
            "recording": recordings,
            "image": await database.images.delete(user),
            "session": await database.sessions.end_all(user),
            "token": sum([await database.tokens.revoke(id) for id in tokens]),
            "block": int(await database.blocks.unblock(user)),
            "record": await database.knowledge.remove_owner(user),
            "list item": await database.lists.clear(user),
            "tool value": await database.tool_values.clear(user),
            "event": await database.calendar.clear(user),
            "typed line": len(typed),
        }


async def _sessions_with_calls(database: "Database", user: str) -> set[str]:
    """Finds the sessions in which a user has called tools, also those that have ended long ago."""
    sessions: set[str] = set()
    after = 0
    while lines := await database.audit.read(after=after, limit=AUDIT_LINES):
        sessions |= {line.session for _, line in lines if line.user == user}
        after = lines[-1][0]
    return sessions


def _typed_lines(settings: "Settings", user: str) -> list[str]:
    """Returns what the local user typed into `antiphon chat`, oldest first; nothing for other users."""
    from prompt_toolkit.history import FileHistory

    if user != local_user():
        return []
    return list(FileHistory(settings.data_dir / CHAT_HISTORY).load_history_strings())[::-1]


def _copy(source: Path | str, target: Path, on_progress: Callable[[int, int], None]) -> None:
    """Copies into a temporary file that then replaces the target, so that a failure leaves no partial file."""
    from antiphon.storage.base import StorageError

    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        if isinstance(source, Path):
            with closing(sqlite3.connect(source)) as origin, closing(sqlite3.connect(partial)) as copy:
                # A read transaction keeps the snapshot. Without it, each write of the server would restart the copy.
                origin.execute("BEGIN")
                origin.execute("SELECT count(*) FROM sqlite_master").fetchone()
                origin.backup(
                    copy, pages=BACKUP_PAGES, progress=lambda _, left, total: on_progress(total - left, total)
                )
        else:
            fill_from(source, partial, on_progress)
        with closing(sqlite3.connect(partial)) as copy:
            # Write-ahead logging uses files beside the database, and a backup is one file.
            copy.execute("PRAGMA journal_mode = DELETE")
        os.replace(partial, target)
    except (OSError, sqlite3.Error, StorageError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error).rstrip(".")
        raise UsageError(f"the database could not be copied into {target}: {reason}.") from None
    finally:
        for each in (partial, *(partial.with_name(f"{partial.name}-{name}") for name in ("wal", "shm"))):
            with suppress(OSError):
                each.unlink()


def fill_from(source: Path | str, target: Path | str, on_progress: Callable[[int, int], None]) -> int:
    """Replaces everything in a database by what another one has, which may be of another kind. Returns how many rows
    there are. Raises `StorageError`."""
    from antiphon.storage.sql.copying import copy_database

    asyncio.run(bring_up_to_date(source, target))
    return copy_database(source, target, on_progress, replaces=True)


async def bring_up_to_date(*places: Path | str) -> None:
    """Makes or migrates the tables of databases."""
    from antiphon.storage.sql import open_database

    for place in places:
        await (await open_database(place, is_partial=True)).aclose()


@contextmanager
def _writer(path: Path | None) -> Iterator[IO[bytes]]:
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        # Readable by this user alone, since it contains what people said.
        file = os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None
    with file:
        yield file


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(mode=0o700)
    except OSError as error:
        raise UsageError(f"{path} cannot be made: {error.strerror}.") from None


def _list_counts(counts: dict[str, int]) -> str:
    """Describes what there was, for example "2 conversations and 1 call"."""
    parts = [f"{number} {what}" if number == 1 else f"{number} {what}s" for what, number in counts.items() if number]
    if not parts:
        return "nothing"
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last

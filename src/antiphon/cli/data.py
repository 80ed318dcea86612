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
CHAT_HISTORY: Final = "chat_history"
"""The file in the data folder with what the local user has typed into `antiphon chat`."""
BACKUP_PAGES: Final = 2_000
"""How many database pages are copied between two steps of the progress bar: 8 MB."""

LocalUserOption = Annotated[str | None, typer.Option("--user", metavar="NAME", help="The user. [default: local]")]


@app.command()
def export(
    user: LocalUserOption = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A new file to write to. [default: standard output]")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Export a user's conversations and calls, and what the local user typed, as one JSON object per line."""
    settings = settings_for(config)
    with _writer(out) as file, progress_bar() as progress:
        exported = asyncio.run(_export(settings, user or local_user(), file, progress))
    typer.echo(f"Exported {_list_counts(exported)}.", err=True)


@app.command()
def delete(
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="The user.")],
    yes: Annotated[bool, typer.Option("--yes", help="Confirm the deletion, which cannot be undone.")] = False,
    config: ConfigOption = None,
) -> None:
    """Delete the data of a user: conversations, calls, tokens, the block, and what the local user typed.

    The audit of tool calls stays.
    """
    settings = settings_for(config)
    if not yes:
        raise UsageError(
            f"this permanently deletes all conversations, calls and tokens of the user {user!r}. Add --yes to confirm."
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
    """Copy the database into one file, as a consistent snapshot. The server may keep running."""
    source = database_file(settings_for(config))
    if not source.exists():
        raise UsageError(f"there is no database at {source} yet, so there is nothing to back up.")
    if file.exists() and not force:
        raise UsageError(f"{file} exists. Choose another name, or replace it with --force.")
    if file.is_dir() or (file.exists() and file.samefile(source)):
        raise UsageError(f"{file} cannot be replaced by a backup. Choose another name.")
    with progress_bar() as progress:
        task = progress.add_task("Backing up")
        _copy(source, file, lambda done, total: progress.update(task, completed=done, total=total))
    typer.echo(f"Backed up {source} into {file} ({file.stat().st_size:,} bytes).")


# Shared with the other commands that use the database.


@asynccontextmanager
async def open_data(settings: "Settings") -> AsyncIterator["Database"]:
    """Opens the database of the settings. Raises `UsageError` if it is in memory."""
    from antiphon.compose import open_stores

    database_file(settings)
    database = await open_stores(settings)
    try:
        yield database
    finally:
        await database.aclose()


def database_file(settings: "Settings") -> Path:
    path = settings.database_path
    if path is None:
        raise UsageError('storage.url is "memory", so there is no stored data for this command.')
    return path


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


async def _export(settings: "Settings", user: str, file: IO[bytes], progress: "Progress") -> dict[str, int]:
    import msgspec

    def write(kind: str, fields: dict[str, Any]) -> None:
        file.write(msgspec.json.encode({"kind": kind, **fields}) + b"\n")

    async with open_data(settings) as database:
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
    typed = _typed_lines(settings, user)
    for line in typed:
        write("typed", {"user": user, "text": line})
    return {"conversation": len(conversations), "call": len(calls), "typed line": len(typed)}


async def _delete(settings: "Settings", user: str, progress: "Progress") -> dict[str, int]:
    async with open_data(settings) as database:
        task = progress.add_task("Deleting", total=None)
        conversations = 0
        while page := await database.conversations.list(user, PAGE):
            for conversation in page:
                conversations += await database.conversations.delete(conversation.id, user)
                progress.advance(task)
        typed = _typed_lines(settings, user)
        if typed:
            (settings.data_dir / CHAT_HISTORY).unlink(missing_ok=True)
        tokens = [token.id for token in await database.tokens.list() if token.user == user]
        return {
            "conversation": conversations,
            "call": await database.voice_calls.clear(user),
            "session": await database.sessions.end_all(user),
            "token": sum([await database.tokens.revoke(id) for id in tokens]),
            "block": int(await database.blocks.unblock(user)),
            "typed line": len(typed),
        }


def _typed_lines(settings: "Settings", user: str) -> list[str]:
    """Returns what the local user typed into `antiphon chat`, oldest first; nothing for other users."""
    from prompt_toolkit.history import FileHistory

    if user != local_user():
        return []
    return list(FileHistory(settings.data_dir / CHAT_HISTORY).load_history_strings())[::-1]


def _copy(source: Path, target: Path, on_progress: Callable[[int, int], None]) -> None:
    """Copies into a temporary file that then replaces the target, so that a failure leaves no partial file."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(source)) as origin, closing(sqlite3.connect(partial)) as copy:
            # A read transaction keeps the snapshot. Without it, each write of the server would restart the copy.
            origin.execute("BEGIN")
            origin.execute("SELECT count(*) FROM sqlite_master").fetchone()
            origin.backup(copy, pages=BACKUP_PAGES, progress=lambda _, left, total: on_progress(total - left, total))
            # Write-ahead logging uses files beside the database, and a backup is one file.
            copy.execute("PRAGMA journal_mode = DELETE")
        os.replace(partial, target)
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{source} could not be copied into {target}: {reason}.") from None
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def _writer(path: Path | None) -> Iterator[IO[bytes]]:
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        # Readable by this user alone, since it contains what people said.
        file = os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")
    except FileExistsError:
        raise UsageError(f"{path} exists. Choose another name.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None
    with file:
        yield file


def _list_counts(counts: dict[str, int]) -> str:
    """Describes the counts, for example "2 conversations, 1 call and 0 typed lines"."""
    *parts, last = [f"{number} {what}" if number == 1 else f"{number} {what}s" for what, number in counts.items()]
    return f"{', '.join(parts)} and {last}"

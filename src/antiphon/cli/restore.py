"""`antiphon data restore`: puts a backup in the place of the database."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import typer

from antiphon.cli.data import BACKUP_PAGES, check_unused, database_of, fill_from, progress_bar
from antiphon.cli.options import ConfigOption, UsageError, settings_for

if TYPE_CHECKING:
    from antiphon.config import Settings

WAIT_S: Final = 1.0
"""How long to wait for another program that has just finished with the database."""


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `antiphon data backup` has made.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the database if there is one.")] = False,
    config: ConfigOption = None,
) -> None:
    """Put a backup in the place of the database. The server must be stopped.

    The tables of an older version are migrated when the server starts.
    """
    settings = settings_for(config)
    target = database_of(settings)
    version = _check_backup(file)
    if isinstance(target, str):
        _fill(settings, file, target, force=force)
        return
    if target.exists() and file.samefile(target):
        raise UsageError(f"{file} is the database itself, not a backup of it.")
    if target.is_dir():
        raise UsageError(f"{target} is a folder, so no database can be put there.")
    is_used = target.exists() and target.stat().st_size > 0
    if is_used and not force:
        raise UsageError(
            f"there is a database at {target} already. Back it up with `antiphon data backup`, "
            "then replace it with --force."
        )
    check_unused(settings, target)
    with progress_bar() as progress:
        task = progress.add_task("Restoring")
        _restore(file, target, lambda done, total: progress.update(task, completed=done, total=total))
    typer.echo(f"Restored {target} from {file} (tables {version}).")


def _check_backup(file: Path) -> str:
    """Returns the version of a backup's tables. Raises `UsageError` if this program cannot use the file."""
    from antiphon.storage.migrations import HEAD

    if not file.is_file():
        raise UsageError(f"there is no file {file}.")
    try:
        with _opened(file) as backup:
            [(sound,)] = backup.execute("PRAGMA quick_check(1)").fetchall()
            rows = backup.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.Error as error:
        raise UsageError(f"{file} is not a backup of Antiphon: {error}.") from None
    if sound != "ok":
        raise UsageError(f"{file} is damaged ({sound}). Use another backup.")
    if not rows:
        raise UsageError(f"{file} is not a backup of Antiphon: it has no version.")
    version = str(rows[0][0])
    if version > HEAD:
        raise UsageError(
            f"{file} was written by a newer Antiphon (tables {version}, this one knows {HEAD}). Update Antiphon first."
        )
    return version


def _opened(file: Path) -> "closing[sqlite3.Connection]":
    # A file that was copied by hand may be in WAL mode, which cannot be read without writing beside it.
    return closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=WAIT_S))


def _fill(settings: "Settings", file: Path, target: str, *, force: bool) -> None:
    """Restores a Postgres database."""
    from antiphon.storage.base import StorageError
    from antiphon.storage.sql.copying import has_rows

    name = settings.database_name
    check_unused(settings, target)
    try:
        if has_rows(target) and not force:
            raise UsageError(
                f"{name} has data already. Back it up with `antiphon data backup`, then replace it with --force."
            )
        # The tables of an older backup are migrated in a copy.
        with TemporaryDirectory() as folder, progress_bar() as progress:
            task = progress.add_task("Restoring")
            copy = shutil.copyfile(file, Path(folder) / "backup.db")
            rows = fill_from(copy, target, lambda done, total: progress.update(task, completed=done, total=total))
    except StorageError as error:
        raise UsageError(f"{str(error).rstrip('.')}. The data in {name} is unchanged.") from None
    typer.echo(f"Restored {name} from {file} ({rows:,} rows).")


def _restore(file: Path, target: Path, on_progress: Callable[[int, int], None]) -> None:
    """Copies the backup into the database in one transaction: if it fails, the database is as before."""
    from antiphon.storage.sql.database import make_file

    make_file(target)
    try:
        with _opened(file) as backup, _locked(target) as database:
            backup.backup(
                database, pages=BACKUP_PAGES, progress=lambda _, left, total: on_progress(total - left, total)
            )
    except sqlite3.Error as error:
        raise UsageError(f"{file} could not be copied into {target}: {error}. The database is unchanged.") from None


@contextmanager
def _locked(target: Path) -> Iterator[sqlite3.Connection]:
    """Opens the database for this program alone. One that is damaged is removed first."""
    database = sqlite3.connect(target, timeout=WAIT_S, isolation_level=None)
    try:
        try:
            # Leaving the write-ahead log needs the whole file, so it fails while any other program has it open.
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("PRAGMA journal_mode = DELETE")
            database.execute("BEGIN EXCLUSIVE")
            database.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise UsageError(f"another program uses {target}. Stop the server and its commands first.") from None
        except sqlite3.DatabaseError:
            database.close()
            for damaged in (target, *(target.with_name(f"{target.name}-{each}") for each in ("wal", "shm"))):
                with suppress(FileNotFoundError):
                    os.unlink(damaged)
            from antiphon.storage.sql.database import make_file

            make_file(target)
            database = sqlite3.connect(target, timeout=WAIT_S, isolation_level=None)
        yield database
    finally:
        database.close()

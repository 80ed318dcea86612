"""`antiphon data migrate`: moves all data into another database."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from antiphon.cli.data import bring_up_to_date, check_unused, database_of, progress_bar
from antiphon.cli.options import ConfigOption, UsageError, settings_for
from antiphon.config.quoting import hide_password

if TYPE_CHECKING:
    from antiphon.config import Settings


def migrate(
    target: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="The database to fill: postgresql://user:password@host/name, or sqlite:/// and the path of a file.",
        ),
    ],
    config: ConfigOption = None,
) -> None:
    """Copy all data into an empty database of another kind, such as from SQLite to Postgres.

    The servers must be stopped. A copy that was interrupted goes on when the command is run again. Afterwards, set
    `storage.url` to the new database. Nothing is deleted from the old one.
    """
    from antiphon.storage.base import StorageError
    from antiphon.storage.sql.copying import NotEmptyError, copy_database

    settings = settings_for(config)
    source, place = database_of(settings), _parse(settings, target)
    told = hide_password(target)
    if isinstance(source, Path) and not source.exists():
        raise UsageError(f"there is no database at {source} yet, so there is nothing to copy.")
    if source == place:
        raise UsageError(f"{told} is the database of the settings already.")
    check_unused(settings, source)
    try:
        asyncio.run(bring_up_to_date(source, place))
        check_unused(settings, place)
        with progress_bar() as progress:
            task = progress.add_task("Copying")
            rows = copy_database(source, place, lambda done, total: progress.update(task, completed=done, total=total))
    except NotEmptyError as error:
        raise UsageError(f"{told} cannot be filled. {error}") from None
    except StorageError as error:
        raise UsageError(f"{str(error).rstrip('.')}. Run the command again to go on.") from None
    typer.echo(f"Copied {rows:,} rows into {told}.")
    typer.echo(f"Now set storage.url to it, and keep the folder {settings.data_dir} for recordings and other files.")


def _parse(settings: "Settings", target: str) -> Path | str:
    from dataclasses import replace

    from pydantic import ValidationError

    from antiphon.config import Storage

    try:
        place = replace(settings, storage=Storage(url=target)).database
    except ValidationError:
        place = None
    if place is None:
        raise UsageError(
            f'{hide_password(target)} is not a database. Write "postgresql://user:password@host:5432/name", '
            'or "sqlite:///" followed by the path of a file.'
        )
    return place

"""`antiphon users …`: who has to wait outside, and who need not any longer."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from antiphon.cli.data import open_data, plain, tell_time
from antiphon.cli.options import ConfigOption, UsageError, settings_for
from antiphon.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.config import Settings
    from antiphon.storage.people import Block

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_users(config: ConfigOption = None) -> None:
    """List the users who are blocked, and until when."""
    blocks = asyncio.run(_list(settings_for(config)))
    if not blocks:
        typer.echo("Nobody is blocked.")
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("user", "blocked until", "reason")
    for block in blocks:
        table.add_row(escape(plain(block.user)), tell_time(block.until_ms), escape(plain(block.reason)))
    Console(highlight=False).print(table)


@app.command()
def unblock(
    user: Annotated[str, typer.Argument(metavar="USER", help="As `antiphon users list` shows it.")],
    config: ConfigOption = None,
) -> None:
    """Let a blocked user in again, at once."""
    if not asyncio.run(_unblock(settings_for(config), user)):
        raise UsageError(f"the user {user!r} is not blocked. `antiphon users list` shows who is.")
    typer.echo(f"{plain(user)} may come in again.")


async def _list(settings: "Settings") -> "Sequence[Block]":
    async with open_data(settings) as database:
        return await database.blocks.list(SystemClock().now_ms())


async def _unblock(settings: "Settings", user: str) -> bool:
    async with open_data(settings) as database:
        return await database.blocks.unblock(user)

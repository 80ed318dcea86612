"""`antiphon token …` and `antiphon users …`: access tokens, and blocked users."""

import asyncio
import secrets
from typing import TYPE_CHECKING, Annotated, Final

import typer

from antiphon.cli.data import LocalUserOption, local_user, open_data, plain, tell_time
from antiphon.cli.options import ConfigOption, UsageError, settings_for
from antiphon.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.config import Settings
    from antiphon.storage.people import Block, TokenRecord

token_app = typer.Typer(no_args_is_help=True)

DAY_MS: Final = 24 * 60 * 60 * 1000
MAX_DAYS: Final = 36_500


@token_app.command()
def new(
    user: LocalUserOption = None,
    name: Annotated[str, typer.Option(metavar="TEXT", help='What it is for, such as "my phone".')] = "",
    days: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_DAYS, metavar="DAYS", help="How many days it is valid. [default: forever]"),
    ] = None,
    admin: Annotated[
        bool,
        typer.Option("--admin", help="Also for the operator's page at /admin, which shows every user's conversations."),
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Create an access token for a user, and show it once. Only the token goes to standard output."""
    settings = settings_for(config)
    owner = (local_user() if user is None else user).strip()
    if not owner or plain(owner) != owner:
        raise UsageError(f"{user!r} is not a valid user name. Use printable characters for --user.")
    token, record = asyncio.run(_make(settings, owner, name.strip(), days, is_admin=admin))
    until = "It does not expire" if record.expires_ms is None else f"It is valid until {tell_time(record.expires_ms)}"
    typer.echo(token)
    kind = "admin token" if admin else "token"
    typer.echo(
        f"This is the {kind} of the user {owner!r}, with the id {record.id}. It is shown only once, so keep it safe. "
        f"{until}; `antiphon token revoke {record.id}` revokes it.",
        err=True,
    )


@token_app.command("list")
def list_tokens(config: ConfigOption = None) -> None:
    """List the tokens that were not revoked, without the tokens themselves, which are not stored."""
    records = asyncio.run(_list_tokens(settings_for(config)))
    if not records:
        typer.echo("There are no tokens. `antiphon token new` creates one.")
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    now_ms = SystemClock().now_ms()
    table = Table("id", "user", "name", "admin", "created", "expires")
    for record in records:
        expires = "never" if record.expires_ms is None else tell_time(record.expires_ms)
        if record.expires_ms is not None and record.expires_ms <= now_ms:
            expires += " (expired)"
        admin = "yes" if record.is_admin else ""
        cells = (record.id, record.user, record.name, admin, tell_time(record.created_ms), expires)
        table.add_row(*(escape(plain(cell)) for cell in cells))
    Console(highlight=False).print(table)


@token_app.command()
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="As `antiphon token list` shows it.")],
    config: ConfigOption = None,
) -> None:
    """Revoke a token, so that it no longer gives access."""
    if not asyncio.run(_revoke(settings_for(config), id)):
        raise UsageError(f"there is no token with the id {id!r}. `antiphon token list` shows them all.")
    typer.echo(f"Revoked {id}. Its open connections are closed within seconds.")


async def _make(
    settings: "Settings", user: str, name: str, days: int | None, *, is_admin: bool
) -> "tuple[str, TokenRecord]":
    from antiphon.security.tokens import hash_token, make_token
    from antiphon.storage.people import TokenRecord

    token = make_token()
    now_ms = SystemClock().now_ms()
    expires_ms = None if days is None else now_ms + days * DAY_MS
    record = TokenRecord(
        id=secrets.token_hex(4),
        user=user,
        name=name,
        token_hash=hash_token(token),
        created_ms=now_ms,
        expires_ms=expires_ms,
        is_admin=is_admin,
    )
    async with open_data(settings) as database:
        await database.tokens.add(record)
    return token, record


async def _list_tokens(settings: "Settings") -> "Sequence[TokenRecord]":
    async with open_data(settings) as database:
        return await database.tokens.list()


async def _revoke(settings: "Settings", id: str) -> bool:
    from antiphon.storage.changes import Topic

    async with open_data(settings) as database:
        is_revoked = await database.tokens.revoke(id)
        database.changes.announce(Topic.PEOPLE)
        return is_revoked


users_app = typer.Typer(no_args_is_help=True)


@users_app.command("list")
def list_users(config: ConfigOption = None) -> None:
    """List the blocked users, and until when they are blocked."""
    blocks = asyncio.run(_list_blocks(settings_for(config)))
    if not blocks:
        typer.echo("No users are blocked.")
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("user", "blocked until", "reason")
    for block in blocks:
        table.add_row(escape(plain(block.user)), tell_time(block.until_ms), escape(plain(block.reason)))
    Console(highlight=False).print(table)


@users_app.command()
def unblock(
    user: Annotated[str, typer.Argument(metavar="USER", help="As `antiphon users list` shows it.")],
    config: ConfigOption = None,
) -> None:
    """Unblock a user at once."""
    if not asyncio.run(_unblock(settings_for(config), user)):
        raise UsageError(f"the user {user!r} is not blocked. `antiphon users list` shows who is.")
    typer.echo(f"{plain(user)} is no longer blocked.")


async def _list_blocks(settings: "Settings") -> "Sequence[Block]":
    async with open_data(settings) as database:
        return await database.blocks.list(SystemClock().now_ms())


async def _unblock(settings: "Settings", user: str) -> bool:
    from antiphon.storage.changes import Topic

    async with open_data(settings) as database:
        was_blocked = await database.blocks.unblock(user)
        database.changes.announce(Topic.PEOPLE)
        return was_blocked

"""The command line. Each group of commands is a module; this one combines them and prints errors as one line."""

import sys
from typing import Annotated

import typer

from antiphon import __version__
from antiphon.cli import (
    access,
    calendar,
    commands,
    config,
    data,
    doctor,
    energy,
    kb,
    mcp,
    migrate,
    models,
    restore,
    sim,
    speech,
    tools,
)
from antiphon.errors import AntiphonError

app = typer.Typer(
    name="antiphon",
    help=(
        "A self-hosted voice-and-text agent server. Try it with `antiphon chat`; `antiphon serve` keeps it running. "
        "`antiphon doctor` finds problems, and every command has its own --help."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Rich would take [default: …] for markup and drop it.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(tools.app, name="tools", help="Build, inspect, run and test tools.")
app.add_typer(mcp.app, name="mcp", help="List and test MCP servers, and approve tools that have changed.")
app.command(name="serve")(commands.serve)
app.command(name="chat")(commands.chat)
app.command(name="talk")(commands.talk)
app.command(name="renew")(energy.renew)
app.add_typer(energy.app, name="energy", help="Show which models the sessions of a server use, and change that.")
app.command(name="doctor")(doctor.doctor)
app.add_typer(models.app, name="models", help="Pull, check and remove model files.")
app.add_typer(speech.app, name="speech", help="Offer the speech engines to other programs.")
app.add_typer(sim.app, name="sim", help="Simulate providers that misbehave on command, to test clients.")
app.add_typer(config.app, name="config", help="Show the settings, and where each came from.")
app.add_typer(access.token_app, name="token", help="Create, list and revoke access tokens.")
app.add_typer(access.users_app, name="users", help="List blocked users, and unblock them.")
app.add_typer(kb.app, name="kb", help="Fill and search the knowledge base.")
app.add_typer(calendar.app, name="calendar", help="List events; import and export the local calendar.")
data.app.command(name="restore")(restore.restore)
data.app.command(name="migrate")(migrate.migrate)
app.add_typer(data.app, name="data", help="Export, delete, back up, restore and move the stored data.")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"antiphon {__version__}")
        raise typer.Exit


@app.callback()
def _antiphon(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command. An expected error is one line on standard error; the exit code is 1, or 2 for a usage error."""
    try:
        sys.exit(app(standalone_mode=False))
    except AntiphonError as error:
        typer.echo(f"antiphon: {error}", err=True)
        sys.exit(1)
    except typer.Abort:
        typer.echo("antiphon: cancelled.", err=True)
        sys.exit(1)
    except typer.TyperException as error:
        typer.echo(_explain(error), err=True)
        sys.exit(error.exit_code)


def _explain(error: typer.TyperException) -> str:
    said = error.format_message()
    if "\n" in said:
        return said  # the help of a group that was given without a command
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "antiphon"
    return f"antiphon: {said}{'' if said.endswith(('.', '?')) else '.'} See `{command} --help`."

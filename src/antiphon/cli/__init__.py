"""The command line. Each group of commands is a module; this one joins them and turns errors into one line."""

import sys
from typing import Annotated

import typer

from antiphon import __version__
from antiphon.cli import chat, config, data, doctor, serve, token, tools, users
from antiphon.errors import AntiphonError

app = typer.Typer(
    name="antiphon",
    help="A self-hosted voice-and-text agent server.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(tools.app, name="tools", help="Build, look at, run and test tools.")
app.command(name="serve")(serve.serve)
app.command(name="chat")(chat.chat)
app.command(name="doctor")(doctor.doctor)
app.add_typer(config.app, name="config", help="The settings in force.")
app.add_typer(token.app, name="token", help="Let people and programs in.")
app.add_typer(users.app, name="users", help="See and lift blocks.")
app.add_typer(data.app, name="data", help="Export, delete and back up what is stored.")


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
    """An expected error is one line on standard error and exit code 1, never a traceback."""
    try:
        app()
    except AntiphonError as error:
        typer.echo(f"antiphon: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)

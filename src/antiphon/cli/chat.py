"""`antiphon chat`: talk to a server in text."""

from typing import Annotated

import typer

from antiphon.cli.options import ConfigOption, settings_for


def chat(
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The server's socket, such as ws://127.0.0.1:8000/ws. [default: the server of the settings]",
        ),
    ] = None,
    token: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="An access token, where the server asks for one.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Talk to a server in text. If none is running, the chat starts its own. Say "exit" to leave."""
    from antiphon.cli.talking import talk

    talk(settings_for(config), url, token)

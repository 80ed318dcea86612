"""`antiphon talk`: talk to a server aloud."""

from pathlib import Path
from typing import Annotated

import typer

from antiphon.cli.options import ConfigOption, settings_for


def talk(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE.wav]", help="What to say: a WAV file of at most a minute.")
    ] = None,
    mic: Annotated[
        bool, typer.Option("--mic", help="Talk through this machine's microphone and loudspeaker instead.")
    ] = False,
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
    save: Annotated[
        Path | None, typer.Option(metavar="ANSWER.wav", help="Where to save the spoken answer: a WAV file.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Say a recording to a server, and see what comes of it and how long it took; or talk with --mic until Ctrl-C.

    If no server is running, this has one of its own.
    """
    if (file is None) is not mic:
        raise typer.BadParameter("Give it either a WAV file to say, or --mic")
    if mic and save is not None:
        raise typer.BadParameter("--save is for the answer to a file, not for a conversation with --mic")
    from antiphon.cli.calling import call, say_file

    settings = settings_for(config)
    if file is None:
        call(settings, url, token)
    else:
        say_file(settings, url, token, file, save)

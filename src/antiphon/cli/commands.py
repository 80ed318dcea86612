"""`antiphon serve`, `antiphon chat` and `antiphon talk`.

Only their options are here. What they do is imported when one of them runs, so that `antiphon --help` stays quick.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from antiphon.cli.options import ConfigOption, settings_for

UrlOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The server's address, such as ws://127.0.0.1:8000/ws. [default: the server in the settings]",
    ),
]
CacertOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The certificate of the server, or of its issuer, in PEM format, if the system does not trust it. "
        "[default: for a server on this machine, its own certificate]",
    ),
]
TokenOption = Annotated[str | None, typer.Option(metavar="TOKEN", help="An access token, if the server requires one.")]


def serve(
    host: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="The address to listen on; 0.0.0.0 means all addresses. [default: the setting server.host]",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            help="The port to listen on; 0 means any free port. [default: the setting server.port]",
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow access without a token, also from other machines.")
    ] = False,
    self_signed: Annotated[
        bool,
        typer.Option(
            "--self-signed",
            help="Serve https with a certificate that the server makes for itself, so that browsers on other machines "
            "allow the microphone. They warn once.",
        ),
    ] = False,
    reload: Annotated[
        bool,
        typer.Option(
            "--reload",
            help="For developing tools: watch their folders, and build and load what changes. Sets server.environment "
            'to "development", which also checks results against the outputs in each schema.',
        ),
    ] = False,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
        typer.Option(
            metavar="LEVEL",
            help="The least level of the lines to log: debug, info, warning or error. [default: the setting "
            "server.log_level]",
            show_default=False,
        ),
    ] = None,
    json_log: Annotated[bool, typer.Option("--json-log", help="Log JSON lines instead of text.")] = False,
    config: ConfigOption = None,
) -> None:
    """Serve conversations over WebSocket and HTTP until stopped."""
    from antiphon import config as configuration
    from antiphon.serve import run_server
    from antiphon.server.serving import run_loop
    from antiphon.telemetry import log

    settings = configuration.load(config)
    if reload:
        settings = replace(settings, server=settings.server.model_copy(update={"environment": "development"}))
    log.configure(
        json=json_log,
        level=log_level or settings.server.log_level,
        exception_texts=settings.server.environment == "development",
    )
    run_loop(
        run_server(settings, host=host, port=port, insecure=insecure, self_signed=self_signed, announce=typer.echo)
    )


def chat(
    url: UrlOption = None, token: TokenOption = None, cacert: CacertOption = None, config: ConfigOption = None
) -> None:
    """Chat with a server in text. If none is running, the chat starts its own. Type "exit" to leave."""
    from antiphon.cli.chat import run_chat
    from antiphon.cli.target import find_target

    settings = settings_for(config)
    run_chat(settings, find_target(settings, url, token, cacert))


def talk(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE.wav]", help="What to say: a WAV file of at most one minute.")
    ] = None,
    mic: Annotated[
        bool, typer.Option("--mic", help="Talk through this machine's microphone and loudspeaker instead.")
    ] = False,
    wake_word: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --mic, listen only after this wake word. `list` shows all."),
    ] = None,
    url: UrlOption = None,
    token: TokenOption = None,
    cacert: CacertOption = None,
    save: Annotated[
        Path | None, typer.Option(metavar="ANSWER.wav", help="Where to save the spoken answer: a WAV file.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Speak a recording to a server, and show the answer and how long it took; or talk with --mic until Ctrl-C.

    If no server is running, this starts its own.
    """
    if wake_word == "list":
        from antiphon.cli.calling import list_wake_words

        list_wake_words()
        return
    if (file is None) is not mic:
        raise typer.BadParameter("Give either a WAV file or --mic")
    if wake_word is not None and not mic:
        raise typer.BadParameter("--wake-word works with --mic, not with a WAV file")
    if mic and save is not None:
        raise typer.BadParameter("--save works with a WAV file, not with --mic")
    from antiphon.cli.calling import call, say_file
    from antiphon.cli.target import find_target

    settings = settings_for(config)
    target = find_target(settings, url, token, cacert)
    if file is None:
        call(settings, target, wake_word)
    else:
        say_file(settings, target, file, save)

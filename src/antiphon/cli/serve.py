"""`antiphon serve`: the server."""

from typing import Annotated

import typer

from antiphon.cli.options import ConfigOption
from antiphon.server.serving import run_loop


def serve(
    host: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="The address to listen on; 0.0.0.0 is all of this machine. [default: the setting server.host]",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            help="The port to listen on; 0 takes any that is free. [default: the setting server.port]",
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let everybody in without a token, also from other machines.")
    ] = False,
    json_log: Annotated[bool, typer.Option("--json-log", help="Log JSON lines instead of text.")] = False,
    config: ConfigOption = None,
) -> None:
    """Serve conversations over WebSocket and HTTP until it is stopped."""
    from antiphon import config as configuration
    from antiphon.serve import run_server
    from antiphon.telemetry import log

    settings = configuration.load(config)
    log.configure(json=json_log, level="info", exception_texts=settings.server.environment == "development")
    run_loop(run_server(settings, host=host, port=port, insecure=insecure, announce=typer.echo))

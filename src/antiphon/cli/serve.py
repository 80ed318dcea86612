"""`antiphon serve`: the server."""

import asyncio
from typing import Annotated

import typer

from antiphon.cli.options import ConfigOption


def serve(
    host: Annotated[str | None, typer.Option(help="Where to listen. [default: server.host]")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="On which port. [default: server.port]")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let everybody in without a token, even from other machines.")
    ] = False,
    json_log: Annotated[bool, typer.Option("--json-log", help="Log JSON lines instead of text.")] = False,
    config: ConfigOption = None,
) -> None:
    """Serve conversations over WebSocket and HTTP until it is stopped."""
    from antiphon import config as configuration
    from antiphon.serve import run_server
    from antiphon.telemetry import log

    log.configure(json=json_log, level="info")
    settings = configuration.load(config)
    asyncio.run(run_server(settings, host=host, port=port, insecure=insecure, announce=typer.echo))

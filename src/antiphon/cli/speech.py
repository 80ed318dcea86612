"""`antiphon speech …`: the speech engines on their own."""

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final

import typer

from antiphon.cli.options import ConfigOption, UsageError, settings_for

if TYPE_CHECKING:
    from antiphon.config import Settings

app = typer.Typer(no_args_is_help=True)

DEFAULT_URI: Final = "tcp://127.0.0.1:10300"


@app.callback()
def _speech() -> None:
    """Keeps `serve` a subcommand: Typer would otherwise merge a single command into its group."""


@app.command()
def serve(
    uri: Annotated[str, typer.Option(help="Where to listen.")] = DEFAULT_URI,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Serve any client that reaches the address: Wyoming has no authentication."),
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Serve the configured speech engines over Wyoming until stopped."""
    from antiphon.security.origin import is_loopback
    from antiphon.speech.references import parse_uri

    settings = settings_for(config)
    if not insecure and not is_loopback(parse_uri(uri).host):
        raise UsageError(
            f"other machines could use the speech engines at {uri}, and Wyoming has no authentication. Add --insecure "
            "if you trust the network, or listen on 127.0.0.1."
        )
    asyncio.run(_serve(settings, uri))


async def _serve(settings: "Settings", uri: str) -> None:
    from antiphon.compose import open_speech
    from antiphon.speech.base import needs_extra

    with needs_extra("local", "`antiphon speech serve`"):
        from antiphon.speech.wyoming_server import serve_wyoming

    async with (
        open_speech(settings) as speech,
        serve_wyoming(uri, speech.recognizer, speech.synthesizer) as address,
    ):
        stopped = _stop_signal()
        voice = "no voice" if speech.synthesizer is None else speech.synthesizer.name
        typer.echo(f"Serving {speech.recognizer.name} and {voice} at {address}. Press Ctrl-C to stop.")
        await stopped.wait()


def _stop_signal() -> asyncio.Event:
    """Returns an event that SIGTERM sets; Ctrl-C raises KeyboardInterrupt as usual."""
    stopped = asyncio.Event()
    with suppress(NotImplementedError):  # on Windows, where there is no such signal
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    return stopped

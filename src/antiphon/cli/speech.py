"""`antiphon speech …`: the speech engines by themselves."""

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
    """Without it, the only command of the group would take the group's name."""


@app.command()
def serve(
    uri: Annotated[str, typer.Option(help="Where to listen.")] = DEFAULT_URI,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let everybody in who reaches the address: Wyoming knows no tokens.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Offer the engines of the settings to others over Wyoming. It runs until it is stopped."""
    from antiphon.security.origin import is_loopback
    from antiphon.speech.references import parse_uri

    settings = settings_for(config)
    if not insecure and not is_loopback(parse_uri(uri).host):
        raise UsageError(
            f"at {uri} other machines could use the speech engines, and Wyoming knows no tokens. Add --insecure if the "
            "network is yours, or listen at 127.0.0.1."
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
        typer.echo(f"Offering {speech.recognizer.name} and {voice} at {address}. Ctrl-C ends it.")
        await stopped.wait()


def _stop_signal() -> asyncio.Event:
    """Set by SIGTERM; Ctrl-C cancels the program as it does everywhere."""
    stopped = asyncio.Event()
    with suppress(NotImplementedError):  # on Windows, where there is no such signal
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    return stopped

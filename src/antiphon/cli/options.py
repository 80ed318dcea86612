"""What several commands share: options, loading the settings, and the error for wrong usage."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from antiphon.errors import AntiphonError

if TYPE_CHECKING:
    from antiphon.config import Settings

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The settings file. [default: antiphon.toml in the current folder, if it exists]",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]


class UsageError(AntiphonError):
    """The command was used with something that it cannot work with."""

    code = "usage"


def settings_for(config_path: Path | None) -> "Settings":
    """Loads the settings, and configures the log for a terminal: warnings only."""
    # Imported here, as in all commands: it takes most of a second, and `antiphon --help` does not need it.
    from antiphon import config
    from antiphon.telemetry import log

    log.configure(json=False, level="warning", exception_texts=True)
    return config.load(config_path)

"""What several commands share: options, the settings, and how they refuse."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from antiphon.errors import AntiphonError

if TYPE_CHECKING:
    from antiphon.config import Settings

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="The settings file. [default: antiphon.toml in this folder, if there is one]"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]


class UsageError(AntiphonError):
    """The command was given something that it cannot use, or that cannot be done with what is there."""

    code = "usage"


def settings_for(config_path: Path | None) -> "Settings":
    """The settings in force, and the log set up for a person at a terminal: warnings only."""
    # Imported here, as in all commands: `antiphon --help` needs none of it, and it takes most of a second.
    from antiphon import config
    from antiphon.telemetry import log

    log.configure(json=False, level="warning", exception_texts=True)
    return config.load(config_path)

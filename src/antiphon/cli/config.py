"""`antiphon config …`: shows the settings."""

import json
import re
from typing import TYPE_CHECKING, Any, Final

import typer

from antiphon.cli.options import ConfigOption, JsonOption, settings_for

if TYPE_CHECKING:
    from antiphon.config import Settings

app = typer.Typer(no_args_is_help=True)

MASK: Final = "***"
MAX_SHOWN_CHARS: Final = 100
"""How much of a value is shown, except as JSON: instructions can be several pages long."""
_SECRET: Final = re.compile(r"(?:^|[._])(?:tokens?|secrets?|passwords?|(?:api_?)?keys?|credentials?)$")
_PATHS: Final = {"server.tls_key"}
"""Settings with a secret's name that have the path of a file."""
_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]*@")
_PASSWORD: Final = re.compile(r"(?<=[?&]password=)[^&\s]*")


@app.callback()
def _config() -> None:
    """The settings."""
    # Without this, typer turns a group with one command into that command, without `show`.


@app.command()
def show(as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """Show every setting, its value, and where the value came from. Secrets are masked."""
    settings = settings_for(config)
    origins = settings.origins()
    values = {key: mask(key, value_of(settings, key)) for key in origins}
    if as_json:
        document = {key: {"value": values[key], "origin": origins[key]} for key in origins}
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    typer.echo(f"# {settings.config_path or 'no settings file'}")
    lines = {key: f"{key} = {_shorten(json.dumps(values[key], ensure_ascii=False))}" for key in origins}
    width = max(map(len, lines.values()))
    for key, line in lines.items():
        typer.echo(f"{line:{width}}  # {origins[key]}")


def _shorten(value: str) -> str:
    return value if len(value) <= MAX_SHOWN_CHARS else f"{value[:MAX_SHOWN_CHARS]}…"


def value_of(settings: "Settings", key: str) -> Any:
    """Returns the value of a setting as JSON data."""
    return json.loads(json.dumps(settings.value(key), default=str))


def mask(key: str, value: Any) -> Any:
    """Masks secrets: values of settings with a secret's name, and user and password in an address."""
    if _SECRET.search(key) and key not in _PATHS:
        return MASK if value else value
    match value:
        case str():
            return _PASSWORD.sub(MASK, _CREDENTIALS.sub(f"{MASK}@", value))
        case list():
            return [mask(key, each) for each in value]
        case dict():
            return {name: mask(f"{key}.{name}", each) for name, each in value.items()}
    return value

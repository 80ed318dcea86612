"""`antiphon doctor`: what is well, what is not, and what to do about it."""

import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from antiphon.cli.options import ConfigOption, settings_for
from antiphon.errors import AntiphonError

if TYPE_CHECKING:
    from antiphon.config import Settings

OLDEST_PYTHON: Final = (3, 11)
PATIENCE_S: Final = 1.0
"""How long a server on this machine may take to answer."""


@dataclass(frozen=True, slots=True)
class Finding:
    ok: bool
    text: str
    """What was found; of a problem, also what to do."""


Findings = Iterator[Finding]


def doctor(config: ConfigOption = None) -> None:
    """Check this installation. Says of each thing whether it is well; exit code 1 if one is not."""
    from rich.console import Console
    from rich.markup import escape

    out = Console(highlight=False, soft_wrap=True)
    problems = 0
    for finding in _examine(config):
        problems += not finding.ok
        mark = "[green]ok[/]     " if finding.ok else "[red]problem[/]"
        out.print(f"{mark}  {escape(finding.text)}")
    if problems:
        raise typer.Exit(1)


def _examine(config: Path | None) -> Findings:
    yield check_python(sys.version_info[:3])
    try:
        settings = settings_for(config)
    except AntiphonError as error:
        for problem in getattr(error, "problems", (str(error),)):
            yield Finding(False, f"settings: {problem}")
        yield Finding(False, "The rest was not looked at, since it depends on the settings.")
        return
    yield Finding(True, f"settings: {settings.config_path or 'no file; the defaults and the environment'}")
    for check in (check_folder, check_database, check_tools, check_port, check_model):
        try:
            yield from check(settings)
        except AntiphonError as error:
            yield Finding(False, str(error))


def check_python(version: tuple[int, ...]) -> Finding:
    told = ".".join(map(str, version))
    if version >= OLDEST_PYTHON:
        return Finding(True, f"Python {told}")
    needed = ".".join(map(str, OLDEST_PYTHON))
    return Finding(False, f"Python {told} is too old. Install {needed} or newer.")


def check_folder(settings: "Settings") -> Findings:
    folder = settings.data_dir
    there = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        # The rights alone do not tell: the disk may be full, or mounted read-only.
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"written")
    except OSError as error:
        advice = "Give this user the right to write there, or set ANTIPHON_DATA_DIR."
        yield Finding(False, f"data folder: {folder} cannot be written: {error.strerror}. {advice}")
        return
    yield Finding(True, f"data folder: {folder}{'' if there == folder else ' (will be made)'}")


def check_database(settings: "Settings") -> Findings:
    """Looks without changing anything: bringing the tables up to date is the next start's work."""
    from antiphon.storage.migrations import HEAD

    path = settings.database_path
    if path is None:
        yield Finding(True, "database: in memory, so that nothing is kept after the end of the process")
        return
    if not path.exists():
        yield Finding(True, f"database: {path} (will be made)")
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=PATIENCE_S)) as database:
            version = _stored_version(database)
            [(sound,)] = database.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.Error as error:
        yield Finding(False, f"database: {path} cannot be used: {error}. Move it away, or restore a backup.")
        return
    if sound != "ok":
        yield Finding(False, f"database: {path} is damaged ({sound}). Restore a backup.")
    elif version is not None and version > HEAD:
        yield Finding(False, f"database: {path} was written by a newer Antiphon (tables {version}). Update Antiphon.")
    elif version == HEAD:
        yield Finding(True, f"database: {path} (tables {HEAD})")
    else:
        yield Finding(True, f"database: {path} (tables {version or 'none'}; the next start brings them to {HEAD})")


def check_tools(settings: "Settings") -> Findings:
    from antiphon.compose import build_tools

    built = build_tools(settings)
    if built.ok:
        yield Finding(True, f"tools: {len(built.artifact.tools)} build, version {built.artifact.version}")
        return
    first = built.errors[0]
    yield Finding(
        False, f"tools: {len(built.errors)} mistakes, the first: {first}. Run `antiphon tools build` to see them all."
    )


def check_port(settings: "Settings") -> Findings:
    from antiphon.server.serving import ServingError, listen

    host, port = settings.server.host, settings.server.port
    try:
        for each in listen(host, port):
            each.close()
    except ServingError as error:
        if _is_antiphon(host, port):
            yield Finding(True, f"port: an Antiphon answers at {host}, port {port}")
        else:
            yield Finding(False, f"port: {error}")
        return
    yield Finding(True, f"port: {port} is free at {host}" if port else f"port: any that is free at {host}")


def check_model(settings: "Settings") -> Findings:
    from antiphon.models.base import ModelError
    from antiphon.models.providers.references import ModelReferenceError, Provider, parse

    has_openai = find_spec("openai") is not None
    try:
        reference = parse(settings.model.text)
        is_builtin = reference.provider is Provider.BUILTIN
        endpoint = None if is_builtin else reference.endpoint(os.environ)
    except (ModelReferenceError, ModelError) as error:
        yield Finding(False, f"model: {error}")
        return
    if has_openai or is_builtin:
        yield Finding(True, f"extras: openai is {'installed' if has_openai else 'not installed, and not needed'}")
    else:
        yield Finding(False, f"extras: {reference} needs a package. Run: pip install 'antiphon[openai]'")
    if endpoint is None:
        yield Finding(True, "model: builtin, the offline assistant")
    elif not endpoint.is_loopback:
        yield Finding(True, f"model: {reference} (on another machine, so it was not tried)")
    elif _ask(f"{endpoint.url}/models") is not None:
        yield Finding(True, f"model: {reference}; its server answers")
    else:
        yield Finding(False, f"model: nothing answers at {endpoint.url}. Start the server of {reference}.")


def _stored_version(database: sqlite3.Connection) -> str | None:
    tables = database.execute("SELECT name FROM sqlite_master WHERE name = 'alembic_version'").fetchall()
    rows = database.execute("SELECT version_num FROM alembic_version").fetchall() if tables else []
    return str(rows[0][0]) if rows else None


def _is_antiphon(host: str, port: int) -> bool:
    import msgspec

    # What listens everywhere is reached here.
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    body = _ask(f"http://{f'[{name}]' if ':' in name else name}:{port}/health")
    try:
        health = msgspec.json.decode(body or b"null")
    except msgspec.DecodeError:
        return False
    return isinstance(health, dict) and health.get("status") == "ok"


def _ask(url: str) -> bytes | None:
    """What is answered there, be it an error; None if nobody does. Past any proxy, which could not reach it."""
    from urllib.error import HTTPError, URLError
    from urllib.request import ProxyHandler, build_opener

    try:
        with build_opener(ProxyHandler({})).open(url, timeout=PATIENCE_S) as answer:
            return bytes(answer.read(65_536))
    except HTTPError as error:
        with error:
            return b""
    except (URLError, OSError, ValueError):
        return None

"""`antiphon doctor`: checks the installation, and says how to fix problems."""

import os
import sqlite3
import ssl
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from antiphon import __version__
from antiphon.cli.doctor_calendar import check_calendar
from antiphon.cli.doctor_mcp import check_mcp
from antiphon.cli.doctor_postgres import check_postgres, inspect_postgres
from antiphon.cli.doctor_services import check_home, check_recording, check_web
from antiphon.cli.doctor_tls import check_browser_microphone, check_tls
from antiphon.cli.doctor_voice import check_microphone, check_voice
from antiphon.cli.findings import PATIENCE_S, Finding, Findings, ask
from antiphon.cli.options import ConfigOption, settings_for
from antiphon.clock import SystemClock
from antiphon.errors import AntiphonError

if TYPE_CHECKING:
    from antiphon.config import Settings

OLDEST_PYTHON: Final = (3, 11)

Check = Callable[["Settings"], Findings]


def doctor(
    mic: Annotated[
        bool, typer.Option("--mic", help="Also list the microphones, and record three seconds to check the level.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Check this installation, and say how to fix problems. The exit code is 1 if there are any."""
    from rich.console import Console
    from rich.markup import escape

    out = Console(highlight=False, soft_wrap=True)
    problems = 0
    for finding in _examine(config, (*CHECKS, check_microphone) if mic else CHECKS):
        problems += not finding.ok
        mark = "[green]ok[/]     " if finding.ok else "[red]problem[/]"
        out.print(f"{mark}  {escape(finding.text)}")
    if problems:
        raise typer.Exit(1)
    out.print("Everything is fine.")


def _examine(config: Path | None, checks: Sequence[Check]) -> Findings:
    from antiphon.config import ConfigError

    yield check_python(sys.version_info[:3])
    try:
        settings = settings_for(config)
    except ConfigError as error:
        for problem in error.problems:
            yield Finding(False, f"settings: {problem}")
        yield Finding(False, "The rest depends on the settings, so it was not checked.")
        return
    yield Finding(
        True, f"settings: {settings.config_path or 'no antiphon.toml here; the defaults and the environment'}"
    )
    for check in checks:
        try:
            yield from check(settings)
        except (AntiphonError, OSError) as error:
            yield Finding(False, f"{check.__name__.removeprefix('check_')}: {error}")


def check_python(version: tuple[int, ...]) -> Finding:
    told = ".".join(map(str, version))
    if version >= OLDEST_PYTHON:
        return Finding(True, f"Antiphon {__version__} on Python {told}")
    needed = ".".join(map(str, OLDEST_PYTHON))
    return Finding(False, f"Python {told} is too old. Install {needed} or newer.")


def check_folder(settings: "Settings") -> Findings:
    folder = settings.data_dir
    there = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        # The permissions alone are not enough: the disk may be full, or mounted read-only.
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"written")
    except OSError as error:
        advice = "Give this user write permission, or set ANTIPHON_DATA_DIR."
        yield Finding(False, f"data folder: {folder} cannot be written: {error.strerror}. {advice}")
        return
    yield Finding(True, f"data folder: {folder}{'' if there == folder else ' (will be created)'}")


def check_database(settings: "Settings") -> Findings:
    """Checks without changing anything: the next start migrates the tables."""
    from antiphon.storage.migrations import HEAD

    path = settings.database_path
    if not settings.keeps_data:
        yield Finding(True, "database: in memory, so nothing is kept after the process ends")
        return
    if path is None:
        yield from check_postgres(settings)
        return
    if not path.exists():
        yield Finding(True, f"database: {path} (will be created)")
        return
    try:
        with _opened(path) as database:
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
        yield Finding(True, f"database: {path} (tables {version or 'none'}; the next start migrates them to {HEAD})")


def check_tools(settings: "Settings") -> Findings:
    from antiphon.authoring.problems import Severity
    from antiphon.compose import build_tools, find_missing

    built = build_tools(settings)
    missing = find_missing(settings, built.artifact.tools)
    for problem in missing:
        if problem.severity is Severity.WARNING:
            yield Finding(False, f"tools: {problem}")
    mistakes = [*built.errors, *(problem for problem in missing if problem.severity is Severity.ERROR)]
    if not mistakes:
        yield Finding(True, f"tools: {len(built.artifact.tools)} build, version {built.artifact.version}")
        return
    first = mistakes[0]
    count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes, the first"
    yield Finding(False, f"tools: {count}: {first}. Run `antiphon tools build` to see them all.")


def check_hooks(settings: "Settings") -> Findings:
    from antiphon.compose.hooks import check_hooks as find_problems
    from antiphon.session.hooks import HOOK_NAMES

    problems = find_problems(settings)
    for problem in problems:
        yield Finding(False, f"hooks: {problem}")
    found = [name for name in HOOK_NAMES if getattr(settings.hooks, name)]
    if found and not problems:
        yield Finding(True, f"hooks: {', '.join(found)}")


def check_server(settings: "Settings") -> Findings:
    """Checks whether a server is running, and if not, whether it could start."""
    from antiphon.cli.target import find_target
    from antiphon.server.serving import ServingError, listen

    host, port = settings.server.host, settings.server.port
    try:
        for each in listen(host, port):
            each.close()
    except ServingError as error:
        target = find_target(settings, None, None)
        url, tls = target.http_url, target.tls
        health = _ask_json(f"{url}/health", tls)
        if not isinstance(health, dict) or health.get("name") != "antiphon":
            yield Finding(False, f"server: {error}")
            return
        version = health.get("version")
        restart = "" if version == __version__ else f"; restart it to use {__version__}"
        yield Finding(True, f"server: Antiphon {version} answers at {url}{restart}")
        ready = _ask_json(f"{url}/ready", tls)
        for problem in ready.get("problems", ()) if isinstance(ready, dict) else ():
            yield Finding(False, f"server: it is not ready. {problem}")
        return
    yield Finding(True, f"server: not running; {f'port {port}' if port else 'a port'} is free for it at {host}")


def check_access(settings: "Settings") -> Findings:
    """Checks who may use the server, by the same rules as its start."""
    from antiphon.security.origin import explain_origin, is_loopback

    host, auth = settings.server.host, settings.server.auth
    for origin in settings.server.origins:
        if (problem := explain_origin(origin)) is not None:
            yield Finding(False, f"access: {problem}")
    if auth == "off" and not is_loopback(host):
        advice = "Leave auth at its default, or start with --insecure if this is intended."
        yield Finding(False, f'access: server.auth is "off" and {host} can be reached from other machines. {advice}')
    elif auth == "required" or not is_loopback(host):
        tokens = _count_tokens(settings.database)
        if tokens:
            yield Finding(True, f"access: clients must show a token ({tokens} valid)")
        elif not settings.keeps_data:
            yield Finding(False, 'access: clients must show a token, and storage.url is "memory", which keeps none.')
        else:
            advice = "Create one with `antiphon token new`."
            yield Finding(False, f"access: clients must show a token, and there are none. {advice}")
    else:
        yield Finding(True, "access: from this machine only, without a token")


def check_models(settings: "Settings") -> Findings:
    """Checks the text models of all levels of energy, each once."""
    from antiphon.compose.rungs import text_rungs

    for name in dict.fromkeys(text_rungs(settings).values()):
        yield _check_model(name)


def _check_model(name: str) -> Finding:
    from antiphon.models.base import ModelError
    from antiphon.models.providers.references import ModelReferenceError, Provider, parse

    try:
        reference = parse(name)
        if reference.provider is Provider.BUILTIN:
            return Finding(True, "model: builtin, the offline assistant")
        endpoint = reference.endpoint(os.environ)
    except (ModelReferenceError, ModelError) as error:
        return Finding(False, f"model: {error}")
    is_ollama = reference.provider is Provider.OLLAMA
    package, extra, path = ("httpx2", "ollama", "/api/tags") if is_ollama else ("openai", "openai", "/models")
    if find_spec(package) is None:
        return Finding(False, f"model: {reference} needs a package. Run: pip install 'antiphon[{extra}]'")
    if not endpoint.is_loopback:
        return Finding(True, f"model: {reference} (on another machine, so it was not checked)")
    answer = ask(f"{endpoint.url}{path}")
    if answer is None:
        return Finding(False, f"model: nothing answers at {endpoint.url}. Start the server of {reference}.")
    if is_ollama and not _has_model(answer, reference.model):
        advice = f"Run: antiphon models pull {reference}"
        return Finding(False, f"model: Ollama has no model {reference.model}. {advice}")
    return Finding(True, f"model: {reference}; its server answers")


def check_images(settings: "Settings") -> Findings:
    """Checks the model that makes images, without asking it for one."""
    from antiphon.models.base import ModelError
    from antiphon.models.providers.references import ModelReferenceError, parse_images

    try:
        reference = parse_images(settings.images.model)
        if reference is None:
            yield Finding(True, "images: none are made, since images.model is not set")
            return
        endpoint = reference.endpoint(os.environ)
    except (ModelReferenceError, ModelError) as error:
        yield Finding(False, f"images: {error}")
        return
    if not endpoint.is_loopback:
        yield Finding(True, f"images: {reference} (on another machine, so it was not checked)")
    elif ask(f"{endpoint.url}/models") is None:
        yield Finding(False, f"images: nothing answers at {endpoint.url}. Start the server of {reference}.")
    else:
        yield Finding(True, f"images: {reference}; its server answers")


def check_tool_ranking(settings: "Settings") -> Findings:
    """Checks the embedding model, if the settings need it."""
    if not settings.model.tools_per_turn:
        return
    from antiphon.weights.folder import State, state_of
    from antiphon.weights.manifest import MINILM

    what = f"tools: {settings.model.tools_per_turn} per turn"
    missing = [package for package in ("numpy", "onnxruntime", "tokenizers") if find_spec(package) is None]
    if missing:
        install = "Run: pip install 'antiphon[local]'"
        yield Finding(False, f"{what}, chosen by words, since the package {missing[0]} is not installed. {install}")
    elif {state_of(settings.models_dir, MINILM, file) for file in MINILM.files} != {State.PRESENT}:
        yield Finding(False, f"{what}, chosen by words. To choose them by meaning, run `antiphon models pull minilm`.")
    else:
        yield Finding(True, f"{what}, chosen by meaning")


def check_understanding(settings: "Settings") -> Findings:
    """Tells whether the offline assistant understands requests by their meaning."""
    missing = _missing_embedding(settings)
    if missing is None:
        yield Finding(True, "offline assistant: understands requests by its sentences and by their meaning")
    else:
        yield Finding(
            True, f"offline assistant: understands its sentences only. To understand what they mean, too, {missing}"
        )


def check_knowledge(settings: "Settings") -> Findings:
    """Tells how many records the knowledge base has, and whether they are found by meaning, too."""
    try:
        records, passages, vectors = _count_records(settings.database)
    except (sqlite3.Error, AntiphonError):
        return  # the tables are made by the next start, or another check reports the reason
    what = f"knowledge base: {records:,} {'record' if records == 1 else 'records'}"
    if not records:
        yield Finding(True, f"{what}; `antiphon kb add FILE` adds some")
        return
    if not settings.knowledge.embeddings:
        yield Finding(True, f"{what}, found by words (knowledge.embeddings is off)")
        return
    missing = _missing_embedding(settings)
    if missing is not None:
        yield Finding(
            True, f"{what}, found by words. To find them by meaning, too, {missing}, then `antiphon kb reindex`"
        )
    elif vectors < passages:
        yield Finding(True, f"{what}, {passages - vectors:,} passages found by words only. Run: antiphon kb reindex")
    else:
        yield Finding(True, f"{what}, found by words and by meaning")


def _count_records(place: Path | str | None) -> tuple[int, int, int]:
    """Counts the records, their passages, and those with a vector."""
    if isinstance(place, str):
        state = inspect_postgres(place)
        return state.records, state.passages, state.vectors
    if place is None or not place.exists():
        raise sqlite3.OperationalError("there is no database")
    with _opened(place) as database:
        [(records,)] = database.execute("SELECT count(*) FROM kb_records WHERE batch = ''").fetchall()
        [(passages, vectors)] = database.execute("SELECT count(*), count(vector) FROM kb_passages").fetchall()
    return records, passages, vectors


def _missing_embedding(settings: "Settings") -> str | None:
    """Returns the command that is to be run before texts can be embedded; None if they can."""
    from antiphon.weights.folder import State, state_of
    from antiphon.weights.manifest import MINILM

    if any(find_spec(package) is None for package in ("numpy", "onnxruntime", "tokenizers")):
        return "run `pip install 'antiphon[kb]'`"
    if {state_of(settings.models_dir, MINILM, file) for file in MINILM.files} != {State.PRESENT}:
        return "run `antiphon models pull minilm`"
    return None


def check_tracing(settings: "Settings") -> Findings:
    from antiphon.telemetry.tracing import describe_tracing, plan_tracing

    plan = plan_tracing(os.environ)
    told = describe_tracing(plan) or "off, since no OTEL_* variable asks for them"
    yield Finding(plan.problem is None, f"traces: {told}")


CHECKS: Final[tuple[Check, ...]] = (
    check_folder,
    check_database,
    check_tools,
    check_hooks,
    check_models,
    check_images,
    check_tool_ranking,
    check_understanding,
    check_knowledge,
    check_voice,
    check_recording,
    check_calendar,
    check_web,
    check_home,
    check_mcp,
    check_tracing,
    check_access,
    check_tls,
    check_browser_microphone,
    check_server,
)
"""The checks, in the order of their output. A new one is a function of the settings and a line here."""


def _has_model(tags: bytes, name: str) -> bool:
    """Returns whether Ollama lists the model; true if its answer cannot be read, since it may be too long."""
    import json

    try:
        known = {model["name"] for model in json.loads(tags)["models"]}
    except (ValueError, KeyError, TypeError):
        return True
    return name in known or f"{name}:latest" in known


def _opened(path: Path) -> "closing[sqlite3.Connection]":
    """Opens a database for reading. `mode=rw` does not create a file, and can read one that is in use."""
    return closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=PATIENCE_S))


def _stored_version(database: sqlite3.Connection) -> str | None:
    tables = database.execute("SELECT name FROM sqlite_master WHERE name = 'alembic_version'").fetchall()
    rows = database.execute("SELECT version_num FROM alembic_version").fetchall() if tables else []
    return str(rows[0][0]) if rows else None


def _count_tokens(path: Path | str | None) -> int:
    """Counts the valid tokens. A database that cannot be read has none; another check reports the reason."""
    if isinstance(path, str):
        with suppress(AntiphonError):
            return inspect_postgres(path).tokens
        return 0
    if path is None or not path.exists():
        return 0
    valid = "SELECT count(*) FROM tokens WHERE expires_ms IS NULL OR expires_ms > ?"
    try:
        with _opened(path) as database:
            return int(database.execute(valid, (SystemClock().now_ms(),)).fetchone()[0])
    except sqlite3.Error:
        return 0


def _ask_json(url: str, tls: ssl.SSLContext | None = None) -> Any:
    """Returns None if there is no response, or if it is not JSON."""
    import msgspec

    try:
        return msgspec.json.decode(ask(url, tls) or b"null")
    except msgspec.DecodeError:
        return None

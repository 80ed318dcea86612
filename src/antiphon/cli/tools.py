"""`antiphon tools …`: build, look at, run, test and compare tools, and read their audit."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rapidfuzz import process
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from rich.table import Table

from antiphon.cli.options import ConfigOption, JsonOption, settings_for
from antiphon.compose import TOOLKIT, build_tools, load_tools, open_house, open_stores
from antiphon.config import Settings
from antiphon.errors import AntiphonError
from antiphon.storage.base import AuditLine
from antiphon.tools import build as builder
from antiphon.tools import diff as differ
from antiphon.tools import scaffold
from antiphon.tools.call import ToolCall
from antiphon.tools.lint import Severity
from antiphon.tools.registry import Snapshot
from antiphon.tools.result import ToolResult
from antiphon.tools.spec import Category, Mode
from antiphon.tools.tool import Tool
from antiphon.words.dates import parse_datetime

app = typer.Typer(no_args_is_help=True)

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The tool's id.")]


class UsageError(AntiphonError):
    """The command was given something that it cannot use."""

    code = "usage"


@app.command()
def build(config: ConfigOption = None) -> None:
    """Compile all tool directories into the registry, and name every mistake in them."""
    settings = settings_for(config)
    built = build_tools(settings)
    built_in = {entry.tool_id for entry in built.artifact.tools if TOOLKIT in Path(entry.origin).parents}
    for problem in built.problems:
        if problem.severity is Severity.WARNING and problem.tool in built_in:
            continue  # its user cannot change it
        style = "red" if problem.severity is Severity.ERROR else "yellow"
        err.print(f"[{style}]{problem.severity}[/] {escape(str(problem))}")
    if not built.ok:
        err.print(f"{len(built.errors)} mistakes; nothing was written.")
        raise typer.Exit(1)
    builder.write(built, settings.artifact_path)
    count, version = len(built.artifact.tools), built.artifact.version
    out.print(f"Built {count} tools, version {version}, into {escape(str(settings.artifact_path))}")


@app.command("list")
def list_tools(
    category: Annotated[Category | None, typer.Option(help="Only tools of this category.")] = None,
    mode: Annotated[Mode | None, typer.Option(help="Only tools allowed in this mode.")] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """List the tools."""
    snapshot = load_tools(settings_for(config)).snapshot()
    tools = [
        tool
        for tool in snapshot.tools.values()
        if (category is None or tool.spec.category is category) and (mode is None or mode in tool.spec.allowed_modes)
    ]
    if as_json:
        _print_json({"version": snapshot.version, "tools": [snapshot.metadata(tool.id) for tool in tools]})
        return
    table = Table(
        "tool", "category", "effects", "modes", "budget", "asks", title=f"{len(tools)} tools, {snapshot.version}"
    )
    for tool in tools:
        spec = tool.spec
        asks = "yes" if spec.requires_confirmation else ""
        table.add_row(
            tool.id,
            spec.category,
            spec.side_effects,
            " ".join(spec.allowed_modes),
            f"{spec.latency_budget_ms} ms",
            asks,
        )
    out.print(table)


@app.command()
def show(name: NameArgument, as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """Show one tool: its contract and its documentation."""
    snapshot = load_tools(settings_for(config)).snapshot()
    tool = _find(snapshot, name)
    if as_json:
        _print_json(
            {"spec": tool.spec, "digest": tool.digest, "origin": tool.origin, "documentation": tool.documentation}
        )
        return
    out.print(f"[bold]{tool.id}[/] {tool.spec.version}  {escape(tool.origin)}")
    out.print_json(msgspec.json.encode(tool.spec).decode())
    out.print(Markdown(tool.documentation))


@app.command()
def new(name: NameArgument, config: ConfigOption = None) -> None:
    """Write a new tool directory that already builds."""
    settings = settings_for(config)
    directory = scaffold.create(settings.tool_paths[0], name)
    out.print(f"Wrote {escape(str(directory))}. Edit it, then run `antiphon tools build`.")


@app.command()
def run(
    name: NameArgument,
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="The arguments, as a JSON object.")] = "{}",
    mode: Annotated[Mode, typer.Option(help="As if called in this mode.")] = Mode.TEXT,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Run a tool through the gate. With --json, prints the whole result. Exit code 1 if the tool was not ok."""
    settings = settings_for(config)
    call = ToolCall(None, name, _parse_args(args))
    result = asyncio.run(_run(settings, call, mode, as_json))
    if as_json:
        _print_json(result)
    else:
        _print_result(result)
    if not result.ok:
        raise typer.Exit(1)


@app.command("test", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run_tests(context: typer.Context, name: NameArgument, config: ConfigOption = None) -> None:
    """Run the tests in a tool's own tests/ folder with pytest. Further options go to pytest."""
    tool = _find(load_tools(settings_for(config)).snapshot(), name)
    tests = Path(tool.origin) / "tests"
    if not tests.is_dir():
        raise UsageError(f"{tool.id} has no tests: {tests} is missing.")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests), *context.args]
    if subprocess.run([sys.executable, "-c", "import pytest, pytest_asyncio"], capture_output=True).returncode:
        raise UsageError("running tests needs pytest and pytest-asyncio: pip install 'antiphon[dev]'.")
    raise typer.Exit(subprocess.run([*command, "-o", "asyncio_mode=auto"]).returncode)


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(help="The older tool_registry.json.")],
    new: Annotated[Path, typer.Argument(help="The newer tool_registry.json.")],
    as_json: JsonOption = False,
) -> None:
    """Say which changes between two registries break callers. Exit code 1 if any does."""
    comparison = differ.compare(_read_artifact(old), _read_artifact(new))
    if as_json:
        _print_json(comparison)
    else:
        for tool in comparison.tools:
            out.print(f"[bold]{tool.tool_id}[/] {tool.kind}")
            for change in tool.changes:
                mark = "[red]breaking[/]" if change.breaking else "[green]safe[/]"
                out.print(f"  {mark} {escape(change.field)}: {escape(change.sentence)}")
        breaks = "Some changes break callers." if comparison.breaking else "Nothing breaks callers."
        out.print(f"{comparison.old_version} → {comparison.new_version}. {breaks}")
    if comparison.breaking:
        raise typer.Exit(1)


@app.command()
def audit(
    since: Annotated[str | None, typer.Option(help='From when on: "2026-01-31", "2 hours ago". [default: all]')] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Print the audit, oldest first. With --json, one JSON line each."""
    settings = settings_for(config)
    asyncio.run(_print_audit(settings, _since_ms(since), as_json))


async def _run(settings: Settings, call: ToolCall, mode: Mode, as_json: bool) -> ToolResult:
    async with open_house(settings) as house:
        session = house.session(mode=mode, messaging=_Screen())
        house.executor.begin_turn(session)
        result = await house.executor.execute(call, session)
        request = result.error.confirmation_request if result.error is not None else None
        if request is None or as_json or not sys.stdin.isatty():
            return result
        approved = typer.confirm(f"{request.preview}\nShall I?")
        return await house.executor.resolve(request.confirmation_token, approved, session)


class _Screen:
    """The client of the session: shows what a tool sends, beside the result."""

    async def send(self, message: Mapping[str, Any]) -> None:
        err.print(f"[dim]to the client: {escape(json.dumps(message, ensure_ascii=False))}[/]")


async def _print_audit(settings: Settings, since_ms: int, as_json: bool) -> None:
    database = await open_stores(settings)
    try:
        after = 0
        while page := await database.audit.read(since_ms, after=after):
            for _, line in page:
                if as_json:
                    typer.echo(msgspec.json.encode(line).decode())
                else:
                    out.print(escape(_audit_text(line)))
            after = page[-1][0]
    finally:
        await database.aclose()


def _audit_text(line: AuditLine) -> str:
    when = datetime.fromtimestamp(line.ts_ms / 1000, UTC).astimezone().isoformat(sep=" ", timespec="milliseconds")
    notes = [
        line.event,
        line.confirmation and f"confirmation {line.confirmation}",
        "from an earlier run" if line.cache_hit else None,
        line.clamped and f"clamped {line.clamped}",
        line.data and json.dumps(line.data, ensure_ascii=False),
    ]
    told = "  ".join(note for note in notes if note)
    return f"{when}  {line.user}  {line.mode}  {line.tool}  {line.outcome}  {line.duration_ms:.1f} ms  {told}".rstrip()


def _since_ms(since: str | None) -> int:
    if since is None:
        return 0
    when = parse_datetime(since, datetime.now().astimezone())
    if when is None:
        raise UsageError(f'--since {since!r} is no time that I know. Try "2026-01-31", "yesterday" or "2 hours ago".')
    return int(when.timestamp() * 1000)


def _parse_args(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise UsageError(f'--args is not JSON: {error}. It is an object, such as \'{{"query": "tea"}}\'.') from None


def _read_artifact(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path} is no tool registry: {error}.") from None


def _find(snapshot: Snapshot, name: str) -> Tool:
    tool = snapshot.tools.get(name.replace("-", "_"))
    if tool is None:
        near = process.extractOne(name, list(snapshot.tools), score_cutoff=60)
        hint = f" Did you mean {near[0]}?" if near else " `antiphon tools list` shows them all."
        raise UsageError(f"there is no tool called {name!r}.{hint}")
    return tool


def _print_result(result: ToolResult) -> None:
    if result.error is not None:
        err.print(f"[red]{result.error.type}[/] {escape(result.error.message)}")
        if result.error.suggestion is not None:
            err.print(escape(result.error.suggestion))
        return
    if result.spoken is not None:
        out.print(f"[bold]{escape(result.spoken)}[/]")
    if result.flyout is not None:
        out.print(escape(result.flyout.content))
    out.print_json(msgspec.json.encode(result.data).decode())


def _print_json(value: object) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())

"""What the commands of `antiphon tools` do. Their options and help texts are in `tools.py`."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import typer
from rapidfuzz import process
from rich import box
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from rich.table import Column, Table

from antiphon.authoring import build as builder
from antiphon.authoring import diff as differ
from antiphon.authoring import scaffold
from antiphon.authoring.problems import Severity
from antiphon.cli.options import UsageError
from antiphon.compose import TOOLKIT, build_tools, find_missing, load_tools, open_app, open_stores
from antiphon.config import Settings
from antiphon.storage.base import AuditLine
from antiphon.tools.call import ToolCall
from antiphon.tools.messages import Message, is_message, not_a_message
from antiphon.tools.outputs import find_mismatches
from antiphon.tools.registry import Snapshot
from antiphon.tools.result import ToolResult
from antiphon.tools.source import parse_json
from antiphon.tools.spec import Category, Mode
from antiphon.tools.tool import Tool
from antiphon.words.dates import parse_datetime

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def build(settings: Settings) -> None:
    built = build_tools(settings)
    built_in = {entry.tool_id for entry in built.artifact.tools if TOOLKIT in Path(entry.origin).parents}
    missing = find_missing(settings, built.artifact.tools)
    for problem in [*built.problems, *missing]:
        if problem.severity is Severity.WARNING and problem.tool in built_in:
            continue  # users cannot change built-in tools
        style = "red" if problem.severity is Severity.ERROR else "yellow"
        err.print(f"[{style}]{problem.severity}[/] {escape(str(problem))}")
    mistakes = len(built.errors) + sum(problem.severity is Severity.ERROR for problem in missing)
    if mistakes:
        err.print(f"{mistakes} mistake{'s' * (mistakes > 1)}; nothing was written.")
        raise typer.Exit(1)
    builder.write(built, settings.artifact_path)
    count, version = len(built.artifact.tools), built.artifact.version
    out.print(
        f"Built {count} tool{'' if count == 1 else 's'}, version {version}, into {escape(str(settings.artifact_path))}"
    )


def list_tools(settings: Settings, category: Category | None, mode: Mode | None, as_json: bool) -> None:
    snapshot = load_tools(settings).snapshot()
    wanted = snapshot.tools.values() if category is None else snapshot.by_category(category)
    tools = [tool for tool in wanted if mode is None or mode in tool.spec.allowed_modes]
    if as_json:
        _print_json({"version": snapshot.version, "tools": [snapshot.metadata(tool.id) for tool in tools]})
        return
    # One line for each tool, narrow enough for a terminal of 80 columns, so that sixty of them can be read.
    # A long title is cut before anything else.
    table = Table(
        Column("tool", no_wrap=True),
        Column("title", no_wrap=True, overflow="ellipsis"),
        Column("category", no_wrap=True, min_width=9),
        Column("modes", no_wrap=True, min_width=5),
        Column("asks", no_wrap=True, min_width=7),
        title=f"{len(tools)} tool{'' if len(tools) == 1 else 's'}, {snapshot.version}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for tool in tools:
        spec = tool.spec
        modes = "both" if len(spec.allowed_modes) == len(Mode) else " ".join(spec.allowed_modes)
        table.add_row(tool.id, escape(spec.shown_title), spec.category, modes, _asks_first(tool))
    out.print(table)
    if any(map(_asks_first, tools)):
        out.print("asks: the user must approve each call (always), or some calls, by a rule of the tool (by rule).")


def show(settings: Settings, name: str, as_json: bool) -> None:
    snapshot = load_tools(settings).snapshot()
    tool = _find(snapshot, name)
    if as_json:
        _print_json(
            {"spec": tool.spec, "digest": tool.digest, "origin": tool.origin, "documentation": tool.documentation}
        )
        return
    out.print(f"[bold]{escape(tool.spec.shown_title)}[/] ({tool.id} {tool.spec.version})  {escape(tool.origin)}")
    out.print_json(msgspec.json.encode(tool.spec).decode())
    out.print(Markdown(tool.documentation))


def new(settings: Settings, name: str) -> None:
    directory = scaffold.create(settings.tool_paths[0], name)
    out.print(f"Wrote {escape(str(directory))}. Edit it, then run `antiphon tools build`.")


def run(settings: Settings, name: str, args: str, mode: Mode, *, as_json: bool, yes: bool) -> None:
    call = ToolCall(None, name, _parse_args(args))
    asks = not as_json and sys.stdin.isatty()
    approve = (lambda preview: True) if yes else _ask if asks else None
    result, mismatches = asyncio.run(_run(settings, call, mode, approve))
    if as_json:
        _print_json(result)
    else:
        _print_result(result)
    for mismatch in mismatches:
        err.print(f"[red]error[/] the result does not fit the outputs in schema.json: {escape(mismatch)}")
    if not result.ok or mismatches:
        raise typer.Exit(1)


def run_tests(settings: Settings, name: str, options: list[str]) -> None:
    tool = _find(load_tools(settings).snapshot(), name)
    tests = Path(tool.origin) / "tests"
    if not tests.is_dir():
        raise UsageError(f"{tool.id} has no tests: {tests} is missing.")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests), *options]
    if subprocess.run([sys.executable, "-c", "import pytest, pytest_asyncio"], capture_output=True).returncode:
        raise UsageError("running tests needs pytest and pytest-asyncio: pip install 'antiphon[dev]'.")
    raise typer.Exit(subprocess.run([*command, "-o", "asyncio_mode=auto"]).returncode)


def diff(old: Path, new: Path, as_json: bool) -> None:
    comparison = differ.compare(_read_artifact(old), _read_artifact(new))
    if as_json:
        _print_json(comparison)
    else:
        for tool in comparison.tools:
            out.print(f"[bold]{tool.tool_id}[/] {tool.kind}")
            for change in tool.changes:
                mark = "[red]breaking[/]" if change.breaking else "[green]safe[/]"
                out.print(f"  {mark} {escape(change.field)}: {escape(change.sentence)}")
        breaks = "Some changes break callers." if comparison.breaking else "No change breaks callers."
        out.print(f"{comparison.old_version} → {comparison.new_version}. {breaks}")
    if comparison.breaking:
        raise typer.Exit(1)


def audit(settings: Settings, since: str | None, as_json: bool) -> None:
    asyncio.run(_print_audit(settings, _since_ms(since), as_json))


async def _run(
    settings: Settings, call: ToolCall, mode: Mode, approve: Callable[[str], bool] | None
) -> tuple[ToolResult, list[str]]:
    """Returns the result, and what the tool's own schema does not allow in it.

    `approve` answers the question of a tool that asks first; None leaves it unanswered.
    """
    async with open_app(settings) as app:
        if app.services.mcp is not None and call.name not in app.registry.tools:
            # It may be a tool of a server that was never reached before.
            await app.services.mcp.settle()
        session = app.session(mode=mode, messaging=_Screen())
        app.executor.begin_turn(session)
        tool = app.registry.tools.get(call.name)
        if tool is not None and tool.warm is not None:
            # As a server does after its start: the tool's budget is for a process that runs.
            await asyncio.to_thread(tool.warm)
        result = await app.executor.execute(call, session)
        request = result.error.confirmation_request if result.error is not None else None
        if request is not None and approve is not None:
            result = await app.executor.resolve(request.confirmation_token, approve(request.preview), session)
        elif request is not None:
            err.print("Nothing was done. Add --yes to approve the call, or run it at a terminal to be asked.")
        return result, find_mismatches(tool.spec.outputs if tool is not None else None, result)


def _ask(preview: str) -> bool:
    return typer.confirm(preview if preview.endswith("?") else f"{preview} Shall I?")


def _asks_first(tool: Tool) -> str:
    has_policy = tool.needs_confirmation is not None or tool.is_asked_for is not None
    return "always" if tool.spec.requires_confirmation else "by rule" if has_policy else ""


class _Screen:
    """The client of the session: shows what a tool sends, beside the result."""

    async def send(self, message: Message) -> None:
        if not is_message(message):
            raise not_a_message(message)
        shown = {"type": type(message).__name__, **msgspec.to_builtins(message)}
        err.print(f"[dim]to the client: {escape(json.dumps(shown, ensure_ascii=False))}[/]")


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
        raise UsageError(f'{since!r} is not a time I understand. Try "2026-01-31", "yesterday" or "2 hours ago".')
    return int(when.timestamp() * 1000)


def _parse_args(text: str) -> dict[str, Any]:
    example = 'Give it an object, such as \'{"query": "tea"}\'.'
    try:
        args = parse_json(text.encode())
    except UnicodeEncodeError:
        raise UsageError(f"--args is not UTF-8 text. {example}") from None
    except ValueError as error:
        raise UsageError(f"--args is not JSON: {error}. {example}") from None
    if not isinstance(args, dict):
        raise UsageError(f"--args must be a JSON object. {example}")
    return args


def _read_artifact(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path} is not a tool registry: {error}.") from None


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

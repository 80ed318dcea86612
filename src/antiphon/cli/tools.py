"""`antiphon tools …`: build, list, show, run, test and compare tools, and read their audit."""

from pathlib import Path
from typing import Annotated

import typer

from antiphon.cli.options import ConfigOption, JsonOption, settings_for
from antiphon.tools.spec import Category, Mode

app = typer.Typer(no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The tool's id.")]


@app.command()
def build(config: ConfigOption = None) -> None:
    """Compile all tool directories into the registry, and report every mistake and whatever the tools lack here:
    packages, capabilities and secrets."""
    from antiphon.cli import tool_actions

    tool_actions.build(settings_for(config))


@app.command("list")
def list_tools(
    category: Annotated[Category | None, typer.Option(help="Only tools of this category.")] = None,
    mode: Annotated[Mode | None, typer.Option(help="Only tools allowed in this mode.")] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """List the tools."""
    from antiphon.cli import tool_actions

    tool_actions.list_tools(settings_for(config), category, mode, as_json)


@app.command()
def show(name: NameArgument, as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """Show one tool: its contract and its documentation."""
    from antiphon.cli import tool_actions

    tool_actions.show(settings_for(config), name, as_json)


@app.command()
def new(name: NameArgument, config: ConfigOption = None) -> None:
    """Write a new tool directory that already builds."""
    from antiphon.cli import tool_actions

    tool_actions.new(settings_for(config), name)


@app.command()
def run(
    name: NameArgument,
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="The arguments, as a JSON object.")] = "{}",
    mode: Annotated[Mode, typer.Option(help="As if called in this mode.")] = Mode.TEXT,
    yes: Annotated[
        bool, typer.Option("--yes", help="Approve the call if the tool asks first. [default: ask at a terminal]")
    ] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Run a tool through the gate. With --json, prints the whole result.

    Exit code 1 if the tool was not ok, or if its result does not fit the outputs in its schema.
    """
    from antiphon.cli import tool_actions

    tool_actions.run(settings_for(config), name, args, mode, as_json=as_json, yes=yes)


@app.command("test", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run_tests(context: typer.Context, name: NameArgument, config: ConfigOption = None) -> None:
    """Run the tests in a tool's own tests/ folder with pytest. Further options go to pytest."""
    from antiphon.cli import tool_actions

    tool_actions.run_tests(settings_for(config), name, context.args)


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(help="The older tool_registry.json.")],
    new: Annotated[Path, typer.Argument(help="The newer tool_registry.json.")],
    as_json: JsonOption = False,
) -> None:
    """Show what changed between two registries, and what breaks callers. Exit code 1 if anything does."""
    from antiphon.cli import tool_actions

    tool_actions.diff(old, new, as_json)


@app.command()
def audit(
    since: Annotated[str | None, typer.Option(help='From when on: "2026-01-31", "2 hours ago". [default: all]')] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Print the audit, oldest first. With --json, one JSON line each."""
    from antiphon.cli import tool_actions

    tool_actions.audit(settings_for(config), since, as_json)

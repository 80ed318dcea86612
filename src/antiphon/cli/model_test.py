"""`antiphon models test`: says hello to a configured model, and reports what it can do and what to set."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from antiphon.cli.options import ConfigOption, JsonOption, settings_for

if TYPE_CHECKING:
    from antiphon.models.probe.report import Report, Tell

DEFAULT_LIMIT_S: Final = 300.0
"""How long one answer may take. A small model on a CPU may need minutes for the first prompt."""
COLORS: Final = {"good": "green", "fair": "yellow", "bad": "red", "unknown": "dim"}

NameArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help='A model as in the settings, such as "ollama:qwen3". Default: the text model configured.'
    ),
]
LimitOption = Annotated[float, typer.Option("--limit", metavar="SECONDS", min=1, help="The time for each answer.")]


def run_model_test(
    name: NameArgument = None,
    limit_s: LimitOption = DEFAULT_LIMIT_S,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Say hello to a model, and report what it can do, how fast it is, and what to set.

    The exit code is 1 if the model does not answer. Six requests are made, which a paid provider charges for.
    """
    import asyncio

    from antiphon.compose.probing import probe_model

    settings = settings_for(config)
    with _telling(quiet=as_json) as tell:
        report = asyncio.run(probe_model(settings, name or settings.model.text, tell=tell, limit_s=limit_s))
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(report)).decode())
    elif report.ok:
        _show(report)
    else:
        from antiphon.models.base import ModelError

        raise ModelError(report.findings[-1].text)
    if not report.ok:
        raise typer.Exit(1)


def _show(report: "Report") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    out = Console(highlight=False)
    table = Table(report.model, "result")
    for finding in report.findings:
        color = COLORS[finding.mark]
        table.add_row(finding.check, f"[{color}]{escape(finding.text)}[/]")
    out.print(table)
    for sentence in report.advice:
        out.print(f"- {escape(sentence)}", soft_wrap=True)
    if not report.advice:
        out.print("There is nothing to change.")


@contextmanager
def _telling(*, quiet: bool) -> "Iterator[Tell]":
    """Shows what is being done: as a status line on a terminal, else a line for each step on standard error."""
    if quiet or not sys.stderr.isatty():
        yield (lambda step: None) if quiet else (lambda step: typer.echo(f"{step}…", err=True))
        return
    from rich.console import Console

    with Console(stderr=True).status("…") as status:
        yield lambda step: status.update(f"{step}…")

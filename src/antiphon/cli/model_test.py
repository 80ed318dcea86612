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
        metavar="NAME",
        help='A model as in the settings, such as "ollama:qwen3" or "gemini-live:gemini-3.8-live". Default: the models '
        "that are configured.",
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

    Without NAME, the text model of the settings is tested, and the voice model if it is a provider's. The exit code is
    1 if a model does not answer. A text model gets six requests and a voice model three, which a paid provider charges
    for. With --json, the report is an object; without NAME it is a list of them.
    """
    import asyncio

    from antiphon.compose.probing import configured_models, probe_model
    from antiphon.errors import AntiphonError
    from antiphon.models.probe.report import Finding, Mark, Report

    settings = settings_for(config)

    async def test(each: str) -> Report:
        try:
            return await probe_model(settings, each, tell=tell, limit_s=limit_s)
        except AntiphonError as error:
            return Report(each, False, (Finding("answers", Mark.BAD, str(error)),))

    reports: list[Report] = []
    for each in [name] if name is not None else configured_models(settings):
        with _telling(quiet=as_json) as tell:
            reports.append(asyncio.run(test(each)))
        if not as_json:
            _show(reports[-1])
    if as_json:
        import msgspec

        document = reports if name is None else reports[0]
        typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
    if not all(report.ok for report in reports):
        raise typer.Exit(1)


def _show(report: "Report") -> None:
    if not report.ok:
        typer.echo(f"antiphon: {report.findings[-1].text}", err=True)
        return
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

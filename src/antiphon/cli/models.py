"""`antiphon models …`: list, pull, verify and remove model files, pull into Ollama, and test a configured model."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from antiphon.cli.model_test import run_model_test
from antiphon.cli.options import ConfigOption, JsonOption, settings_for

if TYPE_CHECKING:
    from pathlib import Path

    from antiphon.weights.folder import State
    from antiphon.weights.manifest import File, Model
    from antiphon.weights.puller import Progress

app = typer.Typer(no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="As `antiphon models list` shows it.")]
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME", help='Which models, or "ollama:NAME" for one of Ollama\'s. Default: all that speech needs.'
    ),
]
OLLAMA_PREFIX: Final = "ollama:"


app.command("test")(run_model_test)


@app.command("list")
def list_models(as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """List the models with their purpose, size and state."""
    from antiphon.weights.folder import state_of
    from antiphon.weights.manifest import MODELS

    models_dir = settings_for(config).models_dir
    found = {model: [state_of(models_dir, model, file) for file in model.files] for model in MODELS.values()}
    if as_json:
        _print_json(models_dir, found)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("model", "use", "size", "licence", "state")
    for model, states in found.items():
        table.add_row(model.name, model.use, _size(model.size_bytes), model.licence, _state(states))
    Console(highlight=False).print(table)
    typer.echo(f"Model folder: {models_dir}")


@app.command()
def pull(names: NamesArgument = None, config: ConfigOption = None) -> None:
    """Download the missing models. Models that are already present are not touched."""
    from antiphon.weights.manifest import DEFAULT, find_model
    from antiphon.weights.puller import pull as pull_models

    models_dir = settings_for(config).models_dir
    of_ollama = [name for name in names or () if name.startswith(OLLAMA_PREFIX)]
    models = [find_model(name) for name in names if name not in of_ollama] if names else DEFAULT
    for name in of_ollama:
        _pull_into_ollama(name)
    if not models:
        return
    with _progress() as on_progress:
        pulled = pull_models(models, models_dir, on_progress)
    if pulled:
        typer.echo(f"Pulled {', '.join(model.name for model in pulled)} into {models_dir}")
    else:
        typer.echo(f"All models are already in {models_dir}")


@app.command()
def verify(as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """Compare every file with its SHA-256. Exit code 1 if one is missing or damaged.

    Of a model that the voice does not need, all files may be missing.
    """
    from antiphon.weights.folder import State, path_of, state_of
    from antiphon.weights.folder import verify as verify_file
    from antiphon.weights.manifest import MODELS, VOICE
    from antiphon.weights.puller import Progress

    models_dir = settings_for(config).models_dir
    with _progress(only_bar=True) as on_progress:

        def check(model: "Model", file: "File") -> State:
            def tell(done_bytes: int) -> None:
                on_progress(Progress(f"Reading {file.name}", done_bytes, file.size_bytes))

            return verify_file(models_dir, model, file, tell)

        def is_wanted(model: "Model") -> bool:
            states = (state_of(models_dir, model, file) for file in model.files)
            return model in VOICE or any(state is not State.MISSING for state in states)

        wanted = [model for model in MODELS.values() if is_wanted(model)]
        found = {model: [check(model, file) for file in model.files] for model in wanted}
    wrong = [
        (model, file, state)
        for model, states in found.items()
        for file, state in zip(model.files, states, strict=True)
        if state is not State.PRESENT
    ]
    if as_json:
        _print_json(models_dir, found)
    elif not wrong:
        typer.echo(f"All {sum(map(len, found.values()))} files in {models_dir} are intact.")
    else:
        for model, file, state in wrong:
            typer.echo(f"{path_of(models_dir, model, file)} is {state}. {_advice(model, state)}")
    if wrong:
        raise typer.Exit(1)


@app.command()
def remove(name: NameArgument, config: ConfigOption = None) -> None:
    """Remove a model's files and everything derived from them."""
    from antiphon.weights.folder import remove as remove_model
    from antiphon.weights.manifest import find_model

    model = find_model(name)
    models_dir = settings_for(config).models_dir
    was_there = remove_model(models_dir, model)
    typer.echo(f"Removed {name} from {models_dir}" if was_there else f"There is no {name} in {models_dir}")


def _pull_into_ollama(name: str) -> None:
    import asyncio
    import os

    from antiphon.models.providers import explain_missing_package
    from antiphon.models.providers.references import parse

    reference = parse(name)
    with explain_missing_package(reference, package="httpx2", extra="ollama"):
        from antiphon.models.providers.ollama_pull import pull_model
    with _progress() as on_progress:
        asyncio.run(pull_model(reference, os.environ, on_progress))
    typer.echo(f'Ollama has {reference.model}. To use it, set model.text = "{reference}".')


@contextmanager
def _progress(only_bar: bool = False) -> "Iterator[Callable[[Progress], None]]":
    """Shows progress bars on a terminal's standard error; elsewhere it prints a line when each step begins."""
    if not sys.stderr.isatty():
        begun: set[str] = set()

        def tell(progress: "Progress") -> None:
            if progress.what not in begun and not only_bar:
                begun.add(progress.what)
                size = f" ({_size(progress.total_bytes)})" if progress.total_bytes else ""
                typer.echo(f"{progress.what}{size}", err=True)

        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(progress: "Progress") -> None:
            if progress.what not in tasks:
                tasks[progress.what] = bars.add_task(progress.what, total=progress.total_bytes or None)
            total = progress.total_bytes or None
            bars.update(tasks[progress.what], completed=progress.done_bytes, total=total)

        yield show


def _state(states: "list[State]") -> "State":
    """The state of a model: present only if all its files are."""
    from antiphon.weights.folder import State

    return next((state for state in (State.DAMAGED, State.MISSING) if state in states), State.PRESENT)


def _advice(model: "Model", state: "State") -> str:
    from antiphon.weights.folder import State

    again = f"`antiphon models pull {model.name}`"
    # Pulling checks only the size, and a damaged file may have the right size.
    return f"Run `antiphon models remove {model.name}`, then {again}." if state is State.DAMAGED else f"Run {again}."


def _print_json(models_dir: "Path", found: "dict[Model, list[State]]") -> None:
    import msgspec

    from antiphon.weights.folder import path_of

    models = [
        {
            "name": model.name,
            "use": model.use,
            "licence": model.licence,
            "size_bytes": model.size_bytes,
            "state": _state(states),
            "files": [
                {
                    "path": str(path_of(models_dir, model, file)),
                    "size_bytes": file.size_bytes,
                    "sha256": file.sha256,
                    "package": str(file.package),
                    "state": state,
                }
                for file, state in zip(model.files, states, strict=True)
            ],
        }
        for model, states in found.items()
    ]
    document = {"models_dir": str(models_dir), "models": models}
    typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def _size(size_bytes: int) -> str:
    from rich.filesize import decimal

    return decimal(size_bytes)

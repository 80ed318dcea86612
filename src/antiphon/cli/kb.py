"""`antiphon kb …`: fills and searches the knowledge base."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from antiphon.cli.data import LocalUserOption, local_user, open_data, plain, progress_bar
from antiphon.cli.options import ConfigOption, JsonOption, UsageError, settings_for

if TYPE_CHECKING:
    from antiphon.config import Settings
    from antiphon.services.kb import Knowledge
    from antiphon.storage.knowledge import Namespace, Readable, Record, RecordType

app = typer.Typer(no_args_is_help=True)

LISTED: Final = 50
FOUND: Final = 5

NamespaceOption = Annotated[
    str | None, typer.Option("--namespace", metavar="NAME", help="studio, personal or public. [default: all]")
]
TypeOption = Annotated[
    str | None, typer.Option("--type", metavar="TYPE", help="project, person, process, link or doc.")
]
TagOption = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="Only records with this tag. May be given several times."),
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of the record, such as doc:vacation_policy.")]


@app.command()
def add(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|DIR…", help="Markdown, text, JSON lines, CSV and PDF files, or folders with such files."
        ),
    ],
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NAME", help="studio, personal or public.", show_default=True)
    ] = "studio",
    type: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="The type of records that do not name theirs.")
    ] = "doc",
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="A tag for all records. May be given several times."),
    ] = None,
    user: LocalUserOption = None,
    words_only: Annotated[
        bool,
        typer.Option(
            "--words-only", help="Do not compute vectors, which takes long. `antiphon kb reindex` does it later."
        ),
    ] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Add the records in files, or update those that were added from the same files before: all of them, or none."""
    settings = settings_for(config)
    shelf_namespace, shelf_type = _namespace(namespace), _type(type)
    if user is not None and shelf_namespace != "personal":
        raise UsageError("--user is for personal records. Add --namespace personal.")
    owner = user or local_user() if shelf_namespace == "personal" else ""
    done = asyncio.run(
        _add(
            settings,
            paths,
            namespace=shelf_namespace,
            type=shelf_type,
            owner=owner,
            tags=tag or [],
            embed=not words_only,
        )
    )
    if json:
        _print_json(done)
        return
    skipped = f" Skipped {done['skipped']} files of other kinds." if done["skipped"] else ""
    typer.echo(f"Added {done['added']} records, updated {done['updated']}.{skipped}")
    if not done["vectors"] and not words_only:
        typer.echo(f"They are found by their words only: {_because(done['problem'])}", err=True)


@app.command("list")
def list_records(
    namespace: NamespaceOption = None,
    type: TypeOption = None,
    tag: TagOption = None,
    user: LocalUserOption = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many records to print at most.")] = LISTED,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """List the most recently updated records."""
    settings = settings_for(config)
    records, total = asyncio.run(_list(settings, _wanted(user, namespace, type, tag), limit))
    if json:
        _print_json({"records": [_short(record) for record in records], "total": total})
        return
    if not records:
        typer.echo("There are no such records. `antiphon kb add FILE` adds some.")
        return
    _print_table(records)
    if total > len(records):
        typer.echo(f"{len(records)} of {total} records. --limit shows more.")


@app.command()
def show(id: IdArgument, user: LocalUserOption = None, json: JsonOption = False, config: ConfigOption = None) -> None:
    """Show a whole record."""
    record = asyncio.run(_get(settings_for(config), id, _wanted(user, None, None, None)))
    if record is None:
        raise _unknown(id)
    if json:
        _print_json({**_short(record), "body": record.body, "metadata": dict(record.metadata), "source": record.source})
        return
    lines = [record.title, f"{record.id}  {record.namespace}  {_day(record)}  {', '.join(record.tags)}".rstrip()]
    lines += [record.url] if record.url else []
    lines += [f"{key}: {value}" for key, value in record.metadata.items()]
    typer.echo("\n".join([*map(plain, lines), "", *map(plain, record.body.splitlines())]))


@app.command()
def remove(
    ids: Annotated[
        list[str], typer.Argument(metavar="ID…", help="The ids of the records, as `antiphon kb list` shows them.")
    ],
    user: LocalUserOption = None,
    config: ConfigOption = None,
) -> None:
    """Remove records. If one of them does not exist, none is removed."""
    missing = asyncio.run(_remove(settings_for(config), ids, _wanted(user, None, None, None)))
    if missing:
        raise _unknown(missing[0])
    typer.echo(f"Removed {len(ids)} {'record' if len(ids) == 1 else 'records'}.")


@app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A question, or a few words.")],
    namespace: NamespaceOption = None,
    type: TypeOption = None,
    tag: TagOption = None,
    user: LocalUserOption = None,
    limit: Annotated[int, typer.Option(min=1, max=50, help="How many records to print at most.")] = FOUND,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Search the records, as the assistant does."""
    if not query.strip():
        raise UsageError("the query is empty.")
    found = asyncio.run(_search(settings_for(config), query, _wanted(user, namespace, type, tag), limit))
    if json:
        _print_json(found)
        return
    if found["answer"] is not None:
        typer.echo(plain(f"According to “{found['answer']['title']}”: {found['answer']['text']}") + "\n")
    for each in found["results"]:
        typer.echo(plain(f"{each['score']:.2f}  {each['id']}  {each['title']}"))
        typer.echo(plain(f"      {each['snippet']}"))
    if not found["results"]:
        typer.echo("Nothing was found.")
    if found["search"] == "words":
        typer.echo(f"Only words were compared, not meaning: {_because(found['problem'])}", err=True)


@app.command()
def reindex(
    all: Annotated[
        bool, typer.Option("--all", help="Make all vectors and the index of words anew, not only what is missing.")
    ] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Compute the vectors that are missing, after `antiphon models pull minilm` or `kb add --words-only`.

    A Postgres server with pgvector also gets an index of the vectors, if it has none yet."""
    done = asyncio.run(_reindex(settings_for(config), all))
    if json:
        _print_json(done)
        return
    typer.echo(f"{done['records']} records in {done['passages']} passages, {done['vectors']} of them with a vector.")
    if done["indexed"]:
        typer.echo("Postgres searches them with pgvector.")
    if done["problem"] is not None:
        typer.echo(f"No vectors were computed: {_because(done['problem'])}", err=True)


# The work of the commands.


@asynccontextmanager
async def open_kb(settings: "Settings") -> "AsyncIterator[Knowledge]":
    from functools import partial

    from antiphon.compose.embedding import open_embedder
    from antiphon.services.kb import open_knowledge

    async with (
        open_data(settings) as database,
        open_knowledge(settings, database.knowledge, partial(open_embedder, settings)) as knowledge,
    ):
        yield knowledge


async def _add(
    settings: "Settings",
    paths: Sequence[Path],
    *,
    namespace: "Namespace",
    type: "RecordType",
    owner: str,
    tags: Sequence[str],
    embed: bool,
) -> dict[str, Any]:
    from antiphon.services.kb.files import Shelf, make_records, read_files
    from antiphon.services.kb.records import clean_tag

    with progress_bar() as progress:
        task = progress.add_task("Reading", total=None)
        reading = await asyncio.to_thread(read_files, paths, lambda path: progress.advance(task))
        async with open_kb(settings) as knowledge:
            known = await knowledge.store.sources(owner)
            shelf = Shelf(namespace, owner, type, tuple(map(clean_tag, tags)))
            records = await asyncio.to_thread(make_records, reading, shelf, known)
            progress.remove_task(task)
            task = progress.add_task("Adding", total=len(records))
            published = await knowledge.add(
                records, by_meaning=embed, on_progress=lambda done: progress.update(task, completed=done)
            )
            problem = await knowledge.problem() if embed else "--words-only was given"
    return {
        "added": published.added,
        "updated": published.updated,
        "skipped": reading.skipped,
        "vectors": problem is None,
        "problem": problem,
        "ids": [record.id for record in records],
    }


async def _list(settings: "Settings", readable: "Readable", limit: int) -> "tuple[Sequence[Record], int]":
    async with open_kb(settings) as knowledge:
        return await knowledge.store.list(readable, limit), await knowledge.store.count(readable)


async def _get(settings: "Settings", id: str, readable: "Readable") -> "Record | None":
    async with open_kb(settings) as knowledge:
        return await knowledge.store.get(id, readable)


async def _remove(settings: "Settings", ids: Sequence[str], readable: "Readable") -> list[str]:
    async with open_kb(settings) as knowledge:
        found = [await knowledge.store.get(id, readable) for id in ids]
        missing = [id for id, record in zip(ids, found, strict=True) if record is None]
        if not missing:
            for record in found:
                assert record is not None
                await knowledge.remove(record.id, record.owner)
        return missing


async def _search(settings: "Settings", query: str, readable: "Readable", limit: int) -> dict[str, Any]:
    from msgspec.structs import asdict

    async with open_kb(settings) as knowledge:
        found = await knowledge.search(query, readable, limit)
        answer = await knowledge.answer(query, found)
        problem = None
        if not found.by_meaning:
            problem = await knowledge.problem() or "no record has a vector. Run: antiphon kb reindex"
    return {
        "results": [asdict(each) for each in found.results],
        "search": "hybrid" if found.by_meaning else "words",
        "problem": problem,
        "answer": None
        if answer is None
        else {"id": answer.evidence.id, "title": answer.evidence.title, "text": answer.text},
    }


async def _reindex(settings: "Settings", all: bool) -> dict[str, Any]:
    from msgspec.structs import asdict

    with progress_bar() as progress:
        task = progress.add_task("Computing vectors", total=None)
        async with open_kb(settings) as knowledge:
            counts = await knowledge.reindex(
                all=all, on_progress=lambda done, total: progress.update(task, completed=done, total=total)
            )
            progress.remove_task(task)
            progress.add_task("Making the index of the vectors", total=None)
            indexed = await knowledge.store.make_vector_index(anew=all)
            return {**asdict(counts), "indexed": indexed, "problem": await knowledge.problem()}


def _wanted(user: str | None, namespace: str | None, type: str | None, tags: Sequence[str] | None) -> "Readable":
    """Makes what to look at. The operator reads all namespaces, and the personal records of one user."""
    from antiphon.services.kb.records import clean_tag
    from antiphon.storage.knowledge import Namespace, Readable

    return Readable(
        user or local_user(),
        tuple(Namespace) if namespace is None else (_namespace(namespace),),
        type=None if type is None else _type(type),
        tags=tuple(map(clean_tag, tags or ())),
    )


def _namespace(name: str) -> "Namespace":
    from antiphon.storage.knowledge import Namespace

    if name not in tuple(Namespace):
        raise UsageError(f"{name!r} is not a namespace. It must be one of {', '.join(Namespace)}.")
    return Namespace(name)


def _type(name: str) -> "RecordType":
    from antiphon.storage.knowledge import RecordType

    if name not in tuple(RecordType):
        raise UsageError(f"{name!r} is not a type. It must be one of {', '.join(RecordType)}.")
    return RecordType(name)


def _unknown(id: str) -> UsageError:
    return UsageError(f"there is no record with the id {id!r}. `antiphon kb list` shows them.")


def _because(problem: str | None) -> str:
    return f"{(problem or '').rstrip('.')}."


def _short(record: "Record") -> dict[str, Any]:
    from antiphon.services.kb.records import to_iso

    return {
        "id": record.id,
        "namespace": record.namespace,
        "type": record.type,
        "title": record.title,
        "tags": list(record.tags),
        "url": record.url,
        "source_type": record.source_type,
        "last_updated": to_iso(record.last_updated_ms),
    }


def _day(record: "Record") -> str:
    from antiphon.services.kb.records import to_iso

    return to_iso(record.last_updated_ms)[:10]


def _print_table(records: "Sequence[Record]") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("id", "title", "namespace", "tags", "updated")
    for record in records:
        cells = (record.id, record.title, record.namespace, ", ".join(record.tags), _day(record))
        table.add_row(*(escape(plain(cell)) for cell in cells))
    Console(highlight=False).print(table)


def _print_json(value: Any) -> None:
    import msgspec

    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())

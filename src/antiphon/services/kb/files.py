"""Reads records from files: Markdown, text, JSON lines, CSV and PDF. All mistakes are reported at once."""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Final

from antiphon.errors import AntiphonError
from antiphon.services.kb.records import MAX_BODY_CHARS, RecordError, check_record, clean_tag, make_id, to_ms
from antiphon.storage.knowledge import SHARED, Namespace, Record, RecordType

MISTAKES_SHOWN: Final = 20
MAX_FILE_BYTES: Final = 512 * 1024 * 1024
_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_HEADING: Final = re.compile(r"\A\s*#[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_BODY_KEYS: Final = ("body", "text", "content")
_DATE_KEYS: Final = ("last_updated", "updated", "date")
_KNOWN_KEYS: Final = frozenset({"id", "title", "name", "type", "tags", "url", "source_type", "metadata"})


class ImportMistakes(AntiphonError):
    """Files cannot be read as records; nothing was stored. `mistakes` has a line for each."""

    code = "kb_import"

    def __init__(self, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(mistakes)
        shown = [*mistakes[:MISTAKES_SHOWN]]
        if len(mistakes) > MISTAKES_SHOWN:
            shown.append(f"and {len(mistakes) - MISTAKES_SHOWN} more")
        if len(mistakes) == 1:
            super().__init__(f"nothing was added: {mistakes[0]}")
        else:
            lines = "\n".join(f"  {line}" for line in shown)
            super().__init__(f"nothing was added, because of {len(mistakes)} mistakes:\n{lines}")


class Mistake(ValueError):
    """What is wrong at one place of a file."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where records go, and what those get that do not say otherwise."""

    namespace: Namespace
    owner: str = SHARED
    type: RecordType = RecordType.DOC
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """What a file says about one record."""

    place: str
    """The file, and the line if it has several records."""
    source: str
    source_type: str
    fields: Mapping[str, Any]
    name: str
    """What its id is made from, if it has none."""
    updated_ms: int
    is_whole_file: bool


@dataclass(slots=True)
class Reading:
    drafts: list[Draft] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    skipped: int = 0
    """Files in folders that are of no known kind."""


def read_files(paths: Sequence[Path], on_file: Callable[[Path], None] = lambda path: None) -> Reading:
    """Reads files, and all files of known kinds in folders."""
    reading = Reading()
    for path, base in _walk(paths, reading):
        on_file(path)
        try:
            size = path.stat().st_size
            if size > MAX_FILE_BYTES:
                raise Mistake(f"it is larger than {MAX_FILE_BYTES // 2**20} MB. Split it.")
            for draft in READERS[path.suffix.lower()](path, base):
                if isinstance(draft, Draft):
                    reading.drafts.append(draft)
                else:
                    reading.mistakes.append(draft)
        except UnicodeDecodeError as error:
            reading.mistakes.append(f"{path}: it is not UTF-8 text (byte {error.start})")
        except OSError as error:
            reading.mistakes.append(f"{path}: it cannot be read: {error.strerror}")
        except Mistake as error:
            reading.mistakes.append(f"{path}: {error}")
    return reading


def make_records(reading: Reading, shelf: Shelf, known: Mapping[str, str]) -> list[Record]:
    """Makes the records. `known` are the ids of the shelf's owner with the files that they were read from: the same
    file, read again, gets the same ids. Raises `ImportMistakes`."""
    mistakes = list(reading.mistakes)
    ids_by_source = {source: id for id, source in known.items() if source}
    records: dict[str, tuple[Record, str]] = {}
    for draft in reading.drafts:
        try:
            record = _make(draft, shelf, ids_by_source, lambda id: _is_taken(id, draft, records, known))  # noqa: B023
            if record.id in records:
                raise Mistake(f"the id {record.id} is also that of {records[record.id][1]}. Ids must differ.")
            check_record(record)
        except (Mistake, RecordError) as error:
            mistakes.append(f"{draft.place}: {error}")
        else:
            records[record.id] = record, draft.place
    if mistakes:
        raise ImportMistakes(mistakes)
    return [record for record, _ in records.values()]


def _is_taken(id: str, draft: Draft, records: Mapping[str, object], known: Mapping[str, str]) -> bool:
    return id in records or (id in known and known[id] != draft.source)


def _make(draft: Draft, shelf: Shelf, ids_by_source: Mapping[str, str], is_taken: Callable[[str], bool]) -> Record:
    fields = draft.fields
    type = _read_type(fields.get("type"), shelf.type)
    title = " ".join(str(fields.get("title") or fields.get("name") or draft.name).split())
    id = fields.get("id")
    if id is None or id == "":
        kept = ids_by_source.get(draft.source) if draft.is_whole_file else None
        same_type = kept is not None and kept.startswith(f"{type}:")
        id = kept if same_type else make_id(type, draft.name if draft.is_whole_file else title, is_taken)
    elif not isinstance(id, str):
        raise Mistake("the id must be text.")
    elif ":" not in id:
        id = f"{type}:{id}"
    body = next((fields[key] for key in _BODY_KEYS if fields.get(key) is not None), "")
    if not isinstance(body, str):
        raise Mistake("the body must be text.")
    url = fields.get("url") or None
    if not isinstance(url, str | None):
        raise Mistake("the url must be text.")
    return Record(
        id=str(id),
        owner=shelf.owner,
        namespace=shelf.namespace,
        type=type,
        title=title,
        body=body,
        tags=tuple(dict.fromkeys([*_read_tags(fields.get("tags")), *shelf.tags])),
        url=url.strip() if url else None,
        source_type=str(fields.get("source_type") or draft.source_type),
        source=draft.source,
        last_updated_ms=_read_moment(fields, draft.updated_ms),
        metadata=_read_metadata(fields),
    )


def _read_type(given: Any, default: RecordType) -> RecordType:
    if given in (None, ""):
        return default
    try:
        return RecordType(str(given).strip().lower())
    except ValueError:
        known = ", ".join(RecordType)
        raise Mistake(f"{given!r} is not a type. It must be one of {known}.") from None


def _read_tags(given: Any) -> list[str]:
    if given in (None, ""):
        return []
    items = re.split(r"[;,]", given) if isinstance(given, str) else given
    if not isinstance(items, list) or not all(isinstance(item, str | int) for item in items):
        raise Mistake("tags must be a list of words.")
    return [tag for tag in (clean_tag(str(item)) for item in items) if tag]


def _read_moment(fields: Mapping[str, Any], default_ms: int) -> int:
    given = next((fields[key] for key in _DATE_KEYS if fields.get(key) not in (None, "")), None)
    match given:
        case None:
            return default_ms
        case datetime():
            return to_ms(given)
        case date():
            return to_ms(datetime.combine(given, time(), UTC))
        case str():
            try:
                return to_ms(datetime.fromisoformat(given.strip()))
            except ValueError:
                pass
    raise Mistake(f"{given!r} is not a date. Write it as 2026-01-31 or 2026-01-31T15:30:00Z.")


def _read_metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    own = fields.get("metadata") or {}
    if not isinstance(own, Mapping):
        raise Mistake("metadata must be an object.")
    others = {
        key: value
        for key, value in fields.items()
        if key not in _KNOWN_KEYS and key not in (*_BODY_KEYS, *_DATE_KEYS) and value not in (None, "")
    }
    return {key: _plain(value) for key, value in {**others, **own}.items()}


def _plain(value: Any) -> Any:
    """Returns a value that JSON can hold. YAML has dates, too."""
    match value:
        case date():
            return value.isoformat()
        case Mapping():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
    return value


# The kinds of files. A reader yields a draft for each record, and a line for each mistake.

Reader = Callable[[Path, Path], Iterator[Draft | str]]


def _walk(paths: Sequence[Path], reading: Reading) -> Iterator[tuple[Path, Path]]:
    """Yields each file with the folder that its name is relative to."""
    for path in paths:
        if path.is_dir():
            found = sorted(each for each in path.rglob("*") if each.is_file() and not _is_hidden(each, path))
            readable = [each for each in found if each.suffix.lower() in READERS]
            reading.skipped += len(found) - len(readable)
            yield from ((each, path) for each in readable)
        elif not path.exists():
            reading.mistakes.append(f"{path}: there is no such file or folder")
        elif path.suffix.lower() not in READERS:
            kinds = ", ".join(READERS)
            reading.mistakes.append(f"{path}: files of this kind cannot be read. Known kinds: {kinds}")
        else:
            yield path, path.parent


def _is_hidden(path: Path, base: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(base).parts)


def _document(path: Path, base: Path, source_type: str, fields: Mapping[str, Any]) -> Draft:
    relative = path.relative_to(base).with_suffix("")
    return Draft(
        place=str(path),
        source=str(path.resolve()),
        source_type=source_type,
        fields={"title": path.stem.replace("_", " ").replace("-", " ").strip().capitalize(), **fields},
        name=" ".join(relative.parts),
        updated_ms=_modified_ms(path),
        is_whole_file=True,
    )


def _row(path: Path, line: int, source_type: str, fields: Mapping[str, Any]) -> Draft | str:
    place = f"{path}:{line}"
    if not (fields.get("title") or fields.get("name")):
        return f'{place}: it has no title. Add a "title".'
    source = str(path.resolve())
    return Draft(place, source, source_type, fields, "", _modified_ms(path), is_whole_file=False)


def _read_markdown(path: Path, base: Path) -> Iterator[Draft | str]:
    text = _read_text(path)
    fields: dict[str, Any] = {}
    matter = _FRONT_MATTER.match(text)
    if matter is not None:
        fields = _read_front_matter(matter[1])
        text = text[matter.end() :]
    heading = _HEADING.match(text)
    if heading is not None and not fields.get("title"):
        fields["title"] = heading[1].strip()
    yield _document(path, base, "markdown", {**fields, "body": text.strip("\n")})


def _read_front_matter(text: str) -> dict[str, Any]:
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" (line {mark.line + 2})"
        raise Mistake(f"its front matter is not YAML{where}: {getattr(error, 'problem', error)}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Mistake('its front matter must have lines such as "title: Vacation policy".')
    return {str(key).strip().lower(): value for key, value in found.items()}


def _read_plain(path: Path, base: Path) -> Iterator[Draft | str]:
    yield _document(path, base, "text", {"body": _read_text(path).strip("\n")})


def _read_jsonl(path: Path, base: Path) -> Iterator[Draft | str]:
    for number, line in enumerate(_read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield f"{path}:{number}: it is not JSON: {getattr(error, 'msg', error)}"
            continue
        if not isinstance(fields, dict):
            yield f"{path}:{number}: it must be an object"
            continue
        yield _row(path, number, "jsonl", fields)


def _read_csv(path: Path, base: Path) -> Iterator[Draft | str]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file, strict=True)
        try:
            columns = [column.strip().lower() for column in reader.fieldnames or ()]
            if not {"title", "name"} & set(columns):
                raise Mistake('its first line must name the columns, and one of them must be "title".')
            reader.fieldnames = columns
            for row in reader:
                if None in row or any(value is None for value in row.values()):
                    yield f"{path}:{reader.line_num}: it does not have {len(columns)} columns as the first line has"
                else:
                    yield _row(path, reader.line_num, "csv", row)
        except csv.Error as error:
            yield f"{path}:{reader.line_num}: it is not CSV: {error}"


def _read_pdf(path: Path, base: Path) -> Iterator[Draft | str]:
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ModuleNotFoundError:
        raise Mistake("PDF files need a package. Run: pip install 'antiphon[pdf]'") from None
    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Mistake("it is protected by a password.")
        text = "\n\n".join(page.extract_text().strip() for page in reader.pages).strip()
        title = reader.metadata.title if reader.metadata is not None else None
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, Mistake):
            raise
        raise Mistake(f"it cannot be read as PDF: {error}") from None
    if not text:
        raise Mistake("it has no text, only pictures. Recognise its text first, with an OCR program.")
    fields = {"title": title.strip()} if isinstance(title, str) and title.strip() else {}
    yield _document(path, base, "pdf", {**fields, "body": text})


READERS: Final[Mapping[str, Reader]] = {
    ".md": _read_markdown,
    ".markdown": _read_markdown,
    ".txt": _read_plain,
    ".jsonl": _read_jsonl,
    ".csv": _read_csv,
    ".pdf": _read_pdf,
}


def _read_text(path: Path) -> str:
    text = path.read_text(encoding="utf-8-sig")
    if "\0" in text[:MAX_BODY_CHARS]:
        raise Mistake("it is not text.")
    return text


def _modified_ms(path: Path) -> int:
    return int(path.stat().st_mtime * 1000)

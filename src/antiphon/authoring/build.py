"""Compiles tool directories into one versioned artifact, and reports everything that is wrong with any of them."""

import os
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any, Final

import msgspec

from antiphon.authoring.adapters import ADAPTERS
from antiphon.authoring.lint import sentences
from antiphon.authoring.lint.draft import SCHEMA, SENTENCES, Draft, check
from antiphon.authoring.lint.mentions import check_mentions
from antiphon.authoring.problems import BuildError, Problem, Severity, did_you_mean
from antiphon.clock import Clock, SystemClock
from antiphon.tools.artifact import FORMAT, Artifact, Entry, version_of
from antiphon.tools.loader import HandlerError, collector_paused, import_handler
from antiphon.tools.source import Source, read, tool_id_of

GIT_TIMEOUT_S: Final = 2.0
SYSTEM_CLOCK: Final = SystemClock()


@dataclass(frozen=True, slots=True)
class Built:
    artifact: Artifact
    """Holds only the tools that have no errors."""
    problems: list[Problem]

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity is Severity.ERROR]

    @property
    def ok(self) -> bool:
        return not self.errors


@collector_paused()
def build(
    paths: Sequence[Path],
    *,
    disable: Collection[str] = (),
    shipped: Path | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Built:
    """Compiles the tools in `paths`, the first of which holds the built-in ones. A tool replaces one of the same id in
    an earlier path. Those in `disable` are left out, unread.

    Tools in the folder `shipped` do not claim each other's sentences: Antiphon's own tests have compared them, which
    takes some seconds.
    """
    roots = list(dict.fromkeys(path.resolve() for path in paths))
    index = ToolIndex(frozenset(map(tool_id_of, disable)))
    for root in roots:
        index.add(root)
    drafts = [check(source) for _, source in sorted(index.sources.items())]
    problems = [*index.problems, *index.unknown_disabled(), *(problem for one in drafts for problem in one.problems)]
    problems += _check_sentences(drafts, shipped)
    problems += [problem for one in drafts for problem in check_mentions(one.source, one.schema, index.tool_ids)]
    wrong = {problem.tool for problem in problems if problem.severity is Severity.ERROR}
    entries = []
    for one in drafts:
        schemas, failures = _adapt(one)
        problems += failures
        if one.source.tool_id not in wrong and not failures:
            entries.append(_entry(one, schemas))
    artifact = Artifact(
        format=FORMAT,
        version=version_of(entries),
        git_commit=_git_commit(roots),
        build_timestamp=clock.now(UTC).isoformat(timespec="seconds"),
        tools=entries,
    )
    return Built(artifact, sorted(problems, key=lambda problem: problem.tool))


def write(built: Built, path: Path) -> None:
    """Replaces the artifact atomically: a server that starts meanwhile reads the old one or the new one."""
    if not built.ok:
        raise BuildError(
            f"{path} was not written, because some tools have errors. See them with `antiphon tools build`."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with open(descriptor, "wb") as file:
                file.write(msgspec.json.encode(built.artifact) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            # mkstemp's files are for their owner alone; the server may run as someone else.
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    except OSError as error:
        raise BuildError(f"{path} cannot be written: {error.strerror}.") from error


def check_handlers(entries: Iterable[Entry]) -> list[Problem]:
    """Imports the handler of each tool as a server would, and reports those that cannot be imported."""
    problems: list[Problem] = []
    for entry in entries:
        try:
            import_handler(read(Path(entry.origin)))
        except HandlerError as error:
            problems.append(Problem(entry.tool_id, error.file, error.field, error.reason))
        except OSError as error:
            problems.append(Problem(entry.tool_id, "", "", f"{error.filename} cannot be read: {error.strerror}"))
    return problems


def _check_sentences(drafts: Sequence[Draft], shipped: Path | None) -> Iterator[Problem]:
    spoken = {one.source.tool_id: one.sentences for one in drafts if one.sentences is not None}
    agreed = {one.source.tool_id for one in drafts if one.source.directory.parent == shipped}
    for tool_id, message in sentences.cross_check(spoken, agreed=agreed):
        yield Problem(tool_id, SENTENCES, "", message)


def _adapt(one: Draft) -> tuple[dict[str, dict[str, Any]], list[Problem]]:
    """Makes the tool's schema for each provider."""
    schemas: dict[str, dict[str, Any]] = {}
    problems: list[Problem] = []
    if one.spec is not None:
        for provider, adapt in ADAPTERS.items():
            try:
                schemas[provider] = adapt(one.spec)
            except BuildError as error:
                message = str(error).removeprefix(f"{one.source.tool_id}: ")
                problems.append(Problem(one.source.tool_id, SCHEMA, "parameters", message))
    return schemas, problems


def _entry(one: Draft, provider_schemas: dict[str, dict[str, Any]]) -> Entry:
    return Entry(
        tool_id=one.source.tool_id,
        digest=one.source.digest,
        origin=str(one.source.directory),
        spec=one.schema,
        summary=one.summary,
        documentation=one.document,
        examples=one.examples,
        sentences=one.sentences,
        provider_schemas=provider_schemas,
    )


def _git_commit(roots: Sequence[Path]) -> str | None:
    """Returns the commit of the repository with the tools, preferably of the user's own tools."""
    for root in reversed(roots):
        if any((folder / ".git").exists() for folder in (root, *root.parents)):
            return _head(root)
    return None


def _head(root: Path) -> str | None:
    # A git hook that builds the tools has GIT_DIR set, which would take precedence over the folder.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--short", "HEAD"],
            capture_output=True,
            check=True,
            env=environment,
            text=True,
            timeout=GIT_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


@dataclass(slots=True)
class ToolIndex:
    """The tool directories of all paths, by id: what counts as a tool, and which of two wins."""

    disabled: frozenset[str]
    sources: dict[str, Source] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _roots: list[Path] = field(default_factory=list)
    _left_out: set[str] = field(default_factory=set)

    def add(self, root: Path) -> None:
        is_builtin = not self._roots
        self._roots.append(root)
        if not root.is_dir():
            if is_builtin or root.exists():
                what = "is not a directory" if root.exists() else "does not exist"
                self.problems.append(Problem("", str(root), "", f"{what}, so there are no tools in it"))
            return
        found: dict[str, Source] = {}
        for directory in _tool_directories(root):
            self._read(directory, found)
        for tool_id, source in found.items():
            if tool_id in self.sources:
                self.problems.append(self._replacement(source, self.sources[tool_id]))
            self.sources[tool_id] = source

    @property
    def tool_ids(self) -> frozenset[str]:
        """All tools that were found, including disabled ones."""
        return frozenset({*self.sources, *self._left_out})

    def unknown_disabled(self) -> Iterator[Problem]:
        for tool_id in sorted(self.disabled - self._left_out):
            hint = did_you_mean(tool_id, [*self.sources, *self._left_out])
            message = f"should be disabled, but there is no such tool.{hint}"
            yield Problem(tool_id, "", "", message, Severity.WARNING)

    def _read(self, directory: Path, found: dict[str, Source]) -> None:
        tool_id = tool_id_of(directory.name)
        if tool_id in self.disabled:
            self._left_out.add(tool_id)
            return
        try:
            source = read(directory)
        except OSError as error:
            self.problems.append(Problem(tool_id, "", "", f"{error.filename} cannot be read: {error.strerror}"))
            return
        if not source.files:
            return
        if tool_id in found:
            other = found[tool_id].directory.name
            message = f"exists twice, as {other}/ and as {directory.name}/; '-' and '_' make the same id"
            self.problems.append(Problem(tool_id, "", "", message))
            return
        found[tool_id] = source

    def _replacement(self, new: Source, old: Source) -> Problem:
        kind = "the built-in" if old.directory.parent == self._roots[0] else "the one"
        message = f"{new.directory} replaces {kind} in {old.directory}"
        return Problem(new.tool_id, "", "", message, Severity.WARNING)


def _tool_directories(root: Path) -> list[Path]:
    with os.scandir(root) as entries:
        return sorted(
            root / entry.name for entry in entries if not entry.name.startswith((".", "_")) and entry.is_dir()
        )

"""The tool directories of all paths, by id: what counts as a tool, and which of two wins."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from antiphon.tools.lint.problem import Problem, Severity, did_you_mean
from antiphon.tools.source import Source, read, tool_id_of


@dataclass(slots=True)
class Shelf:
    """The tools of all paths, by id."""

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
        """All tools that were found, those that are disabled among them."""
        return frozenset({*self.sources, *self._left_out})

    def unknown_disabled(self) -> Iterator[Problem]:
        for tool_id in sorted(self.disabled - self._left_out):
            hint = did_you_mean(tool_id, [*self.sources, *self._left_out])
            message = f"is to be disabled, but there is no such tool.{hint}"
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
            message = f"is there twice, as {other}/ and as {directory.name}/; '-' and '_' make the same id"
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

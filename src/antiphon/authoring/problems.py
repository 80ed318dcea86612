"""Problems that the build finds in a tool: where, and what is wrong."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from antiphon.errors import AntiphonError


class BuildError(AntiphonError):
    """The tool directories cannot be compiled."""

    code = "tools_build"


class Severity(StrEnum):
    ERROR = "error"
    """The tool cannot be built."""
    WARNING = "warning"
    """The tool can be built, but its author should check this."""


@dataclass(frozen=True, slots=True)
class Problem:
    tool: str
    file: str
    """The path within the tool's directory; empty if the problem is about the tool as a whole."""
    field: str
    """A dotted path in JSON, otherwise a section or a line; empty if the problem is about the file as a whole."""
    message: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        place = "/".join(part for part in (self.tool, self.file) if part)
        return ": ".join(part for part in (place, self.field, self.message) if part)


@dataclass(frozen=True, slots=True)
class Place:
    """A file of a tool, which makes the problems found in that file."""

    tool: str
    file: str

    def error(self, field: str, message: str) -> Problem:
        return Problem(self.tool, self.file, field, message)

    def warning(self, field: str, message: str) -> Problem:
        return Problem(self.tool, self.file, field, message, Severity.WARNING)


def dotted(*path: str | int) -> str:
    return ".".join(map(str, path))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a question to append to a sentence, or nothing if no known name is similar."""
    near = get_close_matches(name, list(known), n=1)
    return f' Did you mean "{near[0]}"?' if near else ""

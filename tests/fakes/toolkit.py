"""The built-in tools as a server loads them, built once for all tests of a process."""

from functools import cache
from pathlib import Path

from antiphon import toolkit
from antiphon.authoring.build import build
from antiphon.models.builtin.understanding import Understanding
from antiphon.models.builtin.understood import Run
from antiphon.tools.loader import load
from antiphon.tools.source import read
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool


@cache
def built_in() -> dict[str, Tool]:
    folder = Path(toolkit.__path__[0])
    built = build([folder], shipped=folder)
    assert built.ok, built.errors
    return {entry.tool_id: load(entry, read(Path(entry.origin))) for entry in built.artifact.tools}


@cache
def understanding() -> Understanding:
    return Understanding(built_in())


def understood(text: str, mode: Mode = Mode.VOICE) -> list[tuple[str, dict[str, object]]]:
    """The calls that the offline assistant makes for a sentence; none if it does not know for certain."""
    found = understanding().understand(text, mode)
    return [(call.tool_id, dict(call.args)) for call in found.calls] if isinstance(found, Run) else []

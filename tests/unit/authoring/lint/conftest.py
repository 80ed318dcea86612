from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon.authoring.lint.draft import check
from antiphon.authoring.problems import Problem
from antiphon.tools.source import read
from tests.fakes.toolbox import write_tool

Lint = Callable[..., tuple[Problem, ...]]


@pytest.fixture
def lint(tmp_path: Path) -> Lint:
    """Writes a tool that differs from a valid one as `write_tool` is told, and gives what there is to say about it."""

    def problems_of(**changes: Any) -> tuple[Problem, ...]:
        return check(read(write_tool(tmp_path, **changes))).problems

    return problems_of

"""Fixtures of the end-to-end tests. A server with a voice takes seconds to start, so all tests share one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.voices import VoiceServer, serve
from tests.fakes.toolbox import document, write_tool

GARDEN_HANDLER = """\
from pathlib import Path

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


def preview(args: Args) -> str:
    return "Water the garden?"


async def execute(args: Args, context: Context) -> ToolResult:
    Path(__file__).with_name("watered").touch()
    return ok({"watered": True}, spoken="The garden has been watered.")
"""


def write_garden(folder: Path) -> None:
    """Adds a tool to the project that asks for confirmation."""
    write_tool(
        folder / "tools",
        "water_garden",
        category="action",
        sideEffects="writes",
        idempotent=False,
        requiresConfirmation=True,
        parameters={"type": "object", "additionalProperties": False, "properties": {}},
        files={
            "handler.py": GARDEN_HANDLER,
            "doc.md": document("water_garden", "{}"),
            "sentences.yaml": 'data:\n  - sentences: ["[please] water the garden"]\n',
        },
    )


@pytest.fixture(scope="session")
def voice_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("voice")
    write_garden(folder)
    return folder


@pytest.fixture(scope="session")
def voice_server(voice_folder: Path, models_dir: Path) -> Iterator[VoiceServer]:
    with serve(voice_folder, models_dir) as server:
        yield server

import gc
import sys
from pathlib import Path

import pytest

from antiphon.authoring.testing import load_module, make_context
from antiphon.tools.errors import RegistryError
from antiphon.tools.loader import collector_paused
from tests.fakes.toolbox import write_tool

EXECUTE = "async def execute(args, context): return WHAT\n"


async def test_a_handler_is_loaded_from_its_directory(tmp_path: Path) -> None:
    handler = load_module(write_tool(tmp_path))
    result = await handler.execute({"name": "Ada"}, make_context("greet"))
    assert result.data == {"greeting": "Hello, Ada."}


async def test_siblings_are_imported_relatively(tmp_path: Path) -> None:
    files = {
        "handler.py": f"from .jokes import WHAT\n{EXECUTE}",
        "jokes.py": "from .deep.more import WHAT\n",
        "deep/more.py": "WHAT = 'found'\n",
    }
    handler = load_module(write_tool(tmp_path, files=files))
    assert await handler.execute({}, make_context()) == "found"


def test_a_relative_import_of_a_parent_does_not_work(tmp_path: Path) -> None:
    write_tool(tmp_path, "other")
    directory = write_tool(tmp_path, files={"handler.py": f"from ..other.handler import execute\n{EXECUTE}"})
    with pytest.raises(RegistryError, match="beyond top-level package"):
        load_module(directory)


async def test_two_versions_can_be_loaded_side_by_side(tmp_path: Path) -> None:
    late = "async def execute(args, context):\n    from .word import WHAT\n    return WHAT\n"
    old = load_module(write_tool(tmp_path, files={"handler.py": late, "word.py": "WHAT = 'old'\n"}))
    new = load_module(write_tool(tmp_path, files={"handler.py": late, "word.py": "WHAT = 'new'\n"}))
    assert await old.execute({}, make_context()) == "old"
    assert await new.execute({}, make_context()) == "new"


def test_each_load_starts_with_fresh_globals(tmp_path: Path) -> None:
    directory = write_tool(tmp_path, files={"handler.py": f"SEEN = []\n{EXECUTE}"})
    load_module(directory).SEEN.append(1)
    assert load_module(directory).SEEN == []


def test_a_handler_finds_its_data_beside_it(tmp_path: Path) -> None:
    code = f"from pathlib import Path\nWHAT = Path(__file__).with_name('word.txt').read_text()\n{EXECUTE}"
    assert load_module(write_tool(tmp_path, files={"handler.py": code, "word.txt": "hello"})).WHAT == "hello"


def test_loading_writes_nothing_into_the_directory(tmp_path: Path) -> None:
    directory = write_tool(
        tmp_path, files={"handler.py": f"from .word import WHAT\n{EXECUTE}", "word.py": "WHAT = 1\n"}
    )
    before = sorted(path.name for path in directory.iterdir())
    load_module(directory)
    assert sorted(path.name for path in directory.iterdir()) == before


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"handler.py": "\nimport nothing_like_this\n"},
            r"imports nothing_like_this, which is not installed\. Run `pip install nothing_like_this`.*py, line 2",
        ),
        (
            {"handler.py": "1 / 0\n"},
            r"cannot be imported: ZeroDivisionError: division by zero \(.*handler\.py, line 1\)",
        ),
        ({"handler.py": "x = (\n"}, r"cannot be imported: SyntaxError: .*handler\.py, line 1"),
        ({"handler.py": "raise SystemExit(3)\n"}, r"cannot be imported: SystemExit: 3"),
        (
            {"handler.py": "from .word import WHAT\n", "word.py": "\n\nWHAT = unknown\n"},
            r"cannot be imported: NameError: .*word\.py, line 3",
        ),
        ({"handler.py": None}, r"cannot be imported: ModuleNotFoundError: .*handler\.py"),
    ],
)
def test_an_import_error_names_tool_place_and_reason(
    tmp_path: Path, files: dict[str, str | None], message: str
) -> None:
    directory = write_tool(tmp_path, files=files)
    with pytest.raises(RegistryError, match=f"^The tool greet {message}"):
        load_module(directory)


def test_a_failed_import_leaves_no_module_behind(tmp_path: Path) -> None:
    directory = write_tool(tmp_path, "unlucky", files={"handler.py": "from .word import X\n", "word.py": "Y = 1\n"})
    with pytest.raises(RegistryError):
        load_module(directory)
    assert not [name for name in sys.modules if "unlucky" in name]


def test_a_missing_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="nowhere cannot be read: No such file or directory"):
        load_module(tmp_path / "nowhere")


def test_the_garbage_collector_is_paused_only_during_loading() -> None:
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_garbage_collector_is_reenabled_after_an_error() -> None:
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()


def test_a_disabled_garbage_collector_stays_disabled() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()

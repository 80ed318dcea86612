import json
import platform
from pathlib import Path

import psutil
import pytest

from antiphon.authoring.testing import make_context
from antiphon.toolkit.get_system_info import handler
from antiphon.toolkit.get_system_info.handler import execute, report, speak
from antiphon.toolkit.get_system_info.machine import Machine, read_processor
from antiphon.tools.arguments import compile_schema
from antiphon.tools.result import FlyoutType

SCHEMA = json.loads((Path(handler.__file__).parent / "schema.json").read_text())
LAPTOP = Machine(
    "Debian GNU/Linux 12 (bookworm)", "6.1.0-28-amd64", "x86_64", "AMD Ryzen 7 5800U", 8, 16, 15.5, "3.11.7"
)


@pytest.mark.real_time
async def test_this_machine_is_described() -> None:
    result = await execute({}, make_context())
    assert result.data["architecture"] == platform.machine()
    assert result.data["threads"] == psutil.cpu_count()
    assert result.data["memory_gb"] == pytest.approx(psutil.virtual_memory().total / 2**30, abs=0.1)


@pytest.mark.real_time
async def test_the_data_matches_the_output_schema() -> None:
    result = await execute({}, make_context())
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.real_time
async def test_the_report_is_shown_in_the_terminal() -> None:
    flyout = (await execute({}, make_context())).flyout
    assert flyout is not None
    assert flyout.flyout_type is FlyoutType.TERMINAL
    assert f"Python       {platform.python_version()}\n" in flyout.content


@pytest.mark.real_time
async def test_no_environment_variable_is_disclosed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USER", "LOGNAME", "HOME", "HOSTNAME", "COMPUTERNAME", "PROCESSOR_IDENTIFIER"):
        monkeypatch.setenv(name, "a-person-of-note")
    result = await execute({}, make_context())
    assert "a-person-of-note" not in f"{result.data} {result.spoken} {result.flyout}"


def test_the_sentence_is_suitable_for_speech() -> None:
    assert speak(LAPTOP) == "This computer runs Debian Linux 12, with 8 processor cores and 16 gigabytes of memory."


def test_a_small_machine_is_described_in_the_singular() -> None:
    board = Machine("Alpine Linux v3.20", "6.6.31", "armv6l", None, 1, 1, 0.9, "3.12.3")
    assert speak(board) == "This computer runs Alpine Linux v3.20, with one processor core and 1 gigabyte of memory."


def test_very_little_memory_still_gives_a_sentence() -> None:
    board = Machine("Alpine Linux v3.20", "6.6.31", "armv6l", None, 1, 1, 0.4, "3.12.3")
    assert speak(board).endswith("with one processor core and less than a gigabyte of memory.")


def test_an_unknown_processor_is_said_to_be_unknown() -> None:
    board = Machine("Alpine Linux v3.20", "6.6.31", "armv6l", None, 1, 1, 0.4, "3.12.3")
    assert "Processor    unknown\n" in report(board)


def test_the_processor_is_read_without_its_trade_marks(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel\t\t: 207\nmodel name\t: Intel(R) Core(TM) i7-8550U CPU @ 1.80GHz\n\n")
    assert read_processor(cpuinfo) == "Intel Core i7-8550U CPU @ 1.80GHz"


def test_a_processor_that_does_not_report_its_name_has_none(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nBogoMIPS\t: 108.00\n")
    assert read_processor(cpuinfo) is None


def test_a_system_without_cpuinfo_has_no_processor_name(tmp_path: Path) -> None:
    assert read_processor(tmp_path / "missing") is None

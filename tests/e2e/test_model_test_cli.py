"""`antiphon models test`, as people use it."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.terminal import Shown, Terminal
from tests.fakes import tested_model
from tests.fakes.chat_server import Answer, ChatServer, Request

pytestmark = pytest.mark.real_time


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


async def run_test(terminal: Terminal, behave: Callable[[Request], Answer], *options: str) -> Shown:
    async with ChatServer(behave) as server:
        return await asyncio.to_thread(terminal.run, "models", "test", f"openai:{server.url}#m", *options)


async def test_the_report_is_a_table_with_what_to_set(terminal: Terminal) -> None:
    shown = await run_test(terminal, tested_model.writes_calls)
    assert shown.code == 0
    assert "written as text, which is recognised" in shown.out
    assert "- Calls come as text." in shown.out
    assert "Sending the prompt with all tools" in shown.err


async def test_the_report_as_json_has_every_finding(terminal: Terminal) -> None:
    shown = await run_test(terminal, tested_model.good, "--json")
    assert (shown.code, shown.err) == (0, "")
    assert shown.json["ok"] is True
    assert {"check": "tool call", "mark": "good", "text": "made properly", "value": None} in shown.json["findings"]


async def test_a_model_that_never_answers_is_one_line_and_exit_code_1(terminal: Terminal) -> None:
    shown = await run_test(terminal, tested_model.never_answers, "--limit", "1")
    assert (shown.code, shown.out) == (1, "")
    assert "did not finish an answer within 1 seconds." in shown.err.splitlines()[-1]


async def test_a_failure_as_json_is_on_standard_output_with_exit_code_1(terminal: Terminal) -> None:
    shown = await run_test(terminal, tested_model.never_answers, "--limit", "1", "--json")
    assert (shown.code, shown.json["ok"]) == (1, False)


async def test_without_a_name_the_model_of_the_settings_is_tested(terminal: Terminal) -> None:
    async with ChatServer(tested_model.good) as server:
        reference = f"openai:{server.url}#m"
        shown = await asyncio.to_thread(terminal.run, "models", "test", "--json", ANTIPHON_MODEL__TEXT=reference)
    assert [report["model"] for report in shown.json] == [reference]


def test_the_offline_assistant_needs_no_test(terminal: Terminal) -> None:
    shown = terminal.run("models", "test")
    assert (shown.code, "it is part of this program" in shown.out) == (0, True)


def test_an_unknown_name_is_one_line(terminal: Terminal) -> None:
    shown = terminal.run("models", "test", "qwen")
    assert shown.code == 1
    (line,) = shown.err.splitlines()
    assert line.startswith('antiphon: there is no model "qwen".')
    assert '"ollama:NAME"' in line
    assert '"gemini-live:NAME"' in line


def test_a_missing_key_is_one_line(terminal: Terminal) -> None:
    shown = terminal.run("models", "test", "openai:gpt-5", OPENAI_API_KEY="")
    assert shown.code == 1
    assert shown.err.splitlines()[-1].startswith("antiphon: openai:gpt-5 needs an API key.")


def test_a_voice_model_without_a_key_is_one_line(terminal: Terminal) -> None:
    shown = terminal.run("models", "test", "gemini-live:gemini-3.8-live", GEMINI_API_KEY="")
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.splitlines()[-1] == "antiphon: gemini-live:gemini-3.8-live needs an API key. Set GEMINI_API_KEY."


def test_the_other_configured_model_is_tested_when_one_has_no_key(terminal: Terminal) -> None:
    voice = "openai-realtime:gpt-realtime-2"
    shown = terminal.run("models", "test", "--json", OPENAI_API_KEY="", ANTIPHON_MODEL__VOICE=voice)
    assert shown.code == 1
    assert [(report["model"], report["ok"]) for report in shown.json] == [("builtin", True), (voice, False)]


def test_a_voice_models_server_that_is_not_there_is_one_line(terminal: Terminal) -> None:
    voice = "openai-realtime:http://127.0.0.1:9/v1#gpt-realtime-2"
    shown = terminal.run("models", "test", voice, ANTIPHON_SPEECH__TTS="none")
    assert (shown.code, shown.out) == (1, "")
    assert "openai-realtime:gpt-realtime-2 cannot be reached" in shown.err.splitlines()[-1]

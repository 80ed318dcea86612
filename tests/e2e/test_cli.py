"""The command line, as people and scripts use it."""

import json
import re
import shutil
from pathlib import Path

import pytest

import antiphon
from tests.e2e.terminal import Terminal
from tests.fakes.toolbox import HANDLER, write_tool


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--version"], 0), (["serv"], 2), (["tools", "show", "calculat"], 1), (["tools", "run", "calculat"], 1)],
)
def test_the_installed_command_ends_with_an_exit_code_and_without_a_traceback(
    terminal: Terminal, words: list[str], code: int
) -> None:
    shown = terminal.run_process(*words)
    assert shown.code == code
    assert "Traceback" not in shown.err
    assert shown == terminal.run(*words)


def test_help_names_the_commands(terminal: Terminal) -> None:
    shown = terminal.run("--help")
    assert shown.code == 0
    assert "chat" in shown.out
    assert "tools" in shown.out


def test_help_shows_the_defaults(terminal: Terminal) -> None:
    assert "[default: the setting server.host]" in terminal.run("serve", "--help").out


def test_a_group_without_a_command_shows_its_help_and_fails(terminal: Terminal) -> None:
    shown = terminal.run("token")
    assert shown.code == 2
    assert "revoke" in shown.err


@pytest.mark.parametrize(
    ("words", "told", "help"),
    [
        (["serv"], "serve", "antiphon --help"),
        (["serve", "now"], "now", "antiphon serve --help"),
        (["serve", "--ports", "1"], "--ports", "antiphon serve --help"),
        (["serve", "--port", "eighty"], "--port", "antiphon serve --help"),
        (["serve", "--port", "65536"], "65535", "antiphon serve --help"),
        (["serve", "--host"], "--host", "--help"),
        (["token", "revoke"], "ID", "antiphon token revoke --help"),
        (["token", "new", "--days", "0"], "--days", "antiphon token new --help"),
        (["data", "delete"], "--user", "antiphon data delete --help"),
        (["tools", "run", "calculate", "--mode", "song"], "voice", "antiphon tools run --help"),
    ],
)
def test_a_command_that_is_not_understood_prints_one_clear_line(
    terminal: Terminal, words: list[str], told: str, help: str
) -> None:
    shown = terminal.run(*words)
    assert shown.code == 2
    assert shown.err.startswith("antiphon: ")
    assert len(shown.err.strip().splitlines()) == 1
    assert told in shown.err
    assert shown.err.endswith(f"{help}`.\n")


def test_a_calculation_prints_the_whole_envelope(terminal: Terminal) -> None:
    shown = terminal.run("tools", "run", "calculate", "--args", '{"expression":"2**10"}', "--json")
    assert shown.code == 0
    assert shown.json["ok"] is True
    assert shown.json["data"]["result"] == 1024
    assert shown.json["meta"]["tool"] == "calculate"
    assert shown.json["meta"]["registry_version"].startswith("1.0.")
    assert shown.json["intents"] == []


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["calculate", "--args", '{"expression": 5}'], "VALIDATION"),
        (["calculate", "--args", '{"expression": "1", "precision": 3}'], "VALIDATION"),
        (["calculat", "--args", "{}"], "NOT_FOUND"),
        (["start_voice_session", "--mode", "voice"], "MODE_RESTRICTED"),
    ],
)
def test_a_call_that_the_gate_refuses_prints_an_envelope_and_exits_with_1(
    terminal: Terminal, words: list[str], error: str
) -> None:
    shown = terminal.run("tools", "run", *words, "--json")
    assert shown.code == 1
    assert shown.json["ok"] is False
    assert shown.json["error"]["type"] == error


def test_without_json_a_result_is_printed_in_words(terminal: Terminal) -> None:
    shown = terminal.run("tools", "run", "calculate", "--args", '{"expression": "15 % of 80"}')
    assert "12" in shown.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tools", "run", "calculate", "--args", "{expression: 1}"], "--args is not JSON"),
        (["tools", "run", "calculate", "--args", ""], "--args is not JSON"),
        (["tools", "run", "calculate", "--args", "[1]"], "--args must be a JSON object"),
        (["tools", "run", "calculate", "--args", "[" * 100_000], "nested too deeply"),
        (["tools", "run", "calculate", "--args", '{"a":' * 20_000 + "1" + "}" * 20_000], "nested too deeply"),
        (["tools", "run", "calculate", "--args", '{"expression": "\\ud800"}'], "half of a surrogate pair"),
        (["tools", "run", "calculate", "--args", '{"expression": "\udcff"}'], "not UTF-8"),
        (["tools", "run", "calculate", "--args", '{"expression": 1, "expression": 2}'], "appears twice"),
        (["tools", "run", "calculate", "--args", '{"expression": 1e999}'], "1e999"),
        (["tools", "run", "calculate", "--args", '{"expression": ' + "9" * 5_000 + "}"], "--args is not JSON"),
        (["tools", "show", "calculat"], "Did you mean calculate?"),
        (["tools", "test", "nothing_like_it"], "there is no tool called"),
        (["tools", "diff", "old.json", "new.json"], "old.json cannot be read"),
        (["tools", "audit", "--since", "banana"], "is not a time I understand"),
        (["tools", "new", "9lives"], "9lives"),
        (["tools", "list", "--config", "nowhere.toml"], "nowhere.toml"),
        (["serve", "--config", "nowhere.toml"], "nowhere.toml"),
        (["serve", "--host", "no-such-host.invalid", "--insecure"], "Check --host"),
        (["serve", "--host", "0.0.0.0"], "antiphon token new"),
        (
            ["talk", "question.wav", "--save", "answer.mp3"],
            "only as a WAV file. Give --save a name such as answer.wav.",
        ),
        (["talk", "question.wav", "--save", "answer"], "only as a WAV file. Give --save a name such as answer.wav."),
        (["chat", "--url", "nonsense"], "ws://127.0.0.1:8000/ws"),
        (["chat", "--url", "ws://127.0.0.1:9/ws"], "no server can be reached"),
    ],
)
def test_bad_input_prints_one_clear_line(terminal: Terminal, words: list[str], told: str) -> None:
    shown = terminal.run(*words)
    assert shown.code == 1
    assert shown.err.startswith("antiphon: ")
    assert told in shown.err
    assert len(shown.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("origin", "told"),
    [
        ("https://a.example/x", "Write https://a.example instead."),
        ("https://a.example/", "Write https://a.example instead."),
        ("https://a.example:8443/x?y#z", "Write https://a.example:8443 instead."),
        ("HTTPS://User@A.example/x", "such as https://example.org"),
        ("a.example", "Write https://a.example instead."),
        ("*", "such as https://example.org"),
        ("https://*.a.example", "such as https://example.org"),
    ],
)
@pytest.mark.parametrize("command", ["serve", "doctor"])
def test_a_malformed_origin_is_refused_with_the_right_form(
    terminal: Terminal, command: str, origin: str, told: str
) -> None:
    shown = terminal.run(command, ANTIPHON_SERVER__ORIGINS=f'["{origin}"]', ANTIPHON_SERVER__PORT="0")
    assert shown.code == 1
    [line] = [line for line in (shown.out + shown.err).splitlines() if "server.origins" in line]
    assert origin in line
    assert told in line


def test_an_unknown_setting_prints_the_nearest_known_one(terminal: Terminal) -> None:
    shown = terminal.run("tools", "list", ANTIPHON_TOOLS__PATH="x")
    assert shown.code == 1
    assert "ANTIPHON_TOOLS__PATHS" in shown.err


def test_a_missing_prompt_file_stops_the_server_at_its_start(terminal: Terminal) -> None:
    installed = terminal.folder / "installed"
    shutil.copytree(Path(antiphon.__file__).parent, installed / "antiphon", ignore=shutil.ignore_patterns("static"))
    (installed / "antiphon" / "prompts" / "call.md").unlink()
    shown = terminal.run_process("serve", "--port", "0", PYTHONPATH=str(installed), ANTIPHON_MODEL__VOICE="none")
    assert (shown.code, shown.out) == (1, "")
    assert re.fullmatch(r"antiphon: the prompt file .*call\.md cannot be read: .*\n", shown.err)


def test_a_missing_instructions_file_stops_the_server_at_its_start(terminal: Terminal) -> None:
    shown = terminal.run("serve", "--port", "0", ANTIPHON_ASSISTANT__INSTRUCTIONS_FILE="gone.md")
    assert (shown.code, shown.out) == (1, "")
    assert re.fullmatch(r"antiphon: ANTIPHON_ASSISTANT__INSTRUCTIONS_FILE names .*gone\.md, which .*\n", shown.err)


def test_build_names_every_mistake_and_writes_nothing(terminal: Terminal) -> None:
    write_tool(terminal.folder / "tools", "greet", category="wizardry", version="one")
    shown = terminal.run("tools", "build")
    assert shown.code == 1
    assert "category" in shown.err
    assert "version" in shown.err
    assert "nothing was written" in shown.err
    assert not (terminal.folder / "tool_registry.json").exists()


def test_build_names_an_unknown_tool_that_a_document_mentions(terminal: Terminal) -> None:
    home = write_tool(terminal.folder / "tools", "greet")
    (home / "doc.md").write_text((home / "doc.md").read_text() + "- Greeting twice: ask find_person first.\n")
    shown = terminal.run("tools", "build")
    assert shown.code == 1
    assert "greet/doc.md: line 25: names find_person, which is not a tool" in shown.err


def test_build_warns_only_about_the_projects_own_tools(terminal: Terminal) -> None:
    write_tool(terminal.folder / "tools", "greet", category="action", sideEffects="writes")
    shown = terminal.run("tools", "build", ANTIPHON_TOOLS__DISABLE="nonesuch")
    assert shown.code == 0
    assert "greet" in shown.err
    assert "nonesuch" in shown.err
    assert "open_url" not in shown.err


def test_a_tool_of_the_project_is_listed_after_a_build(terminal: Terminal) -> None:
    write_tool(terminal.folder / "tools", "greet")
    assert terminal.run("tools", "build").code == 0
    listed = terminal.run("tools", "list", "--json").json
    assert "greet" in [tool["toolId"] for tool in listed["tools"]]
    assert "# greet" in terminal.run("tools", "show", "greet", "--json").json["documentation"]


def test_tools_are_listed_by_category(terminal: Terminal) -> None:
    listed = terminal.run("tools", "list", "--category", "action", "--json").json["tools"]
    assert {tool["category"] for tool in listed} == {"action"}
    refused = terminal.run("tools", "list", "--category", "music")
    assert refused.code == 2
    assert "'retrieval', 'action', 'utility'" in refused.err


def test_with_building_off_a_stale_artifact_stops_the_start(terminal: Terminal) -> None:
    directory = write_tool(terminal.folder / "tools", "greet")
    terminal.run("tools", "build")
    (directory / "doc.md").write_text((directory / "doc.md").read_text() + "\nMore.\n")
    shown = terminal.run("tools", "run", "greet", "--args", '{"name": "Ada"}', ANTIPHON_TOOLS__BUILD="false")
    assert shown.code == 1
    assert "antiphon tools build" in shown.err


def test_a_breaking_change_is_named_and_fails(terminal: Terminal) -> None:
    tools = terminal.folder / "tools"
    write_tool(tools, "greet")
    terminal.run("tools", "build")
    (terminal.folder / "old.json").write_bytes((terminal.folder / "tool_registry.json").read_bytes())
    write_tool(tools, "greet", allowedModes=["text"])
    terminal.run("tools", "build")
    shown = terminal.run("tools", "diff", "old.json", "tool_registry.json")
    assert shown.code == 1
    assert "greet" in shown.out
    same = terminal.run("tools", "diff", "old.json", "old.json")
    assert same.code == 0


def test_calls_are_written_to_the_audit_of_the_data_folder(terminal: Terminal) -> None:
    terminal.run("tools", "run", "tell_joke")
    terminal.run("tools", "run", "calculate", "--args", "{}")
    lines = [json.loads(line) for line in terminal.run("tools", "audit", "--json").out.splitlines()]
    assert [(line["tool"], line.get("outcome", "ok")) for line in lines] == [
        ("tell_joke", "ok"),
        ("calculate", "VALIDATION"),
    ]
    assert terminal.run("tools", "audit", "--since", "in 5 minutes").out == ""
    assert "tell_joke" in terminal.run("tools", "audit", "--since", "10 minutes ago").out


def test_nothing_is_written_to_a_folder_that_is_not_a_project(terminal: Terminal) -> None:
    terminal.run("tools", "run", "tell_joke")
    assert [path.name for path in terminal.folder.iterdir()] == ["data"]


def test_the_tests_of_a_built_in_tool_can_be_run(terminal: Terminal) -> None:
    shown = terminal.run_process("tools", "test", "tell_joke")
    assert shown.code == 0
    assert "passed" in shown.out


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("what time is it in Tokyo", "Tokyo"),
        ("fifteen percent of 80", "12"),
        ("how many days until Christmas", "days"),
        ("tell me a joke", "tell_joke"),
        ("write me a poem", "don't"),
    ],
)
def test_the_offline_assistant_answers_in_a_chat(terminal: Terminal, said: str, heard: str) -> None:
    shown = terminal.run("chat", typed=f"{said}\nexit\n")
    assert shown.code == 0
    assert heard in shown.out


def test_a_very_large_number_is_refused_without_a_traceback(terminal: Terminal) -> None:
    shown = terminal.run("tools", "run", "calculate", "--args", '{"expression": ' + "9" * 400 + "}", "--json")
    assert shown.code == 1
    assert shown.json["error"]["type"] == "VALIDATION"


OUTPUTS = {
    "type": "object",
    "required": ["greeting"],
    "properties": {"greeting": {"type": "object", "properties": {"words": {"type": "integer"}}}},
}
TEST_OF_GREET = """\
from pathlib import Path

from antiphon.authoring.testing import load_module, make_context

handler = load_module(Path(__file__).parents[1])


async def test_it_greets() -> None:
    assert (await handler.execute({"name": "Ada"}, make_context())).ok
"""


def write_greeting(terminal: Terminal, data: str) -> None:
    handler = HANDLER.replace("""{"greeting": f"Hello, {args['name']}."}""", data)
    files = {"handler.py": handler, "tests/test_greet.py": TEST_OF_GREET}
    write_tool(terminal.folder / "tools", "greet", files=files, outputs=OUTPUTS)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_result_that_does_not_match_the_outputs_schema_is_reported_with_its_path(
    terminal: Terminal, options: list[str]
) -> None:
    write_greeting(terminal, '{"greeting": {"words": "two"}}')
    shown = terminal.run("tools", "run", "greet", "--args", '{"name": "Ada"}', *options)
    assert shown.code == 1
    assert "/greeting/words" in shown.err
    assert "outputs" in shown.err
    assert "Traceback" not in shown.err
    if options:
        assert shown.json["data"] == {"greeting": {"words": "two"}}


def test_a_result_that_matches_the_outputs_schema_is_a_success(terminal: Terminal) -> None:
    write_greeting(terminal, '{"greeting": {"words": 2}}')
    assert terminal.run("tools", "run", "greet", "--args", '{"name": "Ada"}').code == 0
    assert terminal.run_process("tools", "test", "greet").code == 0


def test_a_test_of_a_tool_fails_when_a_result_does_not_match_the_outputs_schema(terminal: Terminal) -> None:
    write_greeting(terminal, '{"greeting": {"words": "two"}}')
    shown = terminal.run_process("tools", "test", "greet")
    assert shown.code == 1
    assert "/greeting/words" in shown.out
    assert "1 failed" in shown.out


MISSING = {
    "handler.py": f"import antiphon_needs_this.inner\n{HANDLER}",
}
MISSING_IN_A_SIBLING = {
    "handler.py": f"from .helper import help\n{HANDLER}",
    "helper.py": "\nfrom antiphon_needs_this import help\n",
}
FAILING = {"handler.py": f"{HANDLER}\n\nraise OSError('no such device')\n"}


@pytest.mark.parametrize(
    ("files", "place", "reason"),
    [
        (MISSING, "handler.py: line 1", "pip install antiphon_needs_this"),
        (MISSING_IN_A_SIBLING, "helper.py: line 2", "pip install antiphon_needs_this"),
        (FAILING, "handler.py: line 9", "OSError: no such device"),
    ],
)
def test_a_handler_that_cannot_be_imported_is_named_by_the_build_and_by_the_doctor(
    terminal: Terminal, files: dict[str, str], place: str, reason: str
) -> None:
    write_tool(terminal.folder / "tools", "greet", files=files)
    write_tool(terminal.folder / "tools", "wave")
    built = terminal.run("tools", "build")
    assert built.code == 1
    assert f"greet/{place}: " in built.err
    assert reason in built.err
    assert "1 mistake; nothing was written." in built.err
    assert not (terminal.folder / "tool_registry.json").exists()
    found = terminal.run("doctor", ANTIPHON_SERVER__PORT="0")
    assert found.code == 1
    assert f"tools: a mistake: greet/{place}: " in found.out
    assert reason in found.out


def test_a_tool_that_cannot_be_imported_stops_the_server_with_one_line(terminal: Terminal) -> None:
    write_tool(terminal.folder / "tools", "greet", files=MISSING)
    shown = terminal.run("serve", "--port", "0")
    assert shown.code == 1
    assert len(shown.err.strip().splitlines()) == 1
    assert "pip install antiphon_needs_this" in shown.err

"""What tool authors see on the command line and from a server: capabilities, secrets, outputs, confirmation, lists."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.terminal import Shown, Terminal
from tests.fakes.toolbox import document, write_tool

pytestmark = pytest.mark.real_time

KEY = "acme-key-0123456789"
PATIENCE_S = 60.0
NO_PARAMETERS = {"type": "object", "additionalProperties": False, "properties": {}}

CRM = """\
from contextlib import asynccontextmanager
from pathlib import Path


class Crm:
    def __init__(self, user):
        self.user = user

    async def customers(self):
        return [f"a customer of {self.user}"]


@asynccontextmanager
async def opened():
    Path("crm_log").write_text("opened")
    yield lambda session, tool: Crm(session.user)
    Path("crm_log").write_text("opened closed")
"""

CUSTOMERS = """\
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    found = await context.use("crm").customers()
    asked = 1 + await context.storage.get("asked", 0)
    await context.storage.set("asked", asked)
    return ok({"customers": found, "asked": asked}, spoken=f"You have {found[0]}.")
"""

ACME = """\
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    key = context.secrets.get("ACME_API_KEY")
    if args.get("fail"):
        raise RuntimeError(f"cannot open https://acme.example/?key={key}")
    return ok({"key": key})
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def write_customers(terminal: Terminal, uses: Sequence[str] = ("crm", "storage")) -> None:
    files = {
        "handler.py": CUSTOMERS,
        "doc.md": document("customers", "{}"),
        "sentences.yaml": 'data:\n  - sentences: ["who are my customers"]\n',
    }
    write_tool(terminal.folder / "tools", "customers", uses=[*uses], parameters=NO_PARAMETERS, files=files)


def write_crm(terminal: Terminal, reference: str = "crm:opened") -> None:
    """Writes a package, whose name no other test in this process has, and the setting for it."""
    package = terminal.folder / f"company_{terminal.folder.name}"
    package.mkdir(exist_ok=True)
    (package / "crm.py").write_text(CRM)
    setting = f'capabilities = {{ crm = "{package.name}.{reference}" }}'
    (terminal.folder / "antiphon.toml").write_text(f"[tools]\n{setting}\n")


def error_line(shown: Shown) -> str:
    assert shown.code == 1
    assert "Traceback" not in shown.err
    return " ".join(shown.err.split())


# Capabilities of the project


def test_a_tool_uses_a_capability_of_the_projects_own_package(terminal: Terminal) -> None:
    write_crm(terminal)
    write_customers(terminal)
    assert terminal.run("tools", "build").code == 0
    for asked in (1, 2):
        shown = terminal.run("tools", "run", "customers", "--json")
        assert shown.code == 0, shown.err
        assert shown.json["data"] == {"customers": ["a customer of local"], "asked": asked}
    assert (terminal.folder / "crm_log").read_text() == "opened closed"


def test_a_server_offers_the_capability_and_closes_it_at_the_end(terminal: Terminal) -> None:
    write_crm(terminal)
    write_customers(terminal)
    with terminal.serve("--port", "0") as announced:
        (url,) = [line.split()[3] for line in announced if "Antiphon listens on" in line]
        shown = terminal.run("chat", "--url", url, typed="who are my customers\nexit\n")
        assert "You have a customer of local." in shown.out
        assert (terminal.folder / "crm_log").read_text() == "opened"
    assert (terminal.folder / "crm_log").read_text() == "opened closed"


def test_a_capability_that_nobody_offers_stops_the_build_the_doctor_and_the_server(terminal: Terminal) -> None:
    write_customers(terminal, uses=["storagge"])
    told = 'nothing offers "storagge". Did you mean "storage"?'
    assert told in error_line(terminal.run("tools", "build"))
    assert told in terminal.run("doctor").out
    assert "customers uses storagge, which this server does not offer" in error_line(terminal.run("serve"))


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("crm:ofered", "has no ofered. Did you mean opened?"),
        ("sales:opened", "but there is no module company_"),
    ],
)
def test_a_capability_that_cannot_be_imported_is_told_by_every_command(
    terminal: Terminal, reference: str, told: str
) -> None:
    write_crm(terminal, reference)
    write_customers(terminal)
    for words in (["tools", "build"], ["tools", "run", "customers"], ["serve"]):
        assert told in error_line(terminal.run(*words))
    assert told in terminal.run("doctor").out


def test_a_capability_cannot_have_the_name_of_a_built_in_one(terminal: Terminal) -> None:
    (terminal.folder / "antiphon.toml").write_text('[tools]\ncapabilities = { kb = "mycompany.crm:opened" }\n')
    assert "but Antiphon offers kb itself. Choose another name." in error_line(terminal.run("tools", "build"))


# Secrets


def write_acme(terminal: Terminal) -> None:
    parameters = NO_PARAMETERS | {"properties": {"fail": {"type": "boolean", "description": "Whether to fail."}}}
    files = {"handler.py": ACME, "doc.md": document("acme", "{}")}
    root = terminal.folder / "tools"
    write_tool(root, "acme", uses=["secrets"], secrets=["ACME_API_KEY"], parameters=parameters, files=files)


def test_a_secret_that_is_not_set_is_told_by_the_build_the_doctor_and_the_tool(terminal: Terminal) -> None:
    write_acme(terminal)
    told = "ACME_API_KEY is not set in the environment"
    built = terminal.run("tools", "build")
    assert built.code == 0
    assert told in " ".join(built.err.split())
    assert told in terminal.run("doctor").out
    ran = terminal.run("tools", "run", "acme")
    assert ran.code == 1
    assert "That isn't set up on this server yet." in ran.err
    assert "must set the environment variable ACME_API_KEY" in ran.err


def test_a_secret_is_in_no_output(terminal: Terminal) -> None:
    write_acme(terminal)
    assert "ACME_API_KEY" not in terminal.run("tools", "build", ACME_API_KEY=KEY).err
    for args in ("{}", '{"fail": true}'):
        shown = terminal.run("tools", "run", "acme", "--args", args, "--json", ACME_API_KEY=KEY)
        assert KEY not in shown.out + shown.err
        assert "***" in shown.out + shown.err


# Confirmation


@pytest.fixture
def shopping(terminal: Terminal) -> Terminal:
    added = terminal.run("tools", "run", "list_add", "--args", '{"item": "milk and eggs", "list": "shopping"}')
    assert added.code == 0, added.err
    return terminal


CLEAR = ("tools", "run", "list_remove", "--args", '{"all": true, "list": "shopping"}')


def list_of(terminal: Terminal) -> list[str]:
    shown = terminal.run("tools", "run", "list_show", "--json")
    return [item for each in shown.json["data"]["lists"] for item in each.get("items", ())]


def test_without_a_terminal_a_call_that_asks_first_says_how_to_approve_it(shopping: Terminal) -> None:
    shown = shopping.run(*CLEAR)
    assert shown.code == 1
    assert "Shall I delete everything on your shopping list?" in shown.err
    assert "Nothing was done. Add --yes to approve the call, or run it at a terminal to be asked." in shown.err
    assert list_of(shopping) == ["milk", "eggs"]


def test_yes_approves_the_call(shopping: Terminal) -> None:
    shown = shopping.run(*CLEAR, "--yes", "--json")
    assert shown.code == 0
    assert shown.json["data"]["removed"] == ["milk", "eggs"]
    assert list_of(shopping) == []


def test_yes_does_nothing_for_a_call_that_does_not_ask(terminal: Terminal) -> None:
    assert terminal.run("tools", "run", "flip_coin", "--yes").code == 0


# Results, titles and lists


def test_a_result_that_does_not_fit_its_outputs_fails_the_run(terminal: Terminal) -> None:
    outputs = {"type": "object", "properties": {"greeting": {"type": "integer"}}}
    write_tool(terminal.folder / "tools", "greet", outputs=outputs)
    shown = terminal.run("tools", "run", "greet", "--args", '{"name": "Ada"}')
    assert shown.code == 1
    assert "the result does not fit the outputs in schema.json: /greeting" in shown.err


def test_the_list_of_tools_shows_titles_modes_and_confirmation_on_one_line_each(terminal: Terminal) -> None:
    write_tool(terminal.folder / "tools", "greet", title="Say hello")
    shown = terminal.run("tools", "list", COLUMNS="80")
    lines = {line.split()[0]: line for line in shown.out.splitlines() if line.strip()}
    assert lines["greet"].split() == ["greet", "Say", "hello", "utility", "both"]
    assert lines["list_remove"].split()[-3:] == ["both", "by", "rule"]
    assert "Switch to voice" in lines["start_voice_session"]
    assert all(len(line.rstrip()) <= 80 for name, line in lines.items() if name != "asks:")


def test_the_title_is_shown_and_is_never_missing_in_json(terminal: Terminal) -> None:
    write_tool(terminal.folder / "tools", "greet")
    assert terminal.run("tools", "show", "greet").out.startswith("Greet (greet 1.0.0)")
    tools = {tool["toolId"]: tool for tool in terminal.run("tools", "list", "--json").json["tools"]}
    assert tools["greet"]["title"] == "Greet"
    assert tools["list_add"]["title"] == "Add to a list"


def test_units_are_converted_in_a_new_process(terminal: Terminal) -> None:
    args = '{"value": 5, "from_unit": "miles", "to_unit": "km"}'
    shown = terminal.run_process("tools", "run", "convert_units", "--args", args, "--mode", "voice")
    assert shown.code == 0, shown.err
    assert "5 miles is about 8.047 kilometers." in shown.out


def test_serve_reload_builds_and_loads_a_tool_that_is_added(terminal: Terminal) -> None:
    with terminal.serve("--port", "0", "--reload") as announced:
        assert any("tools that change in" in line and "are built and loaded again" in line for line in announced)
        write_tool(terminal.folder / "tools", "greet")
        log, deadline = terminal.folder / "log", time.monotonic() + PATIENCE_S
        while "tools_reloaded" not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)


# Data


def test_lists_and_what_tools_store_are_exported_and_deleted(shopping: Terminal) -> None:
    write_crm(shopping)
    write_customers(shopping)
    shopping.run("tools", "run", "customers")
    exported = shopping.run("data", "export")
    lines = [json.loads(line) for line in exported.out.splitlines()]
    items = [(line["list"], line["text"]) for line in lines if line["kind"] == "list_item"]
    values = [(line["tool"], line["key"], line["value"]) for line in lines if line["kind"] == "tool_value"]
    assert items == [("shopping", "milk"), ("shopping", "eggs")]
    assert values == [("customers", "asked", 1)]
    assert "2 list items and 1 tool value" in exported.err
    deleted = shopping.run("data", "delete", "--user", "local", "--yes")
    assert "2 list items and 1 tool value" in deleted.out
    assert shopping.run("data", "export").out == ""

"""Every built-in tool, through the gate: with the examples of its own documentation, in each mode, and with wrong
arguments. The tools are those of the toolkit's folder, so a new one is tested without a change here.

There is no network and nothing is configured: stores are in memory, and a tool that needs a service must fail in the
way that its documentation says. It is noon on the first of January 2026.
"""

import json
import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Final

import pytest

from antiphon.authoring.lint.documents import ARGS_FENCE
from antiphon.authoring.lint.sentences import cross_check
from antiphon.authoring.testing import Outbox, StillClock
from antiphon.compose.app import TOOLKIT, build_tools, load_tools
from antiphon.compose.services import open_services
from antiphon.config import Settings, Storage
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.call import ToolCall
from antiphon.tools.errors import ErrorType
from antiphon.tools.executor import Executor
from antiphon.tools.outputs import find_mismatches
from antiphon.tools.registry import Registry
from antiphon.tools.result import ToolResult
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool

pytestmark = pytest.mark.real_time

TOOLS: Final = sorted(path.parent.name for path in TOOLKIT.glob("*/schema.json"))

CANNOT_SUCCEED_HERE: Final[Mapping[str, str]] = {
    "image_generate": "no image service is configured",
    "get_weather": "there is no network",
    "get_forecast": "there is no network",
    "web_search": "there is no network",
    "quick_answer": "there is no network",
    "ha_state": "no Home Assistant is configured",
    "ha_control": "no Home Assistant is configured",
    "kb_get": "the knowledge base is empty",
    "linkedin_lookup": "the knowledge base is empty",
    "cancel_reminder": "there are no reminders",
    "snooze_reminder": "there are no reminders",
    "list_remove": "the lists are empty",
    "calendar_delete_event": "the calendar is empty",
}
"""Tools whose examples need what is not here, and why. Any other tool succeeds with one of its examples."""

WITHOUT_SENTENCES: Final[Mapping[str, str]] = {
    "extract_contacts": "it is given a text that nobody says aloud",
    "rank_results": "it is given the results of another tool",
    "show_code": "the code is written by a model",
    "ignore_user": "nobody asks to be blocked",
}
"""Tools that only a model can ask for, and why."""

SECTIONS: Final = (
    *("Summary", "Preconditions", "Postconditions", "Invariants", "Failure Modes", "Examples", "Common Mistakes"),
)
NOWHERE: Final = "http://127.0.0.1:9"
"""An address at which nothing listens, as the proxy of whatever ignores the look-up of names."""

_users = count()


def examples_of(documentation: str) -> list[dict[str, Any]]:
    """The arguments in the `args` fences of a documentation."""
    fences = re.findall(rf"^```{ARGS_FENCE}\n(.*?)^```", documentation, re.DOTALL | re.MULTILINE)
    return [json.loads(fence) for fence in fences]


def documented_failures(tool: Tool) -> set[str]:
    section = tool.documentation.partition("## Failure Modes")[2].partition("\n## ")[0]
    return {type for type in ErrorType if re.search(rf"\b{type}\b", section)}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("toolkit")
    return Settings(project_dir=folder, data_dir=folder, storage=Storage(url="memory"))


@pytest.fixture(scope="module")
def registry(settings: Settings) -> Registry:
    loaded = load_tools(settings)
    # As a server does when it has started.
    loaded.snapshot().warm()
    return loaded


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets no name be looked up but that of this machine."""
    look_up = socket.getaddrinfo

    def refuse(host: Any, *rest: Any, **options: Any) -> Any:
        if host in (None, "localhost", "127.0.0.1", "::1"):
            return look_up(host, *rest, **options)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "DDGS_PROXY"):
        monkeypatch.setenv(name, NOWHERE)


@asynccontextmanager
async def gate(settings: Settings, registry: Registry) -> AsyncIterator[Executor]:
    database = MemoryDatabase()
    async with open_services(settings, database) as services:
        executor = Executor(
            registry,
            calls=database.calls,
            confirmations=database.confirmations,
            audit=database.audit,
            limits=database.limits,
            clock=StillClock(),
            offers=services.offers,
        )
        yield executor
        await executor.aclose()


async def run(executor: Executor, name: str, args: Any, mode: Mode) -> ToolResult:
    """Makes one call in a new session of a new user. What must be confirmed is confirmed."""
    number = next(_users)
    session = ToolSession(
        id=f"session-{number}",
        user=f"user-{number}",
        snapshot=executor.registry.snapshot(),
        mode=mode,
        authenticated=True,
        messaging=Outbox(),
    )
    session.state.voice_active = mode is Mode.VOICE
    executor.begin_turn(session)
    result = await executor.execute(ToolCall(None, name, args), session)
    request = None if result.error is None else result.error.confirmation_request
    if request is not None:
        result = await executor.resolve(request.confirmation_token, True, session)
    return result


def test_the_toolkit_builds_without_a_mistake(settings: Settings, registry: Registry) -> None:
    assert [str(problem) for problem in build_tools(settings).errors] == []
    assert sorted(registry.snapshot().tools) == TOOLS


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", TOOLS)
async def test_a_tool_does_what_its_documentation_says_in_its_modes_and_is_refused_in_others(
    settings: Settings, registry: Registry, name: str, mode: Mode
) -> None:
    tool = registry.snapshot().tools[name]
    examples = examples_of(tool.documentation)
    assert examples, "the documentation has no example that can be tried"
    async with gate(settings, registry) as executor:
        results = [await run(executor, name, args, mode) for args in examples]
    failures = [result.error.type for result in results if result.error is not None]
    if mode not in tool.spec.allowed_modes:
        assert failures == [ErrorType.MODE_RESTRICTED] * len(examples)
        return
    assert set(failures) <= documented_failures(tool)
    assert name in CANNOT_SUCCEED_HERE or len(failures) < len(results)
    for result in results:
        assert find_mismatches(tool.spec.outputs, result) == []
        assert result.error is None or result.error.message.strip()


@pytest.mark.parametrize("name", TOOLS)
async def test_wrong_arguments_are_refused_before_anything_runs(
    settings: Settings, registry: Registry, name: str
) -> None:
    tool = registry.snapshot().tools[name]
    example = examples_of(tool.documentation)[0]
    mode = tool.spec.allowed_modes[0]
    parameters = tool.spec.parameters
    wrong: list[Any] = [{**example, "no_such_argument": 1}, [example], None]
    wrong += [{key: value for key, value in example.items() if key != name} for name in parameters.get("required", ())]
    wrong += [{**example, key: _of_another_type(schema)} for key, schema in parameters.get("properties", {}).items()]
    async with gate(settings, registry) as executor:
        results = [await run(executor, name, args, mode) for args in wrong]
    types = [None if result.error is None else result.error.type for result in results]
    assert dict(zip(map(str, wrong), types, strict=True)) == dict.fromkeys(map(str, wrong), ErrorType.VALIDATION)


def _of_another_type(schema: Mapping[str, Any]) -> Any:
    """A value that no parameter with this schema takes: an object has no such key, and nothing else is one."""
    return {"no_such_key": None} if schema.get("type") != "object" else "not an object"


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_has_what_people_and_models_need_to_know(registry: Registry, name: str) -> None:
    tool = registry.snapshot().tools[name]
    assert tool.spec.title
    assert tool.spec.outputs is not None
    assert [section for section in SECTIONS if f"\n## {section}\n" not in tool.documentation] == []
    assert (tool.sentences is None) == (name in WITHOUT_SENTENCES)


def test_no_tool_claims_the_sentences_of_another(registry: Registry) -> None:
    """A build does not compare the built-in tools with each other, since this has."""
    spoken = {name: tool.sentences for name, tool in registry.snapshot().tools.items() if tool.sentences is not None}
    assert cross_check(spoken) == []

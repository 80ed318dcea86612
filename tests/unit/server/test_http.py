"""The other routes: history, tools, health, and the document of them all."""

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from prometheus_client.parser import text_string_to_metric_families

from antiphon import __version__
from antiphon.server.deps import Model
from antiphon.server.health import LagCollector, LagStats
from antiphon.server.http import OPERATIONS
from antiphon.server.openapi import document
from antiphon.server.operation import Operation
from antiphon.server.refusals import RefusalCode
from antiphon.speech.base import Voice
from antiphon.storage.base import StoreUnavailable
from antiphon.storage.conversations import Conversation, VoiceCall
from antiphon.storage.sql import open_database
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from tests.fakes.calls import Client
from tests.fakes.gates import make_tool
from tests.fakes.web import WebApp, WebApps

ROOT = Path(__file__).parents[3]


def make_call(id: str = "c1", **fields: Any) -> VoiceCall:
    call = {
        "id": id,
        "conversation_id": "none",
        "user": "ann",
        "started_ms": 1_000,
        "ended_ms": 61_000,
        "summary": "About the garden.",
        "models": ("cascade",),
        "first_seq": 1,
        "last_seq": 0,
    }
    return VoiceCall(**(call | fields))  # type: ignore[arg-type]


def is_as_documented(name: str, value: object) -> bool:
    whole = {"$ref": f"#/components/schemas/{name}", "components": document()["components"]}
    return jsonschema_rs.validator_for(whole).is_valid(value)


# Conversations.


async def test_conversations_are_listed_with_the_newest_first(apps: WebApps) -> None:
    web = apps.open(text=[])
    for message in ("one", "two", "three"):
        await web.chat(message)
        # Conversations of the same millisecond have no order.
        await asyncio.sleep(0.01)
    listed = (await web.get("/api/conversations")).json()
    assert [entry["title"] for entry in listed["conversations"]] == ["three", "two", "one"]
    assert listed["next"] is None


async def test_a_list_continues_where_its_page_ended(apps: WebApps) -> None:
    web = apps.open(text=[])
    for message in ("one", "two", "three"):
        await web.chat(message)
        await asyncio.sleep(0.01)  # so that each has a different time
    first = (await web.get("/api/conversations?limit=2")).json()
    second = (await web.get(f"/api/conversations?limit=2&before={first['next']}")).json()
    assert [entry["title"] for entry in first["conversations"]] == ["three", "two"]
    assert [entry["title"] for entry in second["conversations"]] == ["one"]
    assert second["next"] is None


async def test_pages_lose_no_conversation_of_the_same_millisecond(apps: WebApps) -> None:
    web = apps.open(text=[])
    for number in range(7):
        await web.server.database.conversations.create(Conversation(f"c{number}", "ann", "Tea", 1_000, 1_000))
    seen: list[str] = []
    next_page: str | None = ""
    while next_page is not None:
        listed = (await web.get(f"/api/conversations?limit=2{next_page and f'&before={next_page}'}")).json()
        seen += [entry["id"] for entry in listed["conversations"]]
        next_page = listed["next"]
    assert seen == [f"c{number}" for number in range(7)]


@pytest.mark.parametrize(
    "before", ["", "-1", "1000", "1000.", ".c1", "c1.1000", "1e3.c1", "²3.c1", "9999999999999999.c1"]
)
async def test_a_page_after_an_unknown_cursor_is_refused(apps: WebApps, before: str) -> None:
    refused = await apps.open(text=[]).get(f"/api/conversations?before={before}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_request")
    assert "`before` is not the `next` of a page" in refused.json()["error"]["message"]


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=many", "limits=3"])
async def test_a_wrong_parameter_is_an_error(apps: WebApps, query: str) -> None:
    refused = await apps.open(text=[]).get(f"/api/conversations?{query}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_request")


async def test_each_user_sees_only_their_own_conversations(apps: WebApps) -> None:
    web = apps.open(text=[])
    await web.chat("mine")
    assert (await web.get("/api/conversations", user="bob")).json()["conversations"] == []


async def test_a_conversation_is_shown_with_its_calls(apps: WebApps) -> None:
    web = apps.open(make_tool("read_it"), text=[[ToolCall(None, "read_it", {})], "It is one."])
    id = (await web.chat("read it")).json()["conversationId"]
    shown = (await web.get(f"/api/conversations/{id}")).json()
    assert [turn["message"]["role"] for turn in shown["turns"]] == ["user", "assistant", "tool", "assistant"]
    assert shown["turns"][2]["message"]["content"] == {"run": 1}
    assert [turn["seq"] for turn in shown["turns"]] == [1, 2, 3, 4]


async def test_a_conversation_can_be_exported_as_markdown(apps: WebApps) -> None:
    web = apps.open(make_tool("read_it"), text=[[ToolCall(None, "read_it", {})], "It is one."])
    id = (await web.chat("read it")).json()["conversationId"]
    taken = await web.get(f"/api/conversations/{id}?format=markdown")
    assert taken.headers["content-type"].startswith("text/markdown")
    assert taken.headers["content-disposition"].startswith("attachment")
    assert taken.text.startswith("# read it\n\n")
    assert taken.text.endswith('**You:** read it\n\n> `read_it` returned `{"run":1}`\n\n**Assistant:** It is one. \n')


@pytest.mark.parametrize("path", ["/api/conversations/nothing", "/api/calls/nothing"])
async def test_a_missing_conversation_is_not_found(apps: WebApps, path: str) -> None:
    web = apps.open(text=[])
    assert (await web.get(path)).json()["error"]["code"] == "not_found"
    assert (await web.delete(path)).status_code == 404


async def test_another_users_conversation_can_neither_be_read_nor_deleted(apps: WebApps) -> None:
    web = apps.open(text=[])
    id = (await web.chat("mine")).json()["conversationId"]
    assert (await web.get(f"/api/conversations/{id}", user="bob")).status_code == 404
    assert (await web.delete(f"/api/conversations/{id}", user="bob")).status_code == 404
    assert (await web.get(f"/api/conversations/{id}")).status_code == 200


async def test_a_deleted_conversation_is_not_found(apps: WebApps) -> None:
    web = apps.open(text=[])
    id = (await web.chat("mine")).json()["conversationId"]
    assert (await web.delete(f"/api/conversations/{id}")).status_code == 204
    assert (await web.get(f"/api/conversations/{id}")).status_code == 404
    assert (await web.chat("again", conversation_id=id)).status_code == 404


async def test_all_conversations_are_deleted_only_on_explicit_request(apps: WebApps) -> None:
    web = apps.open(text=[])
    await web.chat("one")
    await web.chat("two")
    await web.chat("three", user="bob")
    assert (await web.delete("/api/conversations")).status_code == 400
    assert (await web.delete("/api/conversations?all=true")).json() == {"deleted": 2}
    assert (await web.get("/api/conversations")).json()["conversations"] == []
    assert len((await web.get("/api/conversations", user="bob")).json()["conversations"]) == 1


@pytest.mark.real_time
async def test_history_works_the_same_over_sqlite(apps: WebApps, tmp_path: Path) -> None:
    script: list[Any] = [[ToolCall(None, "read_it", {})], "One.", "Two."]
    async with aclosing(await open_database(tmp_path / "antiphon.db")) as database:
        web = apps.open(make_tool("read_it"), text=script, database=database)
        id = (await web.chat("read it")).json()["conversationId"]
        assert (await web.chat("again", conversation_id=id)).json()["message"] == "Two."
        assert len((await web.get(f"/api/conversations/{id}")).json()["turns"]) == 6
        assert (await web.delete(f"/api/conversations/{id}")).status_code == 204
        assert (await web.chat("again", conversation_id=id)).status_code == 404
        await apps.aclose()


# Calls.


async def test_calls_are_listed_with_what_was_said(apps: WebApps) -> None:
    web = apps.open(text=["Before.", "During.", "After."])
    id = (await web.chat("before")).json()["conversationId"]
    await web.chat("during", conversation_id=id)
    await web.chat("after", conversation_id=id)
    await web.server.database.voice_calls.begin(
        make_call(conversation_id=id, first_seq=3, last_seq=4, energy_path=(3, 1)), None
    )
    [call] = (await web.get("/api/calls")).json()["calls"]
    assert [turn["content"].strip() for turn in call["transcript"]] == ["during", "During."]
    assert (call["started_ms"], call["duration_ms"], call["models"]) == (1_000, 60_000, ["cascade"])
    assert call["energy_path"] == [3, 1]
    assert (await web.get("/api/calls/c1")).json() == call


async def test_a_call_in_which_nothing_was_said_has_an_empty_transcript(apps: WebApps) -> None:
    web = apps.open(text=[])
    id = (await web.chat("after")).json()["conversationId"]
    await web.server.database.voice_calls.begin(make_call(conversation_id=id, first_seq=1, last_seq=0), None)
    assert (await web.get("/api/calls/c1")).json()["transcript"] == []


async def test_an_ongoing_call_has_no_duration(apps: WebApps) -> None:
    web = apps.open(text=[])
    await web.server.database.voice_calls.begin(make_call(ended_ms=None, last_seq=None), None)
    assert (await web.get("/api/calls/c1")).json()["duration_ms"] is None


async def test_another_users_call_can_neither_be_read_nor_deleted(apps: WebApps) -> None:
    web = apps.open(text=[])
    await web.server.database.voice_calls.begin(make_call(), None)
    assert (await web.get("/api/calls/c1", user="bob")).status_code == 404
    assert (await web.delete("/api/calls/c1", user="bob")).status_code == 404
    assert (await web.delete("/api/calls/c1")).status_code == 204


async def test_clearing_the_call_history_leaves_conversations_alone(apps: WebApps) -> None:
    web = apps.open(text=[])
    await web.chat("hi")
    await web.server.database.voice_calls.begin(make_call("c1"), None)
    await web.server.database.voice_calls.begin(make_call("c2"), None)
    assert (await web.delete("/api/calls")).json() == {"deleted": 2}
    assert len((await web.get("/api/conversations")).json()["conversations"]) == 1


# Tools, models and voices.


async def test_tools_are_listed_with_their_schemas_and_figures(offline: Callable[[], WebApp]) -> None:
    web = offline()
    before = {tool["toolId"]: tool for tool in (await web.get("/api/tools")).json()["tools"]}
    await web.chat("what is 6 times 7")
    listed = (await web.get("/api/tools")).json()
    after = {tool["toolId"]: tool for tool in listed["tools"]}
    assert listed["version"] == web.deps.registry.version
    assert after["start_voice_session"]["allowedModes"] == ["text"]
    assert after["start_voice_session"]["parameters"]["properties"]["pending_request"]["maxLength"] == 200
    assert after["calculate"]["metrics"]["calls"] == before["calculate"]["metrics"]["calls"] + 1


async def test_the_tools_of_one_category_are_listed(offline: Callable[[], WebApp]) -> None:
    web = offline()
    listed = (await web.get("/api/tools?category=action")).json()["tools"]
    assert {tool["category"] for tool in listed} == {"action"}
    every = (await web.get("/api/tools")).json()["tools"]
    assert [tool for tool in every if tool["category"] == "action"] == listed


async def test_an_unknown_category_is_refused_with_the_known_ones(offline: Callable[[], WebApp]) -> None:
    refused = await offline().get("/api/tools?category=music")
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == (
        "Wrong parameter: `category` must be one of `retrieval`, `action`, `utility`, not 'music'."
    )


async def test_models_are_listed(apps: WebApps) -> None:
    model = Model("builtin", Mode.TEXT, needs_network=False, current=True, levels=(2, 1))
    web = apps.open(text=[], deps={"models": lambda: [model]})
    assert (await web.get("/api/models")).json()["models"] == [
        {"name": "builtin", "mode": "text", "needs_network": False, "current": True, "levels": [2, 1]}
    ]


async def test_voices_are_listed_with_the_default_first(apps: WebApps) -> None:
    voices = [Voice("joe", "Joe", "en-US"), Voice("amy", "Amy", "en-GB")]
    web = apps.open(text=[], deps={"voices": lambda: voices})
    assert (await web.get("/api/voices")).json()["voices"] == [
        {"id": "joe", "name": "Joe", "language": "en-US", "current": True},
        {"id": "amy", "name": "Amy", "language": "en-GB", "current": False},
    ]


async def test_without_a_synthesizer_there_are_no_voices(apps: WebApps) -> None:
    assert (await apps.open(text=[]).get("/api/voices")).json() == {"voices": []}


async def test_health_is_public_and_identifies_the_server(apps: WebApps) -> None:
    health = (await apps.open(text=[]).get("/health", user="stranger")).json()
    assert health == {"status": "ok", "problems": [], "name": "antiphon", "version": __version__}


async def test_ready_says_what_is_missing(apps: WebApps) -> None:
    web = apps.open(text=[])
    assert (await web.get("/ready")).status_code == 200
    web.problems.append("The store cannot be reached.")
    unready = await web.get("/ready", user="stranger")
    assert (unready.status_code, unready.json()["problems"]) == (503, ["The store cannot be reached."])


async def test_metrics_show_calls_sessions_and_lag(apps: WebApps) -> None:
    web = apps.open(
        make_tool("read_it"),
        text=[[ToolCall(None, "read_it", {})], "One."],
        deps={"collectors": [LagCollector(LagStats())]},
    )
    await web.chat("read it")
    await Client(web.server).enter()
    told = await web.get("/metrics")
    families = {family.name: family for family in text_string_to_metric_families(told.text)}
    values = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert values["antiphon_tool_calls_total", "ok", "read_it"] == 1
    assert values["antiphon_sessions", "connected"] == 1
    assert "antiphon_loop_lag_ms" in families


async def test_an_unavailable_store_is_reported(apps: WebApps, monkeypatch: pytest.MonkeyPatch) -> None:
    web = apps.open(text=[])

    async def fail(*args: object) -> None:
        raise StoreUnavailable("The database is locked.")

    monkeypatch.setattr(web.server.database.conversations, "list", fail)
    refused = await web.get("/api/conversations")
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable")


@pytest.mark.parametrize(
    "operation", [each for each in OPERATIONS if not each.public], ids=lambda each: f"{each.method} {each.path}"
)
async def test_a_stranger_gets_nothing(apps: WebApps, operation: Operation) -> None:
    web = apps.open(text=[])
    refused = await web.http.request(operation.method, operation.path, headers={"X-User": "stranger"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthenticated")


# The document.


async def test_the_document_is_served(apps: WebApps) -> None:
    assert (await apps.open(text=[]).get("/api/openapi.json")).json() == json.loads(json.dumps(document()))


def test_every_reference_in_the_document_resolves() -> None:
    known = {f"#/components/schemas/{name}" for name in document()["components"]["schemas"]}
    referred = {part.split('"')[0] for part in json.dumps(document()).split('"$ref": "')[1:]}
    assert referred <= known


def test_every_operation_has_a_unique_name() -> None:
    names = [each["operationId"] for path in document()["paths"].values() for each in path.values()]
    assert len(names) == len(set(names)) == len(OPERATIONS)


def test_the_document_explains_every_refusal() -> None:
    described = document()["components"]["schemas"]["RefusalCode"]["description"]
    assert all(f"{code}:" in described for code in RefusalCode)


async def test_responses_match_the_document(offline: Callable[[], WebApp]) -> None:
    web = offline()
    answer = (await web.chat("start voice mode and tell me a joke")).json()
    await web.server.database.voice_calls.begin(make_call(conversation_id=answer["conversationId"], last_seq=2), None)
    found = {
        "ChatAnswer": answer,
        "Refused": (await web.chat("hi", conversation_id="nothing")).json(),
        "ConversationList": (await web.get("/api/conversations")).json(),
        "ConversationRecord": (await web.get(f"/api/conversations/{answer['conversationId']}")).json(),
        "CallList": (await web.get("/api/calls")).json(),
        "ToolList": (await web.get("/api/tools")).json(),
        "Health": (await web.get("/health")).json(),
    }
    assert [name for name, value in found.items() if not is_as_documented(name, value)] == []

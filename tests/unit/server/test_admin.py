"""`/api/admin`: what an operator sees of all users, and changes."""

from typing import Any

import pytest
from msgspec.structs import replace

from antiphon.protocol import client_messages as c
from antiphon.server.admin.operations import ADMIN_OPERATIONS
from antiphon.server.deps import ChangedTool, ToolChange, ToolChanges
from antiphon.storage.base import AuditLine
from antiphon.storage.conversations import Conversation, Turn
from antiphon.storage.events import SessionEvent
from antiphon.storage.people import TokenRecord
from antiphon.tools.call import ToolCall
from tests.fakes.calls import Client
from tests.fakes.gates import make_tool
from tests.fakes.web import WebApp, WebApps

LOOK = ToolCall("call_1", "look", {"text": "tea"})


@pytest.fixture
def web(apps: WebApps) -> WebApp:
    return apps.open(make_tool("look"), text=[[LOOK], "Here is the tea.", "Again.", "And again."])


async def read(web: WebApp, path: str) -> Any:
    answer = await web.get(f"/api/admin/{path}", "admin")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def audited(web: WebApp) -> list[tuple[str, str, str | None]]:
    """Who did what to which conversation, of the lines that operators have caused."""
    lines = [line for _, line in await web.server.database.audit.read()]
    return [(line.user, str(line.event), line.conversation) for line in lines if line.mode == "admin"]


# Who may enter.


@pytest.mark.parametrize("operation", ADMIN_OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
@pytest.mark.parametrize(("user", "status"), [("stranger", 401), ("local", 401), ("ann", 403)])
async def test_every_operation_is_refused_without_an_admin_token(
    web: WebApp, operation: Any, user: str, status: int
) -> None:
    path = operation.path.replace("{id}", "x")
    answer = await web.http.request(operation.method, path, headers={"X-User": user})
    assert answer.status_code == status
    assert "`antiphon token new --admin`" in answer.json()["error"]["message"]
    assert await audited(web) == []


async def test_the_status_names_the_admin_and_the_process(web: WebApp) -> None:
    await Client(web.server, "ann").enter(mode=c.Mode.TEXT)
    told = await read(web, "status")
    assert (told["user"], told["node"], told["sessions"], told["connected"]) == ("admin", "one", 1, 1)
    assert told["tools_version"] == web.deps.registry.snapshot().version


# Sessions.


async def test_sessions_show_who_is_connected_parked_and_silent(web: WebApp) -> None:
    ann = await Client(web.server, "ann").enter(mode=c.Mode.TEXT)
    await ann.write("hello")
    bob = await Client(web.server, "bob").enter(mode=c.Mode.TEXT)
    await bob.write("hello")
    bob.drop()
    await Client(web.server, "eve").enter(mode=c.Mode.TEXT)
    found = {each["user"]: each for each in (await read(web, "sessions"))["sessions"]}
    assert {user: (each["connected"], each["stored"], each["held"]) for user, each in found.items()} == {
        "ann": (True, True, True),
        "bob": (False, True, True),
        "eve": (True, False, True),
    }
    assert found["ann"]["node"] == "one"
    assert [each["user"] for each in (await read(web, "sessions?user=bob"))["sessions"]] == ["bob"]


async def test_a_session_of_another_process_is_listed_with_its_node(web: WebApp) -> None:
    ann = await Client(web.server, "ann").enter(mode=c.Mode.TEXT)
    await ann.write("hello")
    assert ann.live is not None
    database, now_ms = web.server.database, web.deps.clock.now_ms()
    await database.sessions.take_lease(ann.live.id, "two", now_ms, now_ms + 60_000)
    [found] = (await read(web, "sessions"))["sessions"]
    assert (found["node"], found["held"], found["connected"], found["model"]) == ("two", True, None, None)


async def test_sessions_are_listed_in_pages(web: WebApp) -> None:
    for user in ("ann", "bob", "eve"):
        client = await Client(web.server, user).enter(mode=c.Mode.TEXT)
        await client.write("hello")
    first = await read(web, "sessions?limit=2")
    rest = await read(web, f"sessions?limit=2&before={first['next']}")
    assert {each["user"] for each in (*first["sessions"], *rest["sessions"])} == {"ann", "bob", "eve"}
    assert rest["next"] is None


async def test_the_energy_of_all_sessions_is_shown(web: WebApp) -> None:
    for user in ("ann", "bob"):
        await Client(web.server, user).enter(mode=c.Mode.TEXT)
    told = await read(web, "energy")
    assert {each["user"] for each in told["sessions"]} == {"ann", "bob"}
    assert told["ladders"][0]["rungs"]


# Conversations and timelines.


async def test_conversations_of_everybody_or_of_one_user_are_listed(web: WebApp) -> None:
    await web.chat("tea?", user="ann")
    await web.chat("coffee?", user="bob")
    assert {each["user"] for each in (await read(web, "conversations"))["conversations"]} == {"ann", "bob"}
    [only] = (await read(web, "conversations?user=bob"))["conversations"]
    assert (only["user"], only["title"]) == ("bob", "coffee?")
    first = await read(web, "conversations?limit=1")
    rest = await read(web, f"conversations?limit=1&before={first['next']}")
    assert first["conversations"] != rest["conversations"]
    assert rest["next"] is None


async def test_a_timeline_has_the_words_the_tool_with_its_audit_and_the_latency(web: WebApp) -> None:
    ann = await Client(web.server, "ann").enter(mode=c.Mode.TEXT)
    await ann.write("Where is the tea?")
    assert ann.live is not None
    id = ann.live.runner.conversation_id
    told = await read(web, f"conversations/{id}")
    assert (told["conversation"]["user"], told["earlier"]) == ("ann", None)
    kinds = [(each["kind"], each.get("role") or each.get("tool")) for each in told["entries"]]
    assert kinds == [("said", "user"), ("tool", "look"), ("said", "assistant"), ("latency", None)]
    said, tool, answer, latency = told["entries"]
    assert (said["text"], answer["text"].strip()) == ("Where is the tea?", "Here is the tea.")
    assert (tool["args"], tool["ok"], tool["outcome"], tool["confirmation"]) == ({"text": "tea"}, True, "ok", None)
    assert tool["duration_ms"] >= 0
    assert tool["session"] == ann.live.id
    assert latency["first_token_ms"] >= 0


async def test_reading_a_timeline_is_written_into_the_audit_with_the_admins_name(web: WebApp) -> None:
    id = (await web.chat("tea?", user="ann")).json()["conversationId"]
    before = await read(web, f"conversations/{id}")
    assert await audited(web) == [("admin", "admin_read_conversation", id)]
    assert (await read(web, f"conversations/{id}"))["entries"] == before["entries"]


async def test_an_unknown_conversation_is_refused_and_not_audited(web: WebApp) -> None:
    answer = await web.get("/api/admin/conversations/nothing", "admin")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert await audited(web) == []


async def fill(web: WebApp, turns: int) -> None:
    database = web.server.database
    await database.conversations.create(Conversation("c1", "ann", "Tea", 0, 0))
    for number in range(turns):
        body = b'{"role":"user","text":"%d"}' % number
        await database.conversations.append_many("c1", [Turn("user", str(number), False, number * 10, body)], None)
    line = AuditLine(ts_ms=5, session="s1", user="ann", mode="text", turn=1, tool="look", conversation="c1")
    await database.audit.append([line, replace(line, ts_ms=45, outcome="TRANSIENT")])
    energy = {"mode": "voice", "level": 2, "previous": 3, "max": 3, "reason": "rate_limit", "model": "good"}
    notice = {"kind": "warning", "code": "reconnecting", "text": "The model reconnects."}
    await database.events.append(
        [SessionEvent("c1", "s1", 15, "energy", energy), SessionEvent("c1", "s1", 47, "notice", notice)]
    )


async def test_a_long_timeline_comes_in_pages_each_with_what_happened_in_its_time(web: WebApp) -> None:
    await fill(web, 5)
    newest = await read(web, "conversations/c1?limit=2")
    told = [each.get("text") or each["kind"] for each in newest["entries"]]
    assert told == ["3", "4", "tool", "The model reconnects."]
    middle = await read(web, f"conversations/c1?limit=2&before={newest['earlier']}")
    assert [each.get("text") or each["kind"] for each in middle["entries"]] == ["1", "energy", "2"]
    oldest = await read(web, f"conversations/c1?limit=2&before={middle['earlier']}")
    assert [each.get("text") or each["kind"] for each in oldest["entries"]] == ["0", "tool"]
    assert oldest["earlier"] is None


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("conversations/c1?before=nonsense", "`earlier`"),
        ("conversations/c1?limit=0", "limit"),
        ("conversations/c1?limit=100000", "limit"),
        ("sessions?before=nonsense", "`next`"),
        ("sessions?owner=ann", "owner"),
        ("audit?since=-1", "since"),
        ("audit?since=5&until=5", "before `until`"),
        ("audit?before=x", "before"),
        ("audit?tools=look", "`tool`"),
    ],
)
async def test_wrong_parameters_are_explained(web: WebApp, path: str, problem: str) -> None:
    await fill(web, 1)
    answer = await web.get(f"/api/admin/{path}", "admin")
    assert answer.status_code == 400
    assert problem in answer.json()["error"]["message"]


# The audit.


async def test_the_audit_is_searched_in_pages(web: WebApp) -> None:
    line = AuditLine(ts_ms=1, session="s1", user="ann", mode="text", turn=1, tool="look")
    lines = [replace(line, ts_ms=ms, tool="look" if ms % 2 else "book") for ms in range(6)]
    await web.server.database.audit.append(lines)
    first = await read(web, "audit?tool=look&limit=2")
    assert [each["line"]["ts_ms"] for each in first["lines"]] == [5, 3]
    rest = await read(web, f"audit?tool=look&limit=2&before={first['next']}")
    assert [each["line"]["ts_ms"] for each in rest["lines"]] == [1]
    assert rest["next"] is None
    assert [each["line"]["ts_ms"] for each in (await read(web, "audit?since=2&until=4"))["lines"]] == [3, 2]
    assert (await read(web, "audit?user=bob"))["lines"] == []
    assert len((await read(web, "audit?user="))["lines"]) == 6


# Users, blocks and tokens.


async def test_users_are_listed_the_blocked_ones_first(web: WebApp) -> None:
    await web.chat("tea?", user="ann")
    database, now_ms = web.server.database, web.deps.clock.now_ms()
    await database.tokens.add(TokenRecord("t1", "tom", "phone", "h1", 0, None))
    await database.blocks.block("mallory", now_ms + 60_000, "threats")
    told = await read(web, "users")
    assert [each["user"] for each in told["users"]] == ["mallory", "ann", "tom"]
    mallory, ann, tom = told["users"]
    assert mallory["block"] == {"until_ms": now_ms + 60_000, "reason": "threats"}
    assert (ann["conversations"], ann["block"], tom["tokens"], told["more"]) == (1, None, 1, False)


async def test_a_blocked_user_is_unblocked_once(web: WebApp) -> None:
    database, now_ms = web.server.database, web.deps.clock.now_ms()
    await database.blocks.block("mal/lory", now_ms + 60_000, "threats")
    assert (await web.delete("/api/admin/blocks?user=mal/lory", "admin")).status_code == 204
    assert await database.blocks.blocked_until("mal/lory", now_ms) is None
    assert (await web.delete("/api/admin/blocks?user=mal/lory", "admin")).status_code == 404
    assert (await web.delete("/api/admin/blocks", "admin")).status_code == 400
    assert await audited(web) == [("admin", "admin_unblocked", None)]


async def test_tokens_are_listed_without_their_hashes_and_revoked(web: WebApp) -> None:
    database = web.server.database
    await database.tokens.add(TokenRecord("token of admin", "admin", "desk", "secret1", 0, None, True))
    await database.tokens.add(TokenRecord("t2", "ann", "phone", "secret2", 1, 2))
    answer = await web.get("/api/admin/tokens", "admin")
    assert "secret" not in answer.text
    own, other = answer.json()["tokens"]
    assert (own["is_admin"], own["is_current"], own["is_expired"]) == (True, True, False)
    assert (other["is_admin"], other["is_current"], other["is_expired"]) == (False, False, True)
    assert (await web.delete("/api/admin/tokens/t2", "admin")).status_code == 204
    assert (await web.delete("/api/admin/tokens/t2", "admin")).status_code == 404
    assert [each["id"] for each in (await read(web, "tokens"))["tokens"]] == ["token of admin"]
    assert await audited(web) == [("admin", "admin_revoked", None)]


# Tools and the knowledge base.


async def test_changes_of_the_tools_on_disk_are_shown(web: WebApp) -> None:
    assert await read(web, "tools/changes") == {"running": "1", "on_disk": "1", "tools": [], "problems": []}
    changed = ChangedTool("look", "changed", (ToolChange("parameters", True, "text is gone."),))
    web.tool_changes = ToolChanges("1", "2", (changed,), ("look: handler.py is missing.",))
    told = await read(web, "tools/changes")
    assert told["tools"][0]["changes"] == [{"field": "parameters", "breaking": True, "sentence": "text is gone."}]
    assert told["problems"] == ["look: handler.py is missing."]


async def test_records_are_counted_by_namespace(web: WebApp) -> None:
    told = await read(web, "kb")
    assert [each["namespace"] for each in told["namespaces"]] == ["studio", "personal", "public"]
    await web.http.post("/api/kb", json={"title": "Tea", "body": "It is green."}, headers={"X-User": "ann"})
    told = await read(web, "kb")
    assert {each["namespace"]: each["records"] for each in told["namespaces"]}["personal"] == 1
    assert (told["records"], told["passages"]) == (1, 1)

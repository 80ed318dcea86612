"""`/api/kb`: users search, read, add and delete records."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from antiphon.clock import SystemClock
from antiphon.security.quota import Kind, Limit, Quota, Rate
from antiphon.services.kb import Knowledge
from antiphon.services.kb.embedders import LazyEmbedder
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import open_database
from tests.fakes.calls import LoopClock
from tests.fakes.web import WebApp, WebApps
from tests.unit.services.kb.handbook import HANDBOOK

NOTE = {"title": "Roof", "body": "The roofer comes in May.", "tags": ["House "], "url": "https://example.org/roof"}


@pytest.fixture
async def web(apps: WebApps) -> WebApp:
    web = apps.open(text=[])
    await web.deps.knowledge.add(HANDBOOK)
    return web


async def post(web: WebApp, body: Any, user: str = "ann") -> httpx2.Response:
    return await web.http.post("/api/kb", json=body, headers={"X-User": user})


async def test_a_search_returns_the_best_records_with_the_hit_in_context(web: WebApp) -> None:
    answer = (await web.get("/api/kb?query=citric+acid&limit=2")).json()
    [first, *_] = answer["results"]
    assert first["id"] == "doc:coffee"
    assert "citric acid" in first["snippet"]
    assert 0 < first["score"] <= 1
    assert answer["total"] == len(HANDBOOK)
    assert answer["search"] == "words"


async def test_without_a_query_the_newest_records_are_listed(web: WebApp) -> None:
    await post(web, NOTE)
    answer = (await web.get("/api/kb?limit=3")).json()
    assert answer["results"][0]["id"] == "doc:roof"
    assert [each["score"] for each in answer["results"]] == [None] * 3
    assert answer["total"] == len(HANDBOOK) + 1


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("type=project&tag=active", ["project:heron"]),
        ("query=policy&tag=finance", ["doc:expenses"]),
        ("query=policy&type=person", []),
        ("namespace=public", []),
    ],
)
async def test_results_pass_the_filters(web: WebApp, query: str, ids: list[str]) -> None:
    assert [each["id"] for each in (await web.get(f"/api/kb?{query}")).json()["results"]] == ids


async def test_a_record_is_added_read_and_deleted(web: WebApp) -> None:
    made = await post(web, NOTE)
    assert made.status_code == 201
    record = made.json()
    assert (record["id"], record["namespace"], record["tags"], record["writable"]) == (
        "doc:roof",
        "personal",
        ["house"],
        True,
    )
    assert (await web.get("/api/kb/doc:roof")).json() == record
    assert (await web.delete("/api/kb/doc:roof")).status_code == 204
    assert (await web.get("/api/kb/doc:roof")).status_code == 404
    assert (await web.delete("/api/kb/doc:roof")).status_code == 404


async def test_a_second_record_with_the_same_title_gets_another_id(web: WebApp) -> None:
    ids = [(await post(web, NOTE)).json()["id"] for _ in range(2)]
    assert ids == ["doc:roof", "doc:roof_2"]


@pytest.mark.real_time
async def test_records_with_the_same_title_that_come_at_the_same_time_are_all_kept(
    apps: WebApps, tmp_path: Path
) -> None:
    bodies = [f"Note {number}." for number in range(5)]
    # In a file, since requests do not overtake each other with a database in memory.
    database = await open_database(tmp_path / "antiphon.db")
    try:
        knowledge = Knowledge(database.knowledge, LazyEmbedder(None), SystemClock())
        web = apps.open(text=[], deps={"knowledge": knowledge})
        answers = await asyncio.gather(*(post(web, NOTE | {"body": body}) for body in bodies))
        ids = [answer.json()["id"] for answer in answers]
        kept = [(await web.get(f"/api/kb/{id}")).json()["body"] for id in ids]
    finally:
        await database.aclose()
    assert sorted(ids) == ["doc:roof", *(f"doc:roof_{number}" for number in range(2, 6))]
    assert kept == bodies


async def test_an_added_record_does_not_hide_a_shared_one_with_the_same_title(web: WebApp) -> None:
    assert (await post(web, NOTE | {"title": "Coffee"})).json()["id"] == "doc:coffee_2"


async def test_personal_records_are_hidden_from_other_users(web: WebApp) -> None:
    await post(web, NOTE)
    assert (await web.get("/api/kb?query=roofer", user="bob")).json()["results"] == []
    assert (await web.get("/api/kb/doc:roof", user="bob")).status_code == 404
    assert (await web.delete("/api/kb/doc:roof", user="bob")).status_code == 404
    assert (await web.get("/api/kb/doc:roof")).status_code == 200


async def test_users_may_not_change_shared_records_but_the_operator_may(web: WebApp) -> None:
    shared = {**NOTE, "namespace": "studio"}
    assert (await post(web, shared)).json()["error"]["code"] == "forbidden"
    assert (await web.delete("/api/kb/doc:coffee")).json()["error"]["code"] == "forbidden"
    assert (await web.get("/api/kb/doc:coffee")).json()["writable"] is False
    assert (await post(web, shared, user="local")).status_code == 201
    assert (await web.delete("/api/kb/doc:coffee", user="local")).status_code == 204


async def test_a_namespace_that_the_user_may_not_read_is_refused(apps: WebApps) -> None:
    web = apps.open(text=[])
    closed = Knowledge(web.deps.knowledge.store, LazyEmbedder(None), LoopClock(), studio_readers=["bob"])
    web = apps.open(text=[], deps={"knowledge": closed}, database=web.server.database)
    await closed.add(HANDBOOK)
    refused = await web.get("/api/kb?namespace=studio")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    assert (await web.get("/api/kb")).json()["total"] == 0
    assert (await web.get("/api/kb/doc:coffee")).status_code == 404
    assert (await web.get("/api/kb", user="bob")).json()["total"] == len(HANDBOOK)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"title": " ", "body": "x"}, "title of 1 to 200"),
        ({"title": "x" * 201, "body": "x"}, "title of 1 to 200"),
        ({"title": "Empty", "body": "  "}, "no text and no link"),
        ({"title": "x", "body": "x", "url": "javascript:alert(1)"}, "http://"),
        ({"title": "x", "body": "x", "type": "recipe"}, "must be one of"),
        ({"title": "x", "body": "x", "tags": ["y" * 51]}, "tags"),
        ({"title": "x", "body": "x", "bdoy": "y"}, "Did you mean `body`?"),
        ({"body": "x"}, "title"),
    ],
)
async def test_a_bad_record_is_refused_with_what_is_wrong(web: WebApp, body: Any, says: str) -> None:
    refused = await post(web, body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_request")
    assert says in refused.json()["error"]["message"]
    assert (await web.get("/api/kb")).json()["total"] == len(HANDBOOK)


@pytest.mark.parametrize("query", ["limit=0", "limit=51", "namespace=secret", "colour=red", f"query={'x' * 201}"])
async def test_wrong_parameters_are_refused(web: WebApp, query: str) -> None:
    refused = await web.get(f"/api/kb?{query}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_request")


async def test_a_stranger_reads_and_writes_nothing(web: WebApp) -> None:
    assert (await web.get("/api/kb", user="stranger")).status_code == 401
    assert (await post(web, NOTE, user="stranger")).status_code == 401


async def test_searches_count_as_tool_calls(apps: WebApps) -> None:
    quota = Quota({Kind.TOOL_CALL: Limit(user=Rate(0.01, 2))})
    web = apps.open(text=[], deps={"quota": quota}, database=MemoryDatabase())
    codes = [(await web.get("/api/kb?query=tea")).status_code for _ in range(3)]
    assert codes == [200, 200, 429]

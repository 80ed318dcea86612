"""The tools of the knowledge base through the gate, in text and in voice."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from antiphon.authoring import build
from antiphon.authoring.testing import StillClock
from antiphon.compose import TOOLKIT
from antiphon.services.kb import Knowledge
from antiphon.services.kb.embedders import LazyEmbedder
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.errors import ErrorType
from antiphon.tools.registry import Registry
from antiphon.tools.result import Citation
from antiphon.tools.spec import Capability, Mode
from antiphon.tools.tool import Tool
from tests.fakes.gates import Gate
from tests.unit.services.kb.handbook import HANDBOOK, record

TOOLS = ("kb_search", "kb_get", "linkedin_lookup")


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> list[Tool]:
    path: Path = tmp_path_factory.mktemp("tools") / "tool_registry.json"
    build.write(build.build([TOOLKIT], shipped=TOOLKIT), path)
    return [tool for id, tool in Registry.load(path, environment="production").tools.items() if id in TOOLS]


@pytest.fixture
async def gate(tools: list[Tool]) -> AsyncIterator[Gate]:
    gate = await open_gate(tools)
    yield gate
    await gate.executor.aclose()


async def open_gate(tools: list[Tool], studio_readers: tuple[str, ...] = ()) -> Gate:
    database = MemoryDatabase()
    knowledge = Knowledge(database.knowledge, LazyEmbedder(None), StillClock(), studio_readers=studio_readers)
    await knowledge.add(HANDBOOK)
    offers = {Capability.KB: lambda session, tool: knowledge.session(session)}
    return Gate(*tools, database=database, offers=offers)


def speak(gate: Gate) -> Any:
    return gate.new_session("spoken", mode=Mode.VOICE)


async def test_a_search_returns_evidence_with_all_its_fields(gate: Gate) -> None:
    result = await gate.call("kb_search", {"query": "founder of FRAM", "filters": {"type": "person"}, "top_k": 3})
    [evidence] = result.data["results"]
    assert evidence == {
        "id": "person:andrei_clodius",
        "type": "person",
        "title": "Andrei Clodius",
        "snippet": HANDBOOK[3].body,
        "score": 1.0,
        "source_type": "markdown",
        "last_updated": "2026-01-01T12:00:00Z",
        "url": "https://www.linkedin.com/in/andrei-example",
        "metadata": {"role": "founder", "company": "FRAM"},
    }
    assert (result.data["clamped"], result.data["search"]) == (False, "words")
    assert result.citations == (Citation("person:andrei_clodius", "Andrei Clodius", evidence["url"]),)


async def test_scores_never_rise_and_no_record_comes_twice(gate: Gate) -> None:
    results = (await gate.call("kb_search", {"query": "the office policy of the finance team", "top_k": 10})).data[
        "results"
    ]
    scores = [each["score"] for each in results]
    assert len(results) > 2
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert len({each["id"] for each in results}) == len(results)


async def test_in_voice_top_k_and_full_text_are_clamped_and_the_result_says_so(gate: Gate) -> None:
    asked = {"query": "office finance policy tests backups", "top_k": 10, "return_fields": ["snippet", "full_text"]}
    spoken = await gate.call("kb_search", asked, session=speak(gate))
    assert len(spoken.data["results"]) == 3
    assert spoken.data["clamped"] is True
    assert all("full_text" not in each for each in spoken.data["results"])
    typed = await gate.call("kb_search", asked)
    assert len(typed.data["results"]) > 3
    assert typed.data["clamped"] is False
    assert typed.data["results"][0]["full_text"]


@pytest.mark.parametrize(
    ("args", "keys"),
    [
        ({"return_fields": ["url"]}, {"url"}),
        ({"return_fields": ["sources", "metadata"]}, {"sources", "metadata"}),
        ({"include_snippets": False}, {"url", "metadata"}),
    ],
)
async def test_only_the_wanted_fields_are_returned(gate: Gate, args: dict[str, Any], keys: set[str]) -> None:
    [first, *_] = (await gate.call("kb_search", {"query": "coffee machine", **args})).data["results"]
    assert first.keys() - {"id", "type", "title", "score", "source_type", "last_updated"} == keys


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"tags": ["policy", "HR"]}, 1),
        ({"tags": ["policy", "it"]}, 0),
        ({"date_range": {"start": "2026-01-01T00:00:00Z"}}, 2),
        ({"date_range": {"end": "2025-12-31T00:00:00Z"}}, 0),
        ({"date_range": {"start": "2026-01-01T13:00:00+02:00", "end": "2026-01-01T13:00:00Z"}}, 2),
    ],
)
async def test_filters_narrow_the_search(gate: Gate, filters: dict[str, Any], count: int) -> None:
    assert len((await gate.call("kb_search", {"query": "policy", "filters": filters})).data["results"]) == count


async def test_nothing_found_is_not_an_error(gate: Gate) -> None:
    result = await gate.call("kb_search", {"query": "zebra"})
    assert (result.ok, result.data["results"], result.citations) == (True, [], ())
    assert result.spoken == "I found nothing about that in the knowledge base."


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"query": ""},
        {"query": "x" * 201},
        {"query": "x", "namespace": "secret"},
        {"query": "x", "top_k": 11},
        {"query": "x", "top_k": 0},
        {"query": "x", "filters": {"type": "recipe"}},
        {"query": "x", "filters": {"colour": "red"}},
        {"query": "x", "filters": {"date_range": {"start": "yesterday"}}},
        {"query": "x", "filters": {"date_range": {"start": "2026-02-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"}}},
        {"query": "x", "return_fields": ["secrets"]},
        {"query": "x", "depth": 3},
    ],
)
async def test_wrong_arguments_are_refused(gate: Gate, args: dict[str, Any]) -> None:
    result = await gate.call("kb_search", args)
    assert result.error is not None
    assert result.error.type is ErrorType.VALIDATION


@pytest.mark.parametrize(
    "query", ['" OR 1', "a* AND (b", "NEAR(a b)", "title:coffee", "'; DROP TABLE kb_records; --", "?"]
)
async def test_any_text_can_be_looked_for(gate: Gate, query: str) -> None:
    assert (await gate.call("kb_search", {"query": query})).ok


async def test_a_namespace_that_the_user_may_not_read_is_refused(tools: list[Tool]) -> None:
    gate = await open_gate(tools, studio_readers=("bob",))
    result = await gate.call("kb_search", {"query": "coffee", "namespace": "studio"})
    assert result.error is not None
    assert result.error.type is ErrorType.AUTH
    assert (await gate.call("kb_search", {"query": "coffee"})).data["results"] == []
    hidden = await gate.call("kb_get", {"id": "doc:coffee"})
    assert hidden.error is not None
    assert hidden.error.type is ErrorType.NOT_FOUND
    await gate.executor.aclose()


async def test_a_record_is_read_whole_in_text_and_begun_in_voice(gate: Gate) -> None:
    typed = await gate.call("kb_get", {"id": "doc:vacation"})
    assert typed.data["full_text"] == HANDBOOK[0].body
    assert typed.citations == (Citation("doc:vacation", "Vacation policy"),)
    spoken = await gate.call("kb_get", {"id": "doc:vacation", "return_fields": ["full_text"]}, session=speak(gate))
    assert "full_text" not in spoken.data
    plain = await gate.call("kb_get", {"id": "doc:vacation"}, session=gate.new_session("s2", mode=Mode.VOICE))
    assert plain.data["snippet"].startswith("Every employee has 28 days")


async def test_an_unknown_record_is_not_found(gate: Gate) -> None:
    result = await gate.call("kb_get", {"id": "doc:gone"})
    assert result.error is not None
    assert (result.error.type, result.error.message) == (ErrorType.NOT_FOUND, "I can't find that record.")


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("Andrei Clodius", "https://www.linkedin.com/in/andrei-example"),
        ("priya", "https://linkedin.com/in/priya-example"),
    ],
)
async def test_a_stored_linkedin_link_is_found_by_name(gate: Gate, name: str, url: str) -> None:
    result = await gate.call("linkedin_lookup", {"name": name})
    assert [match["url"] for match in result.data["matches"]] == [url]


@pytest.mark.parametrize("name", ["Marta Kowalska", "Brand guide", "Andrei Tarkovsky", "the"])
async def test_no_link_is_made_up(gate: Gate, name: str) -> None:
    result = await gate.call("linkedin_lookup", {"name": name})
    assert result.error is not None
    assert result.error.type is ErrorType.NOT_FOUND


async def test_a_link_to_another_host_that_looks_alike_is_not_returned(gate: Gate) -> None:
    knowledge = Knowledge(gate.database.knowledge, LazyEmbedder(None), StillClock())
    await knowledge.add([record("person:eve", "Eve", "See https://linkedin.com.evil.example/in/eve")])
    assert not (await gate.call("linkedin_lookup", {"name": "Eve"})).ok

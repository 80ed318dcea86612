"""The simulator of OpenAI Realtime: its rules, its limit, and faults in its format."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from tests.unit.sim.simulated import SimulatedClient, simulate_openai


def say(client: SimulatedClient, words: str) -> None:
    content = [{"type": "input_text", "text": words}]
    client.say({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": content}})
    client.say({"type": "response.create"})


def output(call_id: str | None) -> dict[str, Any]:
    item = {"type": "function_call_output", "call_id": call_id, "output": "{}"}
    return {"type": "conversation.item.create", "item": item}


@pytest.mark.parametrize(
    ("query", "headers", "expected"),
    [
        ("model=gpt-realtime-2", {"authorization": "Bearer wrong"}, (3000, "invalid_request_error.invalid_api_key")),
        ("model=gpt-9", {"authorization": "Bearer right"}, (4004, "invalid_request_error.model_not_found")),
        (
            "model=gpt-realtime-2",
            {"authorization": "Bearer right", "openai-beta": "realtime=v1"},
            (4000, "invalid_request_error.beta_api_shape_disabled"),
        ),
    ],
)
async def test_a_refusal_is_an_error_and_a_close(
    query: str, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    simulated, endpoint = simulate_openai(key="right")
    async with simulated.connect("/v1/realtime", query, headers) as client:
        assert (await client.event())["type"] == "websocket.accept"
        error = await client.heard()
        assert error["error"]["code"] == expected[1].partition(".")[2]
        assert await client.closed() == expected
    assert endpoint.scopes == []


@pytest.mark.parametrize(
    ("path", "query", "headers", "status"),
    [
        ("/v1/realtime", "model=gpt-realtime-2", {}, 401),
        ("/openai/v1/realtime", "model=mine", {"api-key": "wrong"}, 401),
        ("/openai/v1/realtime", "model=mine&api-version=2025-04-01-preview", {"api-key": "right"}, 401),
    ],
)
async def test_a_missing_key_is_refused_at_the_upgrade(
    path: str, query: str, headers: dict[str, str], status: int
) -> None:
    simulated, _ = simulate_openai(key="right")
    async with simulated.connect(path, query, headers) as client:
        assert (await client.event())["status"] == status


async def test_azure_takes_any_deployment_at_its_own_path() -> None:
    simulated, endpoint = simulate_openai(key="right")
    async with simulated.connect("/openai/v1/realtime", "model=mine", {"api-key": "right"}) as client:
        assert (await client.event())["type"] == "websocket.accept"
    assert endpoint.scopes[0]["path"] == "/v1/realtime"
    assert "right" not in str(endpoint.scopes[0])


async def test_a_session_in_the_beta_format_is_closed_and_one_without_type_gets_an_error() -> None:
    simulated, _ = simulate_openai()
    async with simulated.openai() as client:
        client.say({"type": "session.update", "event_id": "e1", "session": {"instructions": "Be brief."}})
        error = (await client.heard())["error"]
        assert (error["code"], error["event_id"]) == ("missing_required_parameter", "e1")
        client.say({"type": "session.update", "session": {"modalities": ["audio"]}})
        assert (await client.closed())[0] == 4000


async def test_a_session_ends_after_sixty_minutes() -> None:
    simulated, _ = simulate_openai()
    async with simulated.openai() as client:
        assert await client.is_quiet(3_599)
        assert (await client.heard())["error"]["code"] == "session_expired"
        assert await client.closed() == (1001, "Your session hit the maximum duration of 60 minutes.")


async def test_a_quota_is_exhausted_in_mid_answer() -> None:
    simulated, _ = simulate_openai("faults: [{when: {audio_chunk: 2}, do: quota}]")
    async with simulated.openai() as client:
        say(client, "hello")
        assert (await client.heard_until("error"))[-1]["error"]["code"] == "insufficient_quota"
        assert await client.closed() == (1013, "insufficient_quota.insufficient_quota")


async def test_a_call_without_an_id_can_still_be_answered() -> None:
    simulated, endpoint = simulate_openai("faults: [{when: connect, do: tool_call_without_id}]")
    async with simulated.openai() as client:
        say(client, "call")
        heard = await client.heard_until("response.done")
        assert "call_id" not in str(heard)
        client.say(output("invented"))
        client.say({"type": "response.create"})
        await client.heard_until("response.done")
    assert endpoint.received[2]["item"]["call_id"] == "call_resp_1"


@pytest.mark.parametrize("is_new", [False, True])
async def test_a_repeated_call_is_answered_for_the_endpoint_only_once(is_new: bool) -> None:
    script = f"faults: [{{when: {{client_message: tool_result}}, do: {{duplicate_tool_call: {{new_id: {is_new}}}}}}}]"
    simulated, endpoint = simulate_openai(script)
    async with simulated.openai() as client:
        say(client, "call")
        await client.heard_until("response.done")
        client.say(output("call_resp_1"))
        again = (await client.heard_until("response.done"))[-1]["response"]["output"][0]
        assert (again["call_id"] == "call_resp_1") is not is_new
        client.say(output(again["call_id"]))
        assert (await client.heard_until("conversation.item.done"))[-1]["item"]["call_id"] == again["call_id"]
    assert sum(each.get("item", {}).get("type") == "function_call_output" for each in endpoint.received) == 1


async def test_a_cancelled_call_is_incomplete_and_settled() -> None:
    simulated, endpoint = simulate_openai("faults: [{when: connect, do: cancel_tool_call}]")
    async with simulated.openai() as client:
        say(client, "call")
        heard = {each["type"]: each for each in await client.heard_until("response.done")}
        assert heard["response.output_item.done"]["item"]["status"] == "incomplete"
        assert heard["response.done"]["response"]["status"] == "cancelled"
        client.say(output("call_resp_1"))
        await client.heard_until("conversation.item.done")
        say(client, "hello")
        assert (await client.heard_until("response.done"))[-1]["response"]["status"] == "completed"
    outputs = [each["item"] for each in endpoint.received if each.get("item", {}).get("call_id")]
    assert [each["output"] for each in outputs] == ['{"error":"The call was cancelled."}']


async def test_speech_and_a_call_are_in_one_response() -> None:
    simulated, _ = simulate_openai("faults: [{when: connect, do: {speech_and_tool_call: {text: Wait.}}}]")
    async with simulated.openai() as client:
        say(client, "call")
        heard = await client.heard_until("response.done")
        spoken, call = heard[-1]["response"]["output"]
        client.say(
            {"type": "conversation.item.truncate", "item_id": spoken["id"], "content_index": 0, "audio_end_ms": 9}
        )
        assert (await client.heard())["type"] == "conversation.item.truncated"
    assert (spoken["type"], call["type"]) == ("message", "function_call")
    indexes = {
        each["item"]["type"]: each["output_index"] for each in heard if each["type"] == "response.output_item.done"
    }
    assert indexes == {"message": 0, "function_call": 1}
    assert len({each["response_id"] for each in heard if "response_id" in each}) == 1


async def test_two_responses_are_under_way_at_once() -> None:
    simulated, _ = simulate_openai("faults: [{when: {audio_chunk: 2}, do: two_responses}]")
    async with simulated.openai() as client:
        say(client, "hello")
        heard = [*await client.heard_until("response.done"), *await client.heard_until("response.done")]
    created = [each["response"]["id"] for each in heard if each["type"] == "response.created"]
    assert len(set(created)) == 2
    between = [each["response_id"] for each in heard if each["type"] == "response.output_audio.delta"]
    switches = sum(one != other for one, other in pairwise(between))
    assert switches >= 3


async def test_the_model_speaks_without_being_asked() -> None:
    simulated, _ = simulate_openai("faults: [{when: {seconds: 2}, do: greet}]")
    async with simulated.openai() as client:
        heard = await asyncio.wait_for(client.heard_until("response.done"), 3)
    assert heard[-1]["response"]["output"][0]["content"][0]["transcript"] == "Hello! How can I help you?"


async def test_the_latest_response_is_replayed() -> None:
    simulated, _ = simulate_openai("faults: [{when: {seconds: 2}, do: replay}]")
    async with simulated.openai() as client:
        say(client, "hello")
        said = await client.heard_until("response.done")
        heard = await asyncio.wait_for(client.heard_until("response.done"), 3)
    begin = next(place for place, each in enumerate(said) if each["type"] == "response.created")
    assert heard == said[begin:]

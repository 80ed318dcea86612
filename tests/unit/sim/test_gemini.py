"""The simulator of Gemini Live: its rules, its handles, its limits, and faults in its format."""

import asyncio
from typing import Any

import pytest

from tests.unit.sim.simulated import GEMINI_PATH, SETUP, resume, simulate_gemini, text

RESPONSE = {"id": "call-1", "name": "get_current_time", "response": {"result": "noon"}}


def responds(**fields: Any) -> dict[str, Any]:
    return {"tool_response": {"functionResponses": [{**RESPONSE, **fields}]}}


def setup(model: str = "models/gemini-3.8-live", **fields: Any) -> dict[str, Any]:
    return {"setup": {"model": model, **fields}}


def declares(**function: Any) -> list[dict[str, Any]]:
    return [{"function_declarations": [{"name": "f", **function}]}]


async def refusal_of(*messages: dict[str, Any], **options: Any) -> tuple[int, str]:
    """Returns how the connection is closed that sends these messages."""
    simulated, _ = simulate_gemini(**options)
    async with simulated.connect(GEMINI_PATH) as client:
        for message in messages:
            client.say(message)
        return await asyncio.wait_for(client.closed(), 5)


@pytest.mark.parametrize(
    ("message", "code", "told"),
    [
        (text("no setup"), 1007, "invalid argument"),
        (setup("models/gemini-9"), 1008, "models/gemini-9 is not found"),
        (setup(tool=[]), 1007, "Unknown name \"tool\" at 'setup'"),
        (setup(generationConfig={"thinkingConfig": {"thinking_level": "LOW"}}), 1007, "Thinking level"),
        (setup(generationConfig={"responseModalities": ["TEXT"]}), 1007, "invalid argument"),
        (setup(proactivity={"proactive_audio": False}), 1007, "invalid argument"),
        (setup("gemini-3.8-live-extended-thinking"), 1007, "invalid argument"),
        (setup("gemini-3.1-flash-live-preview", tools=declares(behavior="NON_BLOCKING")), 1007, "invalid argument"),
        (setup(tools=declares(parameters={"type": "OBJECT", "additionalProperties": False})), 1007, "additionalProp"),
        (setup(tools=declares(parameters={"properties": {"a": {"const": 1}}})), 1007, 'Unknown name "const"'),
        (setup(tools=declares(parameters={"type": ["string", "null"]})), 1007, "Proto field is"),
        (setup(sessionResumption={"handle": "made-up"}), 1007, "Invalid session handle"),
    ],
)
async def test_the_provider_refuses_a_setup(message: dict[str, Any], code: int, told: str) -> None:
    closed = await refusal_of(message)
    assert closed[0] == code
    assert told in closed[1]


@pytest.mark.parametrize("spelling", ["functionDeclarations", "function_declarations"])
async def test_both_spellings_and_the_clients_own_names_are_accepted(spelling: str) -> None:
    simulated, _ = simulate_gemini()
    schema = {"type": "OBJECT", "properties": {"city_name": {"type": "STRING", "min_length": 1}}}
    async with simulated.gemini(setup(tools=[{spelling: [{"name": "f", "parameters": schema}]}])):
        pass


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("gemini-3.8-live", SETUP),
        ("gemini-3.8-live", responds(id="")),
        ("gemini-3.8-live", {"realtime_input": {"sound": {}}}),
        ("gemini-3.1-flash-live-preview", {"client_content": {"turns": [], "turn_complete": True}}),
        ("gemini-3.1-flash-live-preview", responds(scheduling="WHEN_IDLE")),
    ],
)
async def test_the_provider_refuses_a_later_message(model: str, message: dict[str, Any]) -> None:
    assert (await refusal_of(setup(model), message))[0] == 1007


async def test_scheduling_is_refused_with_its_own_text_where_the_model_lacks_it() -> None:
    thinks = setup("gemini-3.8-live-extended-thinking", generationConfig={"thinkingConfig": {"thinkingLevel": "LOW"}})
    closed = await refusal_of(thinks, responds(scheduling="SILENT"))
    assert closed == (1007, "Function response scheduling is not supported for this model")


async def test_initial_history_is_accepted_once_by_a_model_that_takes_no_other_content() -> None:
    content = {"client_content": {"turns": [], "turnComplete": True}}
    simulated, endpoint = simulate_gemini()
    begins = setup("gemini-3.1-flash-live-preview", historyConfig={"initial_history_in_client_content": True})
    async with simulated.gemini(begins) as client:
        client.say(content)
        await client.heard_until("turnComplete")
        client.say(content)
        assert (await client.closed())[0] == 1007
    assert len(endpoint.received) == 2


@pytest.mark.parametrize(("headers", "code"), [({}, 1008), ({"x-goog-api-key": "wrong"}, 1007)])
async def test_a_wrong_or_missing_key_is_refused_after_the_setup(headers: dict[str, str], code: int) -> None:
    simulated, endpoint = simulate_gemini(key="right")
    async with simulated.connect(GEMINI_PATH, headers=headers) as client:
        client.say(SETUP)
        assert (await client.closed())[0] == code
    assert endpoint.received == []


@pytest.mark.parametrize(
    ("query", "headers"),
    [("key=right", {}), ("", {"x-goog-api-key": "right"}), ("", {"authorization": "Token right"})],
)
async def test_the_right_key_is_accepted_and_does_not_reach_the_endpoint(query: str, headers: dict[str, str]) -> None:
    simulated, endpoint = simulate_gemini(key="right")
    async with simulated.connect(GEMINI_PATH, query, headers) as client:
        assert (await client.event())["type"] == "websocket.accept"
    assert "right" not in str(endpoint.scopes[0])
    assert endpoint.scopes[0]["path"].startswith("/ws/")


async def test_a_handle_resumes_after_the_old_socket_is_closed_and_not_before() -> None:
    simulated, _ = simulate_gemini()
    async with simulated.gemini() as client:
        client.say(text("hello"))
        handle = (await client.heard_until("sessionResumptionUpdate"))[-1]["sessionResumptionUpdate"]["newHandle"]
        async with simulated.connect(GEMINI_PATH) as second:
            second.say(resume(handle))
            assert (await second.closed())[0] == 1011
    async with simulated.gemini(resume(handle)):
        pass


async def test_a_handle_expires_two_hours_after_the_end() -> None:
    simulated, _ = simulate_gemini(time_scale=2)
    async with simulated.gemini() as client:
        client.say(text("hello"))
        await client.heard_until("sessionResumptionUpdate")
    await asyncio.sleep(3_599)
    async with simulated.gemini(resume("handle-1")):
        pass
    await asyncio.sleep(3_601)
    async with simulated.connect(GEMINI_PATH) as client:
        client.say(resume("handle-1"))
        assert await client.closed() == (1008, "BidiGenerateContent session not found")


async def test_a_handle_does_not_work_with_another_kind_of_model() -> None:
    simulated, _ = simulate_gemini()
    async with simulated.gemini() as client:
        client.say(text("hello"))
        await client.heard_until("sessionResumptionUpdate")
    async with simulated.connect(GEMINI_PATH) as client:
        client.say(setup("gemini-2.5-flash-native-audio-latest", sessionResumption={"handle": "handle-1"}))
        assert (await client.closed())[0] == 1007


async def test_a_session_cannot_be_resumed_while_an_answer_is_under_way() -> None:
    simulated, _ = simulate_gemini()
    async with simulated.gemini() as client:
        for _ in range(2):
            client.say(text("hello"))
            heard = await client.heard_until("serverContent")
            heard += await client.heard_until("sessionResumptionUpdate")
    assert heard[0] == {"sessionResumptionUpdate": {}}
    assert heard[-1]["sessionResumptionUpdate"]["resumable"] is True


async def test_a_connection_ends_after_ten_minutes_with_a_warning_before() -> None:
    simulated, _ = simulate_gemini()
    began_s = asyncio.get_running_loop().time()
    async with simulated.gemini() as client:
        assert await client.is_quiet(549)
        assert await client.heard() == {"goAway": {"timeLeft": "50s"}}
        code, reason = await client.closed()
        assert asyncio.get_running_loop().time() - began_s == pytest.approx(600, abs=1)
    assert (code, reason[:18]) == (1008, "Connection aborted")
    assert len(reason) == 123


async def test_the_limit_can_be_set_and_scaled() -> None:
    given, _ = simulate_gemini(connection_s=3)
    scaled, _ = simulate_gemini(time_scale=60)
    async with given.gemini() as client:
        assert await client.heard() == {"goAway": {"timeLeft": "1.5s"}}
        await client.closed()
    async with scaled.gemini() as client:
        began_s = asyncio.get_running_loop().time()
        assert (await client.heard())["goAway"]["timeLeft"] == "0.833333333s"
        await client.closed()
        assert asyncio.get_running_loop().time() - began_s == pytest.approx(10, abs=0.1)


async def test_a_connection_can_go_on_after_go_away_and_then_fall_silent_without_a_close() -> None:
    script = "faults: [{when: {seconds: 1}, do: {go_away: {seconds_left: 3, then: vanish}}}]"
    simulated, _ = simulate_gemini(script)
    async with simulated.gemini() as client:
        assert await client.heard() == {"goAway": {"timeLeft": "3s"}}
        client.say(text("hello"))
        await client.heard_until("turnComplete")
        await client.heard_until("sessionResumptionUpdate")
        await asyncio.sleep(4)
        client.say(text("are you there"))
        assert await client.is_quiet(100)


async def test_go_away_can_be_followed_by_silence_or_a_close() -> None:
    silent, _ = simulate_gemini("faults: [{when: {seconds: 1}, do: {go_away: {seconds_left: 3, then: silence}}}]")
    closing, _ = simulate_gemini("faults: [{when: {seconds: 1}, do: {go_away: {seconds_left: 3}}}]")
    async with silent.gemini() as client:
        assert await client.heard() == {"goAway": {"timeLeft": "3s"}}
        assert await client.is_quiet(500)
    async with closing.gemini() as client:
        await client.heard()
        client.say(text("hello"))
        await client.heard_until("turnComplete")
        assert (await client.closed())[0] == 1008


@pytest.mark.parametrize(
    ("problem", "expected"),
    [("expired", (1008, "BidiGenerateContent session not found")), ("foreign", (1007, "Invalid session handle"))],
)
async def test_a_good_handle_is_refused_on_command(problem: str, expected: tuple[int, str]) -> None:
    simulated, _ = simulate_gemini(f"faults: [{{when: resume, do: {{reject_handle: {{problem: {problem}}}}}}}]")
    async with simulated.gemini() as client:
        client.say(text("hello"))
        await client.heard_until("sessionResumptionUpdate")
    async with simulated.connect(GEMINI_PATH) as client:
        client.say(resume("handle-1"))
        assert await client.closed() == expected
    async with simulated.gemini(resume("handle-1")):
        pass


async def test_a_quota_is_exhausted_in_mid_answer() -> None:
    simulated, _ = simulate_gemini("faults: [{when: {audio_chunk: 2}, do: quota}]")
    async with simulated.gemini() as client:
        client.say(text("hello"))
        code, reason = await client.closed()
    assert code == 1011
    assert "exceeded your current quota" in reason


async def test_a_call_without_an_id_can_be_answered_by_its_name() -> None:
    simulated, endpoint = simulate_gemini("faults: [{when: {server_message: tool_call}, do: tool_call_without_id}]")
    async with simulated.gemini() as client:
        client.say(text("call"))
        assert await client.heard() == {"toolCall": {"functionCalls": [{"name": "get_current_time", "args": {}}]}}
        client.say(responds(id="an id of the client's own"))
        await client.heard_until("turnComplete")
    assert endpoint.received[-1]["toolResponse"]["functionResponses"][0]["id"] == "call-1"


@pytest.mark.parametrize("is_new", [False, True])
async def test_a_call_that_was_not_answered_comes_again_after_a_resumption(is_new: bool) -> None:
    script = f"faults: [{{when: resumed, do: {{duplicate_tool_call: {{new_id: {str(is_new).lower()}}}}}}}]"
    simulated, endpoint = simulate_gemini(script)
    async with simulated.gemini() as client:
        client.say(text("hello"))
        await client.heard_until("sessionResumptionUpdate")
        client.say(text("call"))
        first = (await client.heard_until("toolCall"))[-1]
    async with simulated.gemini(resume("handle-1")) as client:
        second = await client.heard()
        ids = [each["toolCall"]["functionCalls"][0]["id"] for each in (first, second)]
        assert (ids[0] != ids[1]) is is_new
        for _ in range(2):
            client.say(responds(id=ids[1]))
        client.say(text("and"))
        await client.heard_until("turnComplete")
        await client.heard_until("turnComplete")
    answered = [each for each in endpoint.received if "toolResponse" in each]
    assert [each["toolResponse"]["functionResponses"][0]["id"] for each in answered] == ["call-1"]


async def test_a_cancelled_call_is_settled_and_its_answer_is_not_heard() -> None:
    simulated, endpoint = simulate_gemini("faults: [{when: {server_message: tool_call}, do: cancel_tool_call}]")
    async with simulated.gemini() as client:
        client.say(text("call"))
        assert "toolCall" in await client.heard()
        assert await client.heard() == {"toolCallCancellation": {"ids": ["call-1"]}}
        assert await client.heard() == {"serverContent": {"interrupted": True}}
        assert await client.heard() == {"serverContent": {"turnComplete": True}}
        client.say(responds())
        client.say(text("hello"))
        assert len(await client.heard_until("turnComplete")) == 9
    assert sum("toolResponse" in each for each in endpoint.received) == 1


async def test_a_call_without_an_id_is_not_cancelled() -> None:
    simulated, _ = simulate_gemini(
        "faults: [{when: {server_message: tool_call}, do: tool_call_without_id},"
        " {when: {server_message: tool_call}, do: cancel_tool_call}]"
    )
    async with simulated.gemini() as client:
        client.say(text("call"))
        assert await client.heard() == {"toolCall": {"functionCalls": [{"name": "get_current_time", "args": {}}]}}
        client.say(responds(id="an id of the client's own"))
        heard = await client.heard_until("turnComplete")
    assert not any("toolCallCancellation" in each for each in heard)


async def test_speech_and_a_call_come_in_one_message() -> None:
    simulated, _ = simulate_gemini("faults: [{when: connect, do: {speech_and_tool_call: {text: Wait.}}}]")
    async with simulated.gemini() as client:
        client.say(text("call"))
        message = await client.heard()
    assert message["toolCall"]["functionCalls"][0]["id"] == "call-1"
    assert message["serverContent"]["outputTranscription"] == {"text": "Wait."}
    assert "inlineData" in message["serverContent"]["modelTurn"]["parts"][0]


async def test_a_second_answer_ends_in_the_middle_of_the_first() -> None:
    simulated, _ = simulate_gemini("faults: [{when: {audio_chunk: 2}, do: two_responses}]")
    async with simulated.gemini() as client:
        client.say(text("hello"))
        heard = [*await client.heard_until("turnComplete"), *await client.heard_until("turnComplete")]
    ends = [n for n, each in enumerate(heard) if "turnComplete" in each["serverContent"]]
    assert ends == [5, 9]


async def test_the_model_greets_again_after_a_resumption() -> None:
    simulated, _ = simulate_gemini("faults: [{when: resumed, do: {greet: {text: Hello again!}}}]")
    async with simulated.gemini() as client:
        client.say(text("hello"))
        await client.heard_until("sessionResumptionUpdate")
    async with simulated.gemini(resume("handle-1")) as client:
        heard = await client.heard_until("turnComplete")
    assert heard[0]["serverContent"]["outputTranscription"] == {"text": "Hello again!"}


async def test_the_latest_answer_is_replayed_after_a_resumption() -> None:
    simulated, _ = simulate_gemini("faults: [{when: resumed, do: replay}]")
    async with simulated.gemini() as client:
        client.say(text("hello"))
        said = await client.heard_until("turnComplete")
        await client.heard_until("sessionResumptionUpdate")
    async with simulated.gemini(resume("handle-1")) as client:
        assert await client.heard_until("turnComplete") == said

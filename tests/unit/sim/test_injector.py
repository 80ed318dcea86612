"""Faults that work the same for every provider: closes, stalls, silence, lost and broken messages, slow pongs."""

import asyncio
from typing import Any

import pytest

from antiphon.sim.script import ScriptError, parse_faults
from tests.fakes.steady_loop import SteadyLoop
from tests.unit.sim.simulated import GEMINI_PATH, simulate_gemini, simulate_openai, text


def faults(when: str, do: str, more: str = "") -> str:
    return f"faults: [{{when: {when}, do: {do}{more}}}]"


async def test_without_faults_every_message_passes() -> None:
    simulated, endpoint = simulate_gemini()
    async with simulated.gemini() as client:
        client.say(text("hello"))
        heard = await client.heard_until("sessionResumptionUpdate")
    assert len(heard) == 8
    assert endpoint.received[1] == text("hello")


async def test_a_close_in_mid_answer_comes_right_after_the_chunk() -> None:
    simulated, _ = simulate_gemini(faults("{audio_chunk: 3}", "{close: {code: 1011, reason: Gone.}}"))
    async with simulated.gemini() as client:
        client.say(text("hello"))
        for _ in range(3):
            assert "modelTurn" in (await client.heard())["serverContent"]
        assert await client.closed() == (1011, "Gone.")


async def test_chunks_are_counted_anew_in_each_answer() -> None:
    simulated, _ = simulate_gemini(faults("{audio_chunk: 5}", "close", ", skip: 1"))
    async with simulated.gemini() as client:
        client.say(text("one"))
        await client.heard_until("sessionResumptionUpdate")
        client.say(text("two"))
        assert (await client.closed())[0] == 1011


async def test_the_upgrade_is_refused_with_a_status() -> None:
    simulated, endpoint = simulate_gemini(faults("connect", "{refuse: {status: 429, retry_after_s: 7}}"))
    async with simulated.connect(GEMINI_PATH) as client:
        start, body = await client.event(), await client.event()
    assert start["status"] == 429
    assert (b"retry-after", b"7") in start["headers"]
    assert b"quota" in body["body"]
    assert endpoint.scopes == []


async def test_a_fault_of_the_second_connection_leaves_the_first_and_the_third_alone() -> None:
    simulated, _ = simulate_gemini(faults("{connect: 2}", "{refuse: {status: 503}}"))
    async with simulated.gemini():
        pass
    async with simulated.connect(GEMINI_PATH) as client:
        assert (await client.event())["status"] == 503
    async with simulated.gemini():
        pass


async def test_a_fault_happens_once_unless_it_is_repeated() -> None:
    once, _ = simulate_gemini(faults("connect", "refuse"))
    always, _ = simulate_gemini(faults("connect", "refuse", ", times: always"))
    async with once.connect(GEMINI_PATH) as first, once.gemini():
        assert (await first.event())["status"] == 429
    for _ in range(3):
        async with always.connect(GEMINI_PATH) as client:
            assert (await client.event())["status"] == 429


async def test_time_sets_a_fault_off() -> None:
    simulated, _ = simulate_gemini(faults("{seconds: 4}", "close"))
    async with simulated.gemini() as client:
        began_s = asyncio.get_running_loop().time()
        await client.closed()
        assert asyncio.get_running_loop().time() - began_s == pytest.approx(4, abs=0.1)


@pytest.mark.parametrize("when", ["{client_messages: 2}", "{client_message: realtimeInput}", "{client_message: text}"])
async def test_a_client_message_sets_a_fault_off(when: str) -> None:
    simulated, _ = simulate_gemini(faults(when, "{close: {code: 1008}}"))
    async with simulated.gemini() as client:
        client.say(text("hello"))
        assert (await client.closed())[0] == 1008


@pytest.mark.parametrize("when", ["{server_messages: 7}", "{server_message: generationComplete}"])
async def test_a_server_message_sets_a_fault_off(when: str) -> None:
    simulated, _ = simulate_gemini(faults(when, "{close: {code: 1008}}"))
    async with simulated.gemini() as client:
        client.say(text("hello"))
        await client.heard_until("generationComplete")
        assert (await client.event())["type"] == "websocket.close"


async def test_a_stall_holds_everything_back_and_then_delivers_it_in_order() -> None:
    simulated, _ = simulate_gemini(faults("{audio_chunk: 2}", "{stall: {seconds: 5}}"))
    async with simulated.gemini() as client:
        client.say(text("hello"))
        await client.heard()
        await client.heard()
        assert await client.is_quiet(4.9)
        heard = await client.heard_until("sessionResumptionUpdate")
    assert len(heard) == 6


async def test_a_stall_without_a_time_never_ends() -> None:
    simulated, _ = simulate_gemini(faults("{audio_chunk: 2}", "stall"), connection_s=80_000)
    async with simulated.gemini() as client:
        client.say(text("hello"))
        await client.heard()
        await client.heard()
        assert await client.is_quiet(30_000)


async def test_a_silent_connection_neither_answers_nor_reads() -> None:
    simulated, endpoint = simulate_gemini(faults("{client_messages: 1}", "silence"), connection_s=80_000)
    async with simulated.connect(GEMINI_PATH) as client:
        await client.event()
        client.say({"setup": {"model": "models/gemini-3.8-live"}})
        assert await client.is_quiet(1_000)
        client.say(text("hello"))
        assert await client.is_quiet(1_000)
    assert len(endpoint.received) == 1


async def test_a_silent_connection_stays_open_after_its_endpoint_has_left() -> None:
    async def leave(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        await send({"type": "websocket.close", "code": 1000})

    simulated, _ = simulate_gemini(faults("{client_messages: 1}", "silence"), connection_s=80_000)
    simulated.injector._app = leave
    async with simulated.connect(GEMINI_PATH) as client:
        await client.event()
        client.say({"setup": {"model": "models/gemini-3.8-live"}})
        assert await client.is_quiet(1_000)


async def test_a_stalled_handshake_is_answered_late_and_a_silent_one_never() -> None:
    late, _ = simulate_gemini(faults("connect", "{stall: {seconds: 20}}"))
    never, endpoint = simulate_gemini(faults("connect", "silence"))
    async with late.connect(GEMINI_PATH) as client:
        assert await client.is_quiet(19)
        assert (await client.event())["type"] == "websocket.accept"
    async with never.connect(GEMINI_PATH) as client:
        assert await client.is_quiet(10_000)
    assert endpoint.scopes == []


async def test_a_lost_message_is_the_only_one_that_is_lost() -> None:
    simulated, _ = simulate_gemini(faults("{server_message: generationComplete}", "drop"))
    async with simulated.gemini() as client:
        client.say(text("hello"))
        heard = await client.heard_until("sessionResumptionUpdate")
    assert len(heard) == 7
    assert not any("generationComplete" in each.get("serverContent", {}) for each in heard)


async def test_a_client_message_can_be_lost() -> None:
    simulated, endpoint = simulate_gemini(faults("{client_message: text}", "drop"))
    async with simulated.gemini() as client:
        client.say(text("lost"))
        client.say(text("hello"))
        await client.heard_until("turnComplete")
    assert text("lost") not in endpoint.received


async def test_a_malformed_message_is_half_of_its_text() -> None:
    simulated, _ = simulate_gemini(faults("{audio_chunk: 2}", "malformed"))
    async with simulated.gemini() as client:
        client.say(text("hello"))
        await client.heard()
        broken = (await client.event())["bytes"]
        assert broken.startswith(b'{"serverContent"')
        assert not broken.endswith(b"}")
        await client.heard_until("turnComplete")


@pytest.mark.parametrize("action", ["half_frame", "reset"])
async def test_the_connection_is_reset_without_a_close_frame(action: str) -> None:
    simulated, _ = simulate_gemini(faults("{audio_chunk: 2}", action))
    async with simulated.gemini() as client:
        client.say(text("hello"))
        await client.heard()
        await asyncio.wait_for(client.wire.was_reset.wait(), 10)
        assert (client.wire.half is not None) is (action == "half_frame")


async def test_pongs_are_delayed_or_withheld() -> None:
    script = "faults: [{when: connect, do: [{slow_pongs: {seconds: 12}}, no_pongs]}]"
    simulated, _ = simulate_gemini(script)
    async with simulated.gemini() as client:
        assert client.wire.pong_delays_s == [12, None]


async def test_a_message_of_the_users_own_is_sent() -> None:
    simulated, _ = simulate_openai(faults("{seconds: 1}", "{send: {message: {type: strange.event}}}"))
    async with simulated.openai() as client:
        assert await client.heard() == {"type": "strange.event"}


async def test_actions_of_a_list_are_performed_in_their_order() -> None:
    script = "faults: [{when: {seconds: 1}, do: [{send: {message: {n: 1}}}, {send: {message: {n: 2}}}, close]}]"
    simulated, _ = simulate_gemini(script)
    async with simulated.gemini() as client:
        assert [await client.heard(), await client.heard()] == [{"n": 1}, {"n": 2}]
        await client.closed()


async def test_a_fault_can_be_performed_now_on_open_connections_only() -> None:
    simulated, _ = simulate_gemini()
    now = parse_faults({"when": "now", "do": "close"}, simulated.vendor.vocabulary)
    with pytest.raises(ScriptError, match="no connection is open"):
        await simulated.injector.add(now)
    async with simulated.gemini() as client:
        assert await simulated.injector.add(now) == []
        await client.closed()


async def test_a_timer_that_is_added_later_still_counts_from_the_opening() -> None:
    simulated, _ = simulate_gemini()
    async with simulated.gemini() as client:
        await asyncio.sleep(3)
        await simulated.injector.add(parse_faults({"when": {"seconds": 5}, "do": "close"}, simulated.vendor.vocabulary))
        assert await client.is_quiet(1.9)
        await client.closed()


async def test_text_that_is_not_json_reaches_the_endpoint_unchanged() -> None:
    got: asyncio.Queue[str] = asyncio.Queue()

    async def keep(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        got.put_nowait((await receive())["text"])

    simulated, _ = simulate_gemini()
    simulated.injector._app = keep
    async with simulated.connect(GEMINI_PATH) as client:
        await client.event()
        client.say_raw("{nonsense")
        assert await asyncio.wait_for(got.get(), 10) == "{nonsense"


async def test_the_log_has_every_message_with_audio_as_its_length() -> None:
    simulated, _ = simulate_gemini(faults("{audio_chunk: 5}", "{close: {code: 1011}}"))
    async with simulated.gemini() as client:
        client.say(text("hello"))
        await client.closed()
    entries = simulated.log.since()
    assert [entry["event"] for entry in entries[:3]] == ["connect", "client", "server"]
    assert '"data": "(200 bytes)"' in str(entries[4]).replace("'", '"')
    assert {"event": "fault", "action": "Close"}.items() <= entries[-3].items()
    assert entries[-2]["message"]["close"] == 1011
    assert entries[-1]["event"] == "disconnect"


@pytest.mark.parametrize(
    "message",
    [
        {"setup": 5},
        {"setup": {"model": "models/gemini-3.8-live", "tools": 5}},
        {"setup": {"model": "models/gemini-3.8-live", "tools": [5], "generationConfig": []}},
        {"setup": {"model": [], "sessionResumption": {"handle": {}}}},
        {"realtime_input": [[[]]]},
        {"tool_response": {"functionResponses": 7}},
        {"a": None},
    ],
)
async def test_a_message_of_wrong_types_does_not_stop_the_connection(message: Any) -> None:
    simulated, endpoint = simulate_gemini()
    async with simulated.connect(GEMINI_PATH) as client:
        await client.event()
        client.say(message)
        client.say(message)
        while (await client.event(5))["type"] != "websocket.close" and len(endpoint.received) < 2:
            pass


async def test_a_message_of_wrong_types_reaches_the_endpoint_of_openai() -> None:
    simulated, endpoint = simulate_openai()
    async with simulated.openai() as client:
        for message in (
            {"type": "conversation.item.truncate", "item_id": {}},
            {"type": ["session.update"], "session": 3, "item": {"type": "function_call_output", "call_id": {}}},
            {"type": "response.create"},
        ):
            client.say(message)
        await client.heard_until("response.done")
    assert len(endpoint.received) == 3


def test_a_stall_ends_although_its_timer_is_a_moment_early() -> None:
    async def tick() -> None:
        for _ in range(10_000):
            await asyncio.sleep(0.013)

    async def stall_at(second: float) -> None:
        ticking = asyncio.create_task(tick())
        await asyncio.sleep(second)
        simulated, _ = simulate_gemini(faults("{audio_chunk: 2}", "{stall: {seconds: 0.6}}"))
        async with simulated.gemini() as client:
            client.say(text("hello"))
            await asyncio.wait_for(client.heard_until("turnComplete"), 5)
        ticking.cancel()

    for number in range(20):
        # A clock that only timers move has the rounding errors of their sums.
        with asyncio.Runner(loop_factory=SteadyLoop) as runner:
            runner.run(stall_at(number * 1.7 + 0.1))

"""How a realtime model answers and calls tools."""

import asyncio

from antiphon.models.live import (
    GenerationComplete,
    OutputAudio,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    Usage,
)
from antiphon.tools.call import ToolCall
from antiphon.transcript import AssistantMessage, ToolMessage, UserMessage
from tests.fakes.paced import results_of
from tests.fakes.realtime_server import RealtimeServer
from tests.fakes.realtime_talk import LONG, realtime_talk, script, sent_after
from tests.fakes.vendor_answers import Call, Say, Stall

# Answers.


async def test_given_words_are_asked_for_without_the_conversation_and_without_tools() -> None:
    server = RealtimeServer(lambda messages, asked: [Say(asked["instructions"].partition("\n\n")[2])])
    async with realtime_talk(server) as talk:
        await talk.listener.say("Your tea is ready.")
        (asked,) = server.events("response.create")
        assert asked["response"]["input"] == []
        assert asked["response"]["tool_choice"] == "none"
        assert talk.listener.text == "Your tea is ready."
        assert server.session.messages == [AssistantMessage("Your tea is ready.")]


async def test_messages_of_one_answer_are_separated() -> None:
    server = script([Say("Let me see."), Say("It's noon.")])
    async with realtime_talk(server) as talk:
        await talk.listener.ask("what time is it?")
        assert talk.listener.text == "Let me see. It's noon."


async def test_a_character_that_is_split_between_two_pieces_is_joined() -> None:
    server = script([Stall()])
    async with realtime_talk(server) as talk:
        talk.listener.respond("smile")
        await asyncio.sleep(0.01)
        assert server.session.response is not None
        for half in ("\\ud83d", "\\ude00 yes"):
            of = f'"response_id": "{server.session.response.id}", "item_id": "a", "delta": "{half}"'
            await server.session.send_raw(f'{{"type": "response.output_audio_transcript.delta", {of}}}')
        await asyncio.sleep(0.01)
        assert talk.listener.text == "😀 yes"


async def test_tokens_are_counted() -> None:
    server = RealtimeServer(usage=(120, 45))
    async with realtime_talk(server) as talk:
        turn = await talk.listener.ask("hello")
        assert talk.story == [Usage(turn, 120, 45), GenerationComplete(turn), TurnComplete(turn)]


async def test_words_come_with_the_audio_that_can_contain_them() -> None:
    server = script([Stall()])
    async with realtime_talk(server) as talk:
        turn = talk.listener.respond("count")
        await asyncio.sleep(0.01)
        session = server.session
        assert session.response is not None
        response = {"response_id": session.response.id, "item_id": "item_a"}
        # All words come before the audio, as they often do.
        await session.send("response.output_audio_transcript.delta", **response, delta=LONG)
        for _ in range(8):
            await session.send("response.output_audio.delta", **response, delta="AAAA" * 3_200)
        await asyncio.sleep(0.01)
        pieces = [event.text for event in talk.listener.of(turn) if isinstance(event, OutputAudio)]
        assert len(pieces) == 8
        assert pieces[0] == "one"
        assert LONG.startswith("".join(pieces))
        assert 0 < len("".join(pieces)) < len(LONG)


# Tools.


TWO_CALLS = [Call("get_time", {"tz": "UTC"}, "call_aaaaaaaaa"), Call("get_time", {"tz": "JST"}, "call_bbbbbbbbb")]


async def test_two_calls_are_one_event_and_their_results_one_request() -> None:
    server = script([Say("Let me see."), *TWO_CALLS], [Say("It's noon.")])
    async with realtime_talk(server) as talk:
        turn = await talk.listener.ask("what time is it there and here?")
        (calls,) = talk.story
        assert isinstance(calls, ToolCalls)
        assert [(call.id, call.args) for call in calls.calls] == [
            ("call_aaaaaaaaa", {"tz": "UTC"}),
            ("call_bbbbbbbbb", {"tz": "JST"}),
        ]
        first, second = results_of(calls, {"time": "noon"})
        talk.model.send_tool_results(turn, [first])
        await talk.listener.settle()
        assert len(server.events("response.create")) == 1
        talk.model.send_tool_results(turn, [second])
        await talk.listener.settle()
        outputs = [event["item"] for event in server.events("conversation.item.create")[-2:]]
        assert outputs[0] == {"type": "function_call_output", "call_id": "call_aaaaaaaaa", "output": '{"time":"noon"}'}
        assert len(server.events("response.create")) == 2
        assert talk.story == [calls, GenerationComplete(turn), TurnComplete(turn)]
        assert server.errors == []


async def test_half_a_character_in_a_result_is_replaced() -> None:
    server = script([Call("read_page")], [Say("Fine.")])
    async with realtime_talk(server) as talk:
        turn = await talk.listener.ask("read it")
        talk.model.send_tool_results(turn, results_of(talk.listener.calls, {"page": "\ud83d!"}))
        await talk.listener.ask("\ud83d?")
        outputs = [event["item"] for event in server.events("conversation.item.create")[-2:]]
        assert outputs[0]["output"] == '{"page":"\ufffd!"}'
        assert outputs[1]["content"][0]["text"] == "\ufffd?"


async def test_a_call_of_a_cancelled_response_is_neither_run_nor_remembered() -> None:
    server = script([Call("get_time"), Stall()], [Say("Fine.")])
    async with realtime_talk(server) as talk:
        first = talk.listener.respond("what time is it?")
        await asyncio.sleep(0.5)
        second = await talk.listener.ask("never mind")
        assert talk.story == [TurnComplete(first), GenerationComplete(second), TurnComplete(second)]
        assert not any(isinstance(message, ToolMessage) for message in server.prompts[-1])
        assert server.prompts[-1] == [UserMessage("what time is it?"), UserMessage("never mind")]
        assert server.errors == []


async def test_a_call_that_was_cut_off_is_not_run() -> None:
    server = script([Call("get_time", {"tz": "UTC"})])
    async with realtime_talk(server) as talk:
        turn = talk.listener.respond("what time is it?")
        await asyncio.sleep(0.05)
        await talk.server.session.response.cancel("client_cancelled")  # type: ignore[union-attr]
        await talk.listener.settle()
        assert talk.story == [TurnComplete(turn)]


async def test_arguments_that_are_not_json_are_left_to_the_gate() -> None:
    server = script([Call("get_time", "{tz: UTC")])
    async with realtime_talk(server) as talk:
        await talk.listener.ask("what time is it?")
        assert talk.listener.calls.calls[0].args == "{tz: UTC"


async def test_results_of_a_dropped_answer_complete_its_calls_without_an_answer() -> None:
    server = script([Call("book_table")], [Say("Fine.")])
    async with realtime_talk(server) as talk:
        first = await talk.listener.ask("book a table")
        talk.listener.interrupt("")
        talk.model.send_tool_results(first, results_of(talk.listener.calls, "booked"))
        await talk.listener.settle()
        assert len(server.events("response.create")) == 1
        await talk.listener.ask("hello")
        known = [UserMessage, AssistantMessage, ToolMessage, UserMessage]
        assert [type(message) for message in server.prompts[-1]] == known
        assert server.errors == []


async def test_results_of_calls_that_the_model_did_not_make_are_told_as_calls_and_results() -> None:
    server = script([Say("Done.")])
    async with realtime_talk(server) as talk:
        ran = [ToolAnswer(ToolCall(None, "book_table", {"at": 8}), {"booked": True})]
        await talk.listener.ask("yes", ran=ran)
        call, result = (event["item"] for event in server.events("conversation.item.create")[1:])
        assert (call["name"], call["arguments"]) == ("book_table", '{"at":8}')
        assert (result["call_id"], result["output"]) == (call["call_id"], '{"booked":true}')
        assert sent_after(server, "session.update") == [*["conversation.item.create"] * 3, "response.create"]

"""How a realtime model hears the user, also over its own answer."""

import asyncio
from typing import Any

import pytest

from antiphon.models.live import (
    GenerationComplete,
    InputTranscript,
    Interrupted,
    TurnComplete,
    TurnStarted,
)
from antiphon.transcript import AssistantMessage, ToolMessage
from tests.fakes.paced import results_of
from tests.fakes.realtime_server import WORD_MS, RealtimeServer
from tests.fakes.realtime_talk import LONG, realtime_talk, script, sent_after
from tests.fakes.vendor_answers import Call, Say

# Speech over the answer.


async def test_speech_over_the_answer_interrupts_it_and_is_answered() -> None:
    server = script([Say(LONG)], [Say("Fine.")])
    async with realtime_talk(server) as talk:
        first = talk.listener.respond("count")
        await asyncio.sleep(0.55)
        talk.hear(playing=True)
        talk.hear(1_000, loud=False)
        await talk.listener.settle()
        second = talk.listener.turn
        assert [event for event in talk.story if not isinstance(event, InputTranscript)] == [
            Interrupted(first),
            TurnComplete(first),
            TurnStarted(second),
            GenerationComplete(second),
            TurnComplete(second),
        ]
        # The server cancels by itself.
        assert server.events("response.cancel") == []
        assert server.errors == []


async def test_a_question_that_crosses_the_beginning_of_speech_is_cancelled() -> None:
    server = script([Say(LONG)], [Say("Fine.")])
    async with realtime_talk(server) as talk:
        talk.hear()
        turn = talk.listener.respond("count")
        await asyncio.sleep(0.5)
        assert talk.story == [Interrupted(turn), TurnComplete(turn)]
        assert len(server.events("response.cancel")) == 1
        talk.hear(1_000, loud=False)
        await asyncio.sleep(0.5)
        assert talk.listener.text == "Fine."
        assert server.errors == []


@pytest.mark.parametrize(
    ("heard", "end_ms"), [("one two three", 3 * WORD_MS), ("one", WORD_MS), (LONG, None), (None, None)]
)
async def test_an_answer_is_truncated_at_what_was_heard(heard: str | None, end_ms: int | None) -> None:
    server = script([Say(LONG)], [Say("Fine.")])
    async with realtime_talk(server, answers=False) as talk:
        await talk.listener.ask("count")
        talk.listener.interrupt(heard)
        await talk.listener.ask("how are you?")
        truncated = [event["audio_end_ms"] for event in server.events("conversation.item.truncate")]
        assert truncated == ([] if end_ms is None else [end_ms])
        assert server.prompts[-1][1] == AssistantMessage(LONG if end_ms is None else heard or "")
        assert server.errors == []


async def test_an_answer_in_progress_is_truncated_when_its_response_is_done() -> None:
    server = script([Say(LONG)], [Say("Fine.")])
    async with realtime_talk(server, answers=False) as talk:
        talk.listener.respond("count")
        await asyncio.sleep(0.55)
        talk.listener.interrupt("one two")
        await talk.listener.ask("how are you?")
        wanted = ["response.cancel", "conversation.item.create", "conversation.item.truncate", "response.create"]
        assert sent_after(server, "response.create") == wanted
        assert server.prompts[-1][1] == AssistantMessage("one two")
        assert server.errors == []


async def test_no_more_is_kept_than_the_audio_that_has_come() -> None:
    server = script([Say(LONG)], [Say("Fine.")])
    async with realtime_talk(server, answers=False) as talk:
        talk.listener.respond("count")
        await asyncio.sleep(0.25)
        talk.listener.interrupt(f"{LONG} {LONG}")
        await talk.listener.ask("how are you?")
        assert server.prompts[-1][1] == AssistantMessage("one two")
        assert server.errors == []


async def test_messages_after_the_one_that_was_heard_last_are_deleted() -> None:
    server = script([Say("one two three"), Say("four five six"), Say("seven eight")], [Say("Fine.")])
    async with realtime_talk(server, answers=False) as talk:
        await talk.listener.ask("count")
        talk.listener.interrupt("one two three four")
        await talk.listener.ask("how are you?")
        answers = [message.text for message in server.prompts[-1] if isinstance(message, AssistantMessage)]
        assert answers == ["one two three", "four"]
        assert server.errors == []


async def test_speech_while_tools_run_is_answered_instead_and_the_results_are_known_later() -> None:
    server = script([Call("book_table")], [Say("Fine.")], [Say("It is booked.")])
    async with realtime_talk(server) as talk:
        first = await talk.listener.ask("book a table")
        await talk.speak()
        second = talk.listener.turn
        assert [event for event in talk.story[1:] if not isinstance(event, InputTranscript)] == [
            Interrupted(first),
            TurnComplete(first),
            TurnStarted(second),
            GenerationComplete(second),
            TurnComplete(second),
        ]
        talk.model.send_tool_results(first, results_of(talk.listener.calls, "booked"))
        await talk.listener.ask("is it booked?")
        assert ToolMessage("call_0123456789", "", "booked") in server.prompts[-1]
        assert server.errors == []


async def test_speech_over_an_answer_that_is_being_played_interrupts_it() -> None:
    server = script([Say("Hello there.")], [Say("Fine.")])
    async with realtime_talk(server, answers=False) as talk:
        turn = await talk.listener.ask("hello")
        talk.hear(playing=True)
        await talk.listener.settle()
        assert talk.story == [GenerationComplete(turn), TurnComplete(turn), Interrupted(turn)]


async def test_speech_over_an_answer_of_another_connection_interrupts_it() -> None:
    async with realtime_talk(RealtimeServer(), answers=False) as talk:
        talk.hear(playing=True)
        await talk.listener.settle()
        assert talk.story == [Interrupted(None)]


async def test_speech_while_nothing_is_played_interrupts_nothing() -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        await talk.listener.ask("hello")
        await talk.speak()
        assert Interrupted not in talk.listener.kinds


# The user's speech.


async def test_the_end_of_the_audio_is_committed_and_answered_under_the_sessions_turn() -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        talk.hear()
        await asyncio.sleep(0.1)
        talk.model.end_audio("mine")
        await talk.listener.settle()
        assert talk.story == [
            TurnStarted("mine"),
            InputTranscript("mine", "hello", is_final=True),
            GenerationComplete("mine"),
            TurnComplete("mine"),
        ]
        assert sent_after(server, "session.update") == ["input_audio_buffer.commit", "response.create"]
        assert server.errors == []


async def test_silence_is_not_answered() -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        talk.hear(2_000, loud=False)
        talk.model.end_audio("mine")
        await talk.listener.settle()
        assert talk.story == [TurnComplete("mine")]
        assert sent_after(server, "session.update") == ["input_audio_buffer.clear"]


async def test_an_end_of_the_audio_that_the_server_has_noticed_itself_is_one_turn() -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        talk.hear()
        talk.hear(480, loud=False)
        await asyncio.sleep(0.1)
        # The last of the silence, and the end, reach the server together.
        talk.hear(60, loud=False)
        talk.model.end_audio("mine")
        await talk.listener.settle()
        assert [error["code"] for error in server.errors] == ["input_audio_buffer_commit_empty"]
        assert [type(event) for event in talk.story].count(TurnStarted) == 1
        assert talk.story[0] == TurnStarted("mine")
        assert talk.story.count(TurnComplete("mine")) == 1
        assert talk.listener.text


@pytest.mark.parametrize("loud", [True, False])
async def test_a_turn_that_is_interrupted_before_the_server_has_taken_it_is_not_answered(loud: bool) -> None:
    server = RealtimeServer(transcript="never")
    async with realtime_talk(server) as talk:
        talk.hear(loud=loud)
        await asyncio.sleep(0.1)
        talk.model.end_audio("mine")
        talk.model.interrupt("mine", "")
        await talk.listener.settle()
        assert talk.story == [TurnComplete("mine")]
        assert server.events("response.create") == []
        await talk.listener.ask("hello")
        assert talk.listener.text
        assert server.errors == []


async def test_a_turn_that_the_server_ends_as_it_is_interrupted_is_not_answered() -> None:
    server = RealtimeServer(transcript="never")
    async with realtime_talk(server) as talk:
        talk.hear()
        talk.hear(480, loud=False)
        await asyncio.sleep(0.1)
        talk.hear(60, loud=False)
        talk.model.end_audio("mine")
        talk.model.interrupt("mine", "")
        await talk.listener.settle()
        assert talk.story == [TurnComplete("mine")]
        assert talk.listener.text == ""


async def test_the_audio_may_be_ended_twice() -> None:
    server = RealtimeServer(transcript="never")
    async with realtime_talk(server) as talk:
        talk.hear()
        await asyncio.sleep(0.1)
        talk.model.end_audio("first")
        talk.model.end_audio("second")
        await talk.listener.settle()
        assert next(event for event in talk.story if isinstance(event, TurnComplete)) == TurnComplete("first")
        assert talk.story.count(TurnComplete("first")) == talk.story.count(TurnComplete("second")) == 1


async def test_a_failed_transcription_leaves_the_turn_without_words() -> None:
    server = RealtimeServer(transcript="failed")
    async with realtime_talk(server) as talk:
        await talk.speak()
        assert InputTranscript not in talk.listener.kinds
        assert GenerationComplete in talk.listener.kinds


async def test_speech_that_nobody_waits_for_is_not_answered() -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        take = talk.listener.take

        def refuse_speech(event: Any) -> None:
            take(event)
            if isinstance(event, TurnStarted):
                talk.model.interrupt(event.turn, "")

        talk.listener.take = refuse_speech  # type: ignore[method-assign]
        await talk.speak()
        assert [type(event) for event in talk.story if not isinstance(event, InputTranscript)] == [
            TurnStarted,
            TurnComplete,
        ]
        assert len(server.events("response.cancel")) == 1
        assert server.errors == []

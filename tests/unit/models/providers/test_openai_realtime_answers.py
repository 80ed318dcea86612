"""How a realtime model answers: one response at a time, tools, interruptions, and answers that fail."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from antiphon.models.base import FailureKind
from antiphon.models.live import (
    Closed,
    GenerationComplete,
    InputTranscript,
    Interrupted,
    OutputAudio,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnFailed,
    TurnStarted,
    Usage,
)
from antiphon.models.providers.openai_realtime import ANSWER_WITHIN_S
from antiphon.models.providers.realtime_responses import RELEASE_S
from antiphon.tools.call import ToolCall
from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage
from tests.fakes.paced import results_of
from tests.fakes.realtime_server import WORD_MS, RealtimeServer, Refused
from tests.fakes.realtime_talk import realtime_talk
from tests.fakes.vendor_answers import Call, End, Output, Say, Stall

LONG = "one two three four five six seven eight nine ten"


def script(*answers: Sequence[Output]) -> "RealtimeServer":
    """A server that gives these answers, one after the other."""
    left = list(answers)
    return RealtimeServer(lambda messages, asked: left.pop(0))


def sent_after(server: RealtimeServer, kind: str) -> list[str]:
    """The types of the events that the client has sent after the first of this type."""
    return server.kinds[server.kinds.index(kind) + 1 :]


# One response at a time.


@pytest.mark.parametrize("after_s", [0.0, 0.001, 0.05, 0.15, 0.35])
async def test_a_second_question_waits_until_the_first_response_is_done(after_s: float) -> None:
    server = script([Say(LONG)], [Say("Fine.")])
    async with realtime_talk(server) as talk:
        first = talk.listener.respond("count")
        await asyncio.sleep(after_s)
        second = await talk.listener.ask("stop, how are you?")
        assert server.errors == []
        assert talk.story == [TurnComplete(first), GenerationComplete(second), TurnComplete(second)]
        assert talk.listener.of(second)
        assert talk.listener.text.endswith("Fine.")


async def test_a_question_that_was_replaced_before_it_was_asked_is_never_asked() -> None:
    server = script([Say(LONG)], [Say("Fine.")])
    async with realtime_talk(server) as talk:
        talk.listener.respond("count")
        await asyncio.sleep(0.15)
        for _ in range(5):
            talk.listener.respond("and?")
        await talk.listener.settle()
        assert len(server.events("response.create")) == 2
        assert len(server.events("response.cancel")) == 1
        assert server.errors == []


async def test_a_response_is_cancelled_only_while_it_is_active() -> None:
    server = script([Say("Hello.")], [Say("Fine.")])
    async with realtime_talk(server) as talk:
        await talk.listener.ask("hello")
        talk.listener.interrupt("Hello.")
        talk.listener.interrupt(None)
        await talk.listener.ask("how are you?")
        assert server.events("response.cancel") == []
        assert server.errors == []


async def test_speech_and_a_typed_question_at_the_same_moment_are_both_answered_without_an_error() -> None:
    server = RealtimeServer(hears=["hello"])
    async with realtime_talk(server) as talk:
        talk.hear()
        talk.hear(480, loud=False)
        await asyncio.sleep(0.01)
        talk.hear(100, loud=False)
        talk.listener.respond("hello?")
        await talk.listener.settle()
        assert [type(message) for message in server.session.messages].count(UserMessage) == 2
        assert [type(event) for event in talk.story].count(GenerationComplete) >= 1
        assert not any(isinstance(event, TurnFailed) for event in talk.events)


async def test_a_response_that_the_server_starts_at_the_same_moment_is_cancelled_and_waited_for() -> None:
    server = script([Say("Hello.")], [Say("Not wanted.")], [Say("Fine.")])
    async with realtime_talk(server) as talk:
        await talk.listener.ask("hello")
        turn = talk.listener.respond("how are you?")
        await server.session.respond({})
        await talk.listener.settle()
        assert [error["code"] for error in server.errors] == ["conversation_already_has_active_response"]
        assert talk.listener.of(turn)[-2:] == [GenerationComplete(turn), TurnComplete(turn)]
        assert talk.listener.text == "Hello.Fine."


@pytest.mark.parametrize("tells_which", [True, False])
async def test_a_request_that_is_refused_because_a_response_is_active_is_repeated(tells_which: bool) -> None:
    server = script([Say("Fine.")])
    async with realtime_talk(server) as talk:
        session, respond = server.session, server.session.respond
        active = Refused("conversation_already_has_active_response", "Wait until the response is finished.")

        async def refuse(asked: dict[str, Any]) -> None:
            session.respond = respond  # type: ignore[method-assign]
            await session.refuse(active, server.received[-1]["event_id"] if tells_which else None)

        session.respond = refuse  # type: ignore[method-assign]
        turn = talk.listener.respond("how are you?")
        await asyncio.sleep(1)
        assert talk.story == []
        await session.send("response.done", response={"id": "resp_unknown", "status": "completed"})
        await asyncio.sleep(1)
        assert talk.story == [GenerationComplete(turn), TurnComplete(turn)]
        assert talk.listener.text == "Fine."


async def test_a_response_that_is_never_done_does_not_block_the_next_question() -> None:
    server = script([Stall()], [Say("Fine.")])
    async with realtime_talk(server) as talk:
        first = talk.listener.respond("hello")
        await asyncio.sleep(0.1)
        # The server forgets the response, and never says so.
        assert server.session.response is not None
        assert server.session.response.task is not None
        server.session.response.task.cancel()
        server.session.response = None
        second = talk.listener.respond("are you there?")
        await asyncio.sleep(RELEASE_S + 5)
        assert talk.story == [TurnComplete(first), GenerationComplete(second), TurnComplete(second)]


async def test_a_server_that_does_not_return_metadata_is_understood() -> None:
    server = RealtimeServer(echoes_metadata=False)
    async with realtime_talk(server) as talk:
        first = talk.listener.respond("hello")
        second = await talk.listener.ask("hello?")
        await talk.speak()
        (spoken,) = [event.turn for event in talk.events if isinstance(event, TurnStarted)]
        assert talk.listener.of(first) == [TurnComplete(first)]
        for turn in (second, spoken):
            assert talk.listener.of(turn)[-2:] == [GenerationComplete(turn), TurnComplete(turn)]
        assert server.errors == []


async def test_a_second_response_at_once_is_cancelled_and_not_heard() -> None:
    server = script([Say(LONG)])
    async with realtime_talk(server) as talk:
        turn = talk.listener.respond("count")
        await asyncio.sleep(0.15)
        await server.session.send("response.created", response={"id": "resp_other", "status": "in_progress"})
        part = {"response_id": "resp_other", "item_id": "item_other", "delta": "nonsense"}
        await server.session.send("response.output_audio_transcript.delta", **part)
        await server.session.send("response.done", response={"id": "resp_other", "status": "completed"})
        await talk.listener.settle()
        assert talk.listener.text == LONG
        assert talk.story == [GenerationComplete(turn), TurnComplete(turn)]
        assert server.events("response.cancel")[0]["response_id"] == "resp_other"


async def test_an_answer_that_nobody_asked_for_is_a_turn_of_its_own() -> None:
    server = script([Say("Are you still there?")])
    async with realtime_talk(server) as talk:
        await server.session.respond({})
        await talk.listener.settle()
        (turn,) = [event.turn for event in talk.events if isinstance(event, TurnStarted)]
        assert talk.story == [TurnStarted(turn), GenerationComplete(turn), TurnComplete(turn)]
        assert talk.listener.text == "Are you still there?"


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


# Answers that fail.


def failed(code: str, message: str) -> list[Output]:
    return [End("failed", {"type": "failed", "error": {"type": "x", "code": code, "message": message}})]


@pytest.mark.parametrize(
    ("answer", "words", "kind"),
    [
        (failed("server_error", "Oops."), "had an error: Oops.", FailureKind.SERVER_ERROR),
        (failed("model_not_found", "No such model."), "was not found at", FailureKind.REFUSED),
        (
            [End("incomplete", {"type": "incomplete", "reason": "max_output_tokens"})],
            "was cut off, because it became too long",
            FailureKind.TOO_LONG,
        ),
        (
            [Say("Well"), End("incomplete", {"type": "incomplete", "reason": "content_filter"})],
            "content filter",
            FailureKind.REFUSED,
        ),
        ([End("failed", {})], "could not finish its answer", FailureKind.SERVER_ERROR),
        ([], "said nothing", FailureKind.EMPTY),
    ],
)
async def test_a_failed_response_is_explained(answer: list[Output], words: str, kind: FailureKind) -> None:
    server = script(answer, [Say("Fine.")])
    async with realtime_talk(server) as talk:
        turn = await talk.listener.ask("hello")
        failure, complete = talk.story
        assert isinstance(failure, TurnFailed)
        assert words in failure.message
        assert failure.kind is kind
        assert complete == TurnComplete(turn)
        await talk.listener.ask("how are you?")
        assert talk.listener.text.endswith("Fine.")


async def test_a_rate_limit_says_when_to_try_again() -> None:
    server = script(failed("rate_limit_exceeded", "Rate limit reached. Please try again in 850ms."))
    async with realtime_talk(server) as talk:
        await talk.listener.ask("hello")
        failure = talk.story[0]
        assert isinstance(failure, TurnFailed)
        assert failure.rate_limited
        assert failure.retry_after_s == pytest.approx(0.85)


async def test_a_rate_limit_that_does_not_say_it_lasts_until_the_limits_are_reset() -> None:
    server = script(failed("rate_limit_exceeded", "Rate limit reached."))
    async with realtime_talk(server) as talk:
        limits = [{"name": "tokens", "limit": 1, "remaining": 0, "reset_seconds": 7.5}]
        await server.session.send("rate_limits.updated", rate_limits=limits)
        await talk.listener.ask("hello")
        failure = talk.story[0]
        assert isinstance(failure, TurnFailed)
        assert failure.retry_after_s == 7.5


async def test_a_refused_request_fails_the_turn_and_the_session_lives() -> None:
    server = script([Say("Fine.")])

    def reply(messages: Sequence[Message], asked: dict[str, Any]) -> Sequence[Output]:
        if len(server.prompts) == 1:
            raise Refused("invalid_value", "Invalid value.")
        return [Say("Fine.")]

    server.reply = reply
    async with realtime_talk(server) as talk:
        first = await talk.listener.ask("hello")
        assert [type(event) for event in talk.story] == [TurnFailed, TurnComplete]
        assert talk.listener.of(first) == talk.story
        await talk.listener.ask("hello?")
        assert talk.listener.text == "Fine."


async def test_a_model_that_never_answers_fails_the_turn_and_the_session_lives() -> None:
    server = script([Stall()], [Say("Fine.")])
    async with realtime_talk(server) as talk:
        turn = talk.listener.respond("hello")
        await asyncio.sleep(ANSWER_WITHIN_S + 1)
        failure, complete = talk.story
        assert isinstance(failure, TurnFailed)
        assert "did not answer within 30 seconds" in failure.message
        assert complete == TurnComplete(turn)
        await talk.listener.ask("are you there?")
        assert talk.listener.text == "Fine."
        assert server.errors == []


async def test_errors_about_other_events_change_nothing() -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        await server.session.refuse(Refused("response_cancel_not_active", "Cancellation failed."), "other")
        await server.session.refuse(Refused("item_not_found", "No such item."), "other")
        turn = await talk.listener.ask("hello")
        assert talk.story == [GenerationComplete(turn), TurnComplete(turn)]
        assert Closed not in talk.listener.kinds

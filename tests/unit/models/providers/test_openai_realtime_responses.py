"""How a realtime model is asked for responses, one at a time, and what becomes of those that fail."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from antiphon.models.base import FailureKind
from antiphon.models.live import (
    Closed,
    GenerationComplete,
    TurnComplete,
    TurnFailed,
    TurnStarted,
)
from antiphon.models.providers.openai_realtime import ANSWER_WITHIN_S
from antiphon.models.providers.realtime_responses import RELEASE_S
from antiphon.transcript import Message, UserMessage
from tests.fakes.realtime_server import RealtimeServer, Refused
from tests.fakes.realtime_talk import LONG, realtime_talk, script
from tests.fakes.vendor_answers import End, Output, Say, Stall

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


async def test_a_response_that_the_server_does_not_create_is_asked_for() -> None:
    server = RealtimeServer(transcript="never")
    async with realtime_talk(server) as talk:
        server.session.detection["create_response"] = False
        talk.hear()
        talk.hear(1_000, loud=False)
        await asyncio.sleep(RELEASE_S + 2)
        turn = talk.listener.turn
        assert talk.story == [TurnStarted(turn), GenerationComplete(turn), TurnComplete(turn)]


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


async def test_an_error_about_another_event_does_not_fail_the_answer() -> None:
    server = script([Say("Fine.")])
    async with realtime_talk(server) as talk:
        talk.listener.respond("hello")
        for error in (Refused("invalid_value", "No."), Refused("response_cancel_not_active", "No.")):
            await server.session.refuse(error)
        await talk.listener.settle()
        assert not any(isinstance(event, TurnFailed) for event in talk.events)
        assert talk.listener.text == "Fine."


async def test_a_quota_that_is_used_up_fails_the_answer_that_is_awaited() -> None:
    server = script([Say("Fine.")])
    async with realtime_talk(server) as talk:
        respond = server.session.respond
        quota = Refused("insufficient_quota", "You exceeded your current quota.")
        server.session.respond = lambda asked: server.session.refuse(quota)  # type: ignore[method-assign]
        await talk.listener.ask("hello")
        failure = talk.story[0]
        assert isinstance(failure, TurnFailed)
        assert failure.rate_limited
        server.session.respond = respond  # type: ignore[method-assign]
        await talk.listener.ask("hello")
        assert talk.listener.text == "Fine."


async def test_errors_about_other_events_change_nothing() -> None:
    server = RealtimeServer()
    async with realtime_talk(server) as talk:
        await server.session.refuse(Refused("response_cancel_not_active", "Cancellation failed."), "other")
        await server.session.refuse(Refused("item_not_found", "No such item."), "other")
        turn = await talk.listener.ask("hello")
        assert talk.story == [GenerationComplete(turn), TurnComplete(turn)]
        assert Closed not in talk.listener.kinds

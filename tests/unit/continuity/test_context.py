"""What a new upstream session is told: everything that fits, or a summary and the newest turns."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from antiphon.continuity.context import (
    RESERVED_TOKENS,
    SUMMARY_S,
    UNKNOWN_CONTEXT_TOKENS,
    Carried,
    ContextPlanner,
    Summarize,
)
from antiphon.models.base import ModelError
from antiphon.models.live import LiveProfile
from antiphon.transcript import AssistantMessage, CallMade, Entry, Message, ToolMessage, Transcript, UserMessage

PROFILE = LiveProfile("model", hears=True, output_hz=0, needs_network=False, tool_schemas="openai_chat")


class RecordingSummarizer:
    """Answers with a fixed text, and keeps what it was given."""

    def __init__(self, *, takes_s: float = 0.0, fails: bool = False) -> None:
        self.given: list[Sequence[Message]] = []
        self._takes_s = takes_s
        self._fails = fails

    async def summarize(self, messages: Sequence[Message]) -> str:
        self.given.append(messages)
        await asyncio.sleep(self._takes_s)
        if self._fails:
            raise ModelError("The model cannot be reached.")
        return "a summary"


def make_transcript(turns: int) -> Transcript:
    transcript = Transcript()
    for n in range(1, turns + 1):
        transcript.set_user(f"t{n}", f"question {n}")
        transcript.set_answer(f"t{n}", f"answer {n}")
    return transcript


def make_planner(
    summarizer: RecordingSummarizer | None = None, *, summarize: Summarize = "always", tokens_each: int = 10
) -> ContextPlanner:
    return ContextPlanner(
        summarizer or RecordingSummarizer(),
        summarize=summarize,
        count=lambda message: tokens_each,
        most=lambda message: tokens_each * 3,
    )


async def plan(
    planner: ContextPlanner,
    transcript: Transcript,
    *,
    room: int | None = None,
    is_fallback: bool = False,
    before_turn: str | None = None,
    call_summary: str = "",
) -> Carried:
    profile = replace(PROFILE, context_tokens=None if room is None else max(2 * room, room + RESERVED_TOKENS))
    return await planner.plan(
        transcript, profile, is_fallback=is_fallback, before_turn=before_turn, call_summary=call_summary
    )


async def test_nothing_is_carried_from_an_empty_conversation() -> None:
    summarizer = RecordingSummarizer()
    for is_fallback in (True, False):
        assert await plan(make_planner(summarizer), Transcript(), is_fallback=is_fallback) == Carried()
    assert summarizer.given == []


async def test_everything_is_carried_if_it_fits() -> None:
    assert await plan(make_planner(), make_transcript(5), room=100) == Carried()


async def test_what_does_not_fit_is_summarized() -> None:
    summarizer, transcript = RecordingSummarizer(), make_transcript(5)
    # This is room for two turns of 20 tokens each.
    assert await plan(make_planner(summarizer), transcript, room=45) == Carried("a summary", "t4")
    assert summarizer.given == [list(transcript.before("t4"))]


async def test_the_newest_turn_is_carried_even_if_it_does_not_fit() -> None:
    assert await plan(make_planner(), make_transcript(3), room=5) == Carried("a summary", "t3")
    assert await plan(make_planner(), make_transcript(1), room=5) == Carried()


async def test_a_model_with_an_unknown_context_is_assumed_to_have_a_small_one() -> None:
    planner = make_planner(tokens_each=UNKNOWN_CONTEXT_TOKENS // 8)
    assert await plan(planner, make_transcript(2)) == Carried()
    assert await plan(planner, make_transcript(3)) == Carried("a summary", "t2")


async def test_a_small_context_has_room_for_the_newest_turn_alone() -> None:
    profile = replace(PROFILE, context_tokens=4_096)
    carried = await make_planner().plan(make_transcript(3), profile, is_fallback=False, before_turn=None)
    assert carried == Carried("a summary", "t3"), "the prompt takes up all of it"


async def test_a_fallback_always_gets_a_summary_and_four_messages() -> None:
    transcript = make_transcript(6)
    carried = await plan(make_planner(), transcript, room=500000, is_fallback=True)
    assert carried == Carried("a summary", "t5")
    assert transcript.since(carried.first_turn).messages == (
        UserMessage("question 5"),
        AssistantMessage("answer 5"),
        UserMessage("question 6"),
        AssistantMessage("answer 6"),
    )


async def test_a_fallback_with_little_room_gets_fewer_messages() -> None:
    carried = await plan(make_planner(), make_transcript(6), room=30, is_fallback=True)
    assert carried == Carried("a summary", "t6")


async def test_with_auto_a_fallback_gets_everything_that_fits() -> None:
    planner = make_planner(summarize="auto")
    assert await plan(planner, make_transcript(6), room=500, is_fallback=True) == Carried()
    assert await plan(planner, make_transcript(6), room=50, is_fallback=True) == Carried("a summary", "t5")


async def test_the_turn_under_way_is_not_counted() -> None:
    transcript = make_transcript(4)
    transcript.set_user("t5", "question 5")
    assert await plan(make_planner(), transcript, is_fallback=True, before_turn="t5") == Carried("a summary", "t3")


async def test_a_turn_that_the_assistant_began_goes_along_with_the_two_newest_of_the_user() -> None:
    transcript = make_transcript(3)
    transcript.set_answer("reminder", "The tea is ready.")
    transcript.set_user("t4", "thanks")
    assert await plan(make_planner(), transcript, is_fallback=True) == Carried("a summary", "t3")


async def test_blank_turns_do_not_count() -> None:
    transcript = make_transcript(3)
    transcript.set_user("t4", "")
    assert await plan(make_planner(), transcript, is_fallback=True) == Carried("a summary", "t2")


async def test_a_call_and_its_result_stay_together() -> None:
    transcript = make_transcript(1)
    transcript.set_user("t2", "set a timer")
    transcript.add(Entry("t2", AssistantMessage("", (CallMade("c1", "set_timer", {}),))))
    transcript.add(Entry("t2", ToolMessage("c1", "set_timer", {"ok": True})))
    transcript.set_answer("t2", "It is set.")
    carried = await plan(make_planner(), transcript, room=50)
    assert carried.first_turn == "t2"
    assert transcript.since("t2").messages == transcript.messages[2:]


@pytest.mark.parametrize("summarizer", [RecordingSummarizer(fails=True), RecordingSummarizer(takes_s=60.0)])
async def test_without_a_summary_the_newest_turns_are_carried_alone(summarizer: RecordingSummarizer) -> None:
    started_s = asyncio.get_running_loop().time()
    assert await plan(make_planner(summarizer), make_transcript(5), is_fallback=True) == Carried("", "t4")
    assert asyncio.get_running_loop().time() - started_s <= SUMMARY_S + 0.1


async def test_the_summary_of_a_call_is_used_instead_of_a_new_one() -> None:
    summarizer = RecordingSummarizer()
    planner, transcript = make_planner(summarizer), make_transcript(5)
    carried = await plan(planner, transcript, is_fallback=True, call_summary="of the call")
    assert carried == Carried("of the call", "t4")
    assert await plan(planner, transcript, room=500, call_summary="of the call") == Carried("of the call")
    assert summarizer.given == []

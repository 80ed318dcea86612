"""How a connection is followed by the next one of its upstream session: handles, and ends that are announced."""

import asyncio

import pytest

from antiphon.continuity.connecting import CONTINUE_NOTE
from antiphon.continuity.model import GUARD_S
from antiphon.continuity.upstream import UpstreamHandle
from antiphon.models.live import (
    Closed,
    CloseKind,
    GoAway,
    ToolAnswer,
    TurnStarted,
    UpstreamError,
)
from antiphon.tools.call import ToolCall
from tests.fakes.continuous import BEGUN, HELLO, HISTORY, LONG, RESUMING, Provider, ask, ends, talking
from tests.fakes.scripted_live import (
    Call,
    GoAwayIn,
    HangUp,
    Hear,
    Pause,
    Resumable,
    Say,
    ScriptedLive,
    Stall,
)

# Handles.


async def test_the_newest_handle_is_used_by_the_next_connection() -> None:
    provider = Provider([Resumable("h1"), Resumable("h2"), Resumable(None), HangUp()], profile=RESUMING)
    async with talking(provider) as talk:
        await asyncio.sleep(1)
        assert [model.resumed_with for model in provider.made] == [None, "h2"]
        assert talk.model.handle == UpstreamHandle("h2", 3, "live")


async def test_a_connection_that_is_resumed_is_given_no_history_to_plan() -> None:
    provider = Provider([Resumable("h1"), HangUp()], profile=RESUMING)
    async with talking(provider) as talk:
        await asyncio.sleep(1)
        assert len(talk.context.plans) == 1
        assert talk.context.notes == ["", CONTINUE_NOTE]


@pytest.mark.parametrize(("level", "tried"), [(3, "h0"), (2, "h0"), (1, None)])
async def test_a_handle_is_tried_on_models_of_its_class(level: int, tried: str | None) -> None:
    provider = Provider(profile=RESUMING)
    async with talking(provider, handle=UpstreamHandle("h0", level, "live")) as talk:
        assert provider.last.resumed_with == tried
        # For a handle of the fallback, the summary of the latest call is the context.
        assert talk.context.plans == ([] if tried else [("live", False, True)])


async def test_a_dead_handle_is_replaced_by_the_conversation_and_one_notice() -> None:
    dead = UpstreamError("No such session.", CloseKind.DEAD_HANDLE)
    provider = Provider(dead, [Hear("hi"), HELLO], profile=RESUMING)
    async with talking(provider, history=HISTORY, handle=UpstreamHandle("h0", 3, "live")) as talk:
        assert talk.notices == ["could_not_resume"]
        assert provider.last.resumed_with is None
        assert provider.last.context is not None
        assert list(provider.last.context.history) == list(HISTORY)
        assert talk.energy == []
        assert talk.model.handle is None


async def test_a_handle_that_dies_with_the_connection_is_not_used_again() -> None:
    provider = Provider([Resumable("h1"), HangUp(kind=CloseKind.DEAD_HANDLE)], profile=RESUMING)
    async with talking(provider) as talk:
        await asyncio.sleep(1)
        assert [model.resumed_with for model in provider.made] == [None, None]
        assert talk.notices == ["could_not_resume"]


# The announced end.


async def test_a_connection_that_is_about_to_end_is_replaced_at_once_if_nobody_speaks() -> None:
    provider = Provider([Resumable("h1"), GoAwayIn(5_000)], profile=RESUMING)
    async with talking(provider) as talk:
        await asyncio.sleep(0.1)
        assert [model.resumed_with for model in provider.made] == [None, "h1"]
        assert provider.made[0].closed
        assert talk.notices == []
        assert talk.counters.go_aways == 1


async def test_an_answer_is_finished_before_the_connection_is_replaced() -> None:
    script = [Pause(0), Resumable("h1"), GoAwayIn(5_000), Say(LONG, audio_ms=8_000)]
    provider = Provider(script, profile=RESUMING)
    async with talking(provider) as talk:
        await ask(talk)
        assert (talk.text("t1"), talk.voiced("t1")) == (LONG, LONG)
        assert ends(talk, "t1") == (1, 0)
        assert len(provider.made) == 2
        assert provider.made[1].texts == []


async def test_an_answer_that_takes_too_long_goes_on_on_the_next_connection() -> None:
    begun = [Pause(0), Resumable("h1"), GoAwayIn(1_000), Say(BEGUN, goes_on=True, audio_ms=1_000), Stall()]
    provider = Provider(begun, [Say(LONG, audio_ms=3_800)], profile=RESUMING)
    async with talking(provider) as talk:
        begun_s = asyncio.get_running_loop().time()
        await ask(talk)
        assert provider.made_at_s[1] - begun_s == pytest.approx(1 - GUARD_S, abs=0.05)
        assert (talk.text("t1"), talk.voiced("t1")) == (LONG, LONG)
        assert ends(talk, "t1") == (1, 0)


async def test_an_end_that_is_announced_and_never_comes_is_not_waited_for() -> None:
    provider = Provider(profile=RESUMING)
    async with talking(provider) as talk:
        # The user speaks all the time, so that there is no boundary.
        await talk.speak(0.1)
        provider.last._emit(GoAway(60_000))
        begun_s = asyncio.get_running_loop().time()
        await talk.speak(61)
        assert len(provider.made) == 2
        assert provider.made_at_s[1] - begun_s == pytest.approx(60 - GUARD_S, abs=0.1)


async def test_the_user_may_finish_speaking_before_the_connection_is_replaced() -> None:
    provider = Provider([Resumable("h1")], profile=RESUMING)
    async with talking(provider) as talk:
        await talk.speak(0.1)
        provider.last._emit(GoAway(60_000))
        await talk.speak(2)
        assert len(provider.made) == 1
        await talk.speak(1.5, pcm=bytes(640))
        assert [model.resumed_with for model in provider.made] == [None, "h1"]


async def test_speech_over_the_replacement_is_given_to_the_next_connection() -> None:
    first = ScriptedLive([Resumable("h1"), Hear("hi", after_ms=99_000)], profile=RESUMING)
    second = ScriptedLive([Hear("what time is it", after_ms=1_500), HELLO], profile=RESUMING, connect_s=0.5)
    provider = Provider(first, second, profile=RESUMING)
    async with talking(provider) as talk:
        await talk.speak(1)
        first._hang_up(Closed("the time was over", CloseKind.GO_AWAY))
        await talk.speak(1)
        await asyncio.sleep(3)
        (started,) = talk.of(TurnStarted)
        assert talk.text(started.turn) == "Hello."
        assert second.audio_ms == pytest.approx(2_000, abs=50)


async def test_without_handles_the_successor_is_connected_first() -> None:
    first = ScriptedLive([GoAwayIn(5_000)])
    provider = Provider(first, ScriptedLive(connect_s=1))
    async with talking(provider):
        await asyncio.sleep(0.5)
        assert len(provider.made) == 2
        assert not first.closed
        await asyncio.sleep(1)
        assert first.closed


async def test_a_turn_that_begins_while_the_successor_is_connected_is_not_lost() -> None:
    first = ScriptedLive([GoAwayIn(20_000), Hear("hi"), HELLO, Hear("ho"), HELLO])
    provider = Provider(first, ScriptedLive([Hear("late"), HELLO], connect_s=1), [Hear("ho"), HELLO])
    async with talking(provider) as talk:
        await ask(talk, "t1", "hi", seconds=0.3)
        await asyncio.sleep(5)
        assert (talk.text("t1"), ends(talk, "t1")) == ("Hello.", (1, 0))
        # The successor did not know of the turn: another one was made, and is used.
        assert len(provider.made) == 3
        assert provider.made[1].closed
        await ask(talk, "t2", "ho", seconds=3)
        assert provider.last.texts == ["ho"]


async def test_a_tool_that_outlasts_its_connection_gives_its_result_to_the_next() -> None:
    call = ToolCall("call_0123456789", "set_light", {"on": True})
    first = [Pause(0), Resumable("h1"), GoAwayIn(1_000), Call(call.name, call.args, call.id)]
    provider = Provider(first, [Say("Done.")], profile=RESUMING)
    async with talking(provider) as talk:
        await ask(talk, text="light", seconds=3)
        assert len(provider.made) == 2
        assert provider.last.texts == []
        talk.model.send_tool_results("t1", [ToolAnswer(call, {"ok": True}, "Done.")])
        await asyncio.sleep(5)
        assert provider.last.texts == ["light"]
        assert [answer.call for answer in provider.last.results] == [call]
        assert (talk.text("t1"), ends(talk, "t1")) == ("Done.", (1, 0))

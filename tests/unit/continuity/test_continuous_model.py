"""A model that does not end: what a lost or ending connection leaves is answered by the next one, once."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from math import inf
from typing import Any

import pytest

from antiphon.continuity.connecting import CONTINUE_NOTE
from antiphon.continuity.connection import ConnectionState
from antiphon.continuity.events import ConnectFailed, Delayed, Opened
from antiphon.continuity.model import DELAY_S, MAX_LOSSES, MAX_WAIT_S, STALL_S
from antiphon.models.base import FailureKind, ModelError
from antiphon.models.live import (
    Closed,
    CloseKind,
    GenerationComplete,
    InputTranscript,
    Interrupted,
    SpeechStarted,
    ToolAnswer,
    ToolCalls,
    TurnFailed,
    TurnStarted,
)
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, UserMessage
from tests.fakes.continuous import BEGUN, HELLO, HISTORY, LONG, LOST, RESUMING, Provider, Talk, ask, ends, talking
from tests.fakes.scripted_live import (
    PROFILE,
    WAITING,
    Call,
    Cancel,
    HangUp,
    Hear,
    Pause,
    Resumable,
    Say,
    ScriptedLive,
    Stall,
)

# Lost connections.

AGAIN = pytest.mark.parametrize(
    ("answer", "audio_ms"), [(LONG, 3_800), (LONG[len(BEGUN) :], 2_800)], ids=["begins again", "goes on"]
)


@AGAIN
async def test_an_answer_that_was_cut_is_heard_whole(answer: str, audio_ms: int) -> None:
    cut = [Say(BEGUN, goes_on=True, audio_ms=1_000), HangUp()]
    provider = Provider(cut, [Say(answer, audio_ms=audio_ms)])
    async with talking(provider) as talk:
        await ask(talk, text="what time is it")
        assert (talk.text("t1"), talk.voiced("t1")) == (LONG, LONG)
        assert len(talk.pcm("t1")) / 2 / 22_050 == pytest.approx(3.8, abs=0.01)
        assert provider.last.texts == ["what time is it"]
        assert BEGUN.strip() in talk.context.notes[-1]
        assert ends(talk, "t1") == (1, 0)
        assert talk.notices == []


async def test_an_answer_that_was_cut_twice_is_heard_whole() -> None:
    half = "It is noon in Oslo, and the sun is shining. "
    provider = Provider(
        [Say(BEGUN, goes_on=True, audio_ms=1_000), HangUp()],
        [Say(half, goes_on=True, audio_ms=2_200), HangUp()],
        [Say(LONG, audio_ms=3_800)],
    )
    async with talking(provider) as talk:
        await ask(talk)
        assert (talk.text("t1"), talk.voiced("t1")) == (LONG, LONG)
        assert half.strip() in talk.context.notes[-1]


async def test_words_that_the_session_learns_late_are_not_asked_twice() -> None:
    native = Provider([Say(BEGUN, goes_on=True, audio_ms=1_000), HangUp(kind=CloseKind.QUOTA)])
    waiting = Provider([Say(LONG[len(BEGUN) :], audio_ms=2_800)], profile=WAITING)
    async with talking(native, waiting, Provider()) as talk:
        talk.model.respond("t1", "what time is it")
        await talk.until(lambda: bool(waiting.made and waiting.last.texts))
        # The session is at the transcript of the first model only now, and the model in use has to be asked.
        await ask(talk, text="what time is it")
        assert waiting.last.texts == ["what time is it"]
        assert talk.text("t1") == LONG
        assert ends(talk, "t1") == (1, 0)


async def test_words_of_the_session_that_were_cut_are_spoken_to_the_end() -> None:
    words = "Good morning, Ann. It is time to get up."
    first = ScriptedLive()
    provider = Provider(first)
    async with talking(provider) as talk:
        talk.model.say("t1", words)
        async with asyncio.timeout(5):
            await talk.until(lambda: bool(talk.voiced("t1")))
        cut = talk.voiced("t1")
        first._hang_up(Closed("gone"))
        await asyncio.sleep(5)
        assert 0 < len(cut) < len(words)
        assert (talk.text("t1"), talk.voiced("t1")) == (words, words)
        assert ends(talk, "t1") == (1, 0)


async def test_an_answer_that_was_generated_is_not_made_again() -> None:
    first = ScriptedLive([Pause(0), Stall()])
    provider = Provider(first)
    async with talking(provider) as talk:
        await ask(talk, seconds=1)
        first._emit(GenerationComplete("t1"))
        await asyncio.sleep(0.1)
        assert ends(talk, "t1") == (0, 0)
        first._hang_up(Closed("gone"))
        await asyncio.sleep(MAX_WAIT_S + 1)
        assert ends(talk, "t1") == (1, 0)
        assert provider.last.texts == []
        assert talk.of(Delayed) == []


async def test_text_typed_while_there_is_no_connection_is_answered() -> None:
    provider = Provider([HangUp()], ScriptedLive([HELLO], connect_s=3))
    async with talking(provider) as talk:
        await asyncio.sleep(0.5)
        await ask(talk)
        assert provider.last.texts == ["hi"]
        assert talk.text("t1") == "Hello."


async def test_a_turn_whose_words_are_not_known_is_heard_again() -> None:
    cut = [Hear("what time is it", transcript="never"), Pause(200), HangUp()]
    provider = Provider(cut, [Hear("what time is it", transcript="late"), HELLO])
    async with talking(provider) as talk:
        await talk.speak(1)
        await asyncio.sleep(5)
        (started,) = talk.of(TurnStarted)
        assert talk.text(started.turn) == "Hello."
        assert [event.text for event in talk.of(InputTranscript, started.turn) if event.is_final] == ["what time is it"]
        assert {event.turn for event in talk.of(InputTranscript)} == {started.turn}
        assert ends(talk, started.turn) == (1, 0)


class SpeechNoticing(ScriptedLive):
    """Tells at once that it hears somebody speak, perhaps over an answer."""

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        if not self.audio_ms:
            self._emit(SpeechStarted(self._next_turn))
            self._emit(Interrupted(None))
        super().send_audio(pcm, playing=playing)


async def test_a_question_that_is_heard_again_does_not_interrupt_its_answer() -> None:
    cut = [Hear("what time is it", transcript="never"), Say(BEGUN, goes_on=True, audio_ms=1_000), HangUp()]
    provider = Provider(cut, SpeechNoticing([Hear("what time is it"), Say(LONG, audio_ms=3_800)]))
    async with talking(provider) as talk:
        await talk.speak(1)
        await asyncio.sleep(5)
        (started,) = talk.of(TurnStarted)
        assert talk.of(SpeechStarted) + talk.of(Interrupted) == []
        assert (talk.text(started.turn), talk.voiced(started.turn)) == (LONG, LONG)
        assert ends(talk, started.turn) == (1, 0)


async def test_a_turn_that_the_next_connection_does_not_hear_is_given_back_to_the_user() -> None:
    provider = Provider([Hear("hi", transcript="never"), Pause(200), HangUp()])
    async with talking(provider) as talk:
        await talk.speak(1)
        await asyncio.sleep(STALL_S + 2)
        (started,) = talk.of(TurnStarted)
        (failed,) = talk.of(TurnFailed)
        assert "say that again" in failed.message
        assert ends(talk, started.turn) == (1, 1)


async def test_a_turn_that_the_session_has_ended_is_heard_again_under_its_id() -> None:
    cut = [Hear("hi", after_ms=9_000, transcript="never"), Pause(200), HangUp()]
    provider = Provider(cut, [Hear("hi", after_ms=9_000), HELLO])
    async with talking(provider) as talk:
        await talk.speak(1)
        talk.model.end_audio("t1")
        await asyncio.sleep(5)
        assert [event.turn for event in talk.of(TurnStarted)] == ["t1"]
        assert talk.text("t1") == "Hello."
        assert ends(talk, "t1") == (1, 0)


async def test_speech_during_the_gap_is_heard_after_the_turn_that_waits() -> None:
    second = ScriptedLive([HELLO, Hear("and now", after_ms=500, over=True), Say("One.")], connect_s=1)
    provider = Provider([Pause(100), HangUp()], second)
    async with talking(provider) as talk:
        talk.model.respond("t1", "hi")
        await asyncio.sleep(0.2)
        await talk.speak(0.6)
        await asyncio.sleep(5)
        assert second.texts == ["hi"]
        (started,) = talk.of(TurnStarted)
        assert talk.text(started.turn) == "One."


async def test_an_answered_turn_is_not_heard_again() -> None:
    first = ScriptedLive([Hear("hi", transcript="never"), HELLO])
    provider = Provider(first, [Hear("hi"), HELLO])
    async with talking(provider) as talk:
        await talk.speak(1)
        await talk.speak(4, pcm=bytes(640))
        first._hang_up(Closed("gone"))
        await asyncio.sleep(3)
        assert len(talk.of(TurnStarted)) == 1
        assert provider.last.audio_bytes == 0


async def test_an_answer_that_stops_in_the_middle_is_made_by_another_connection() -> None:
    provider = Provider([Say(BEGUN, goes_on=True, audio_ms=1_000), Stall()], [Say(LONG, audio_ms=3_800)])
    async with talking(provider) as talk:
        await ask(talk, seconds=STALL_S + 5)
        assert provider.made[0].closed
        assert (talk.text("t1"), ends(talk, "t1")) == (LONG, (1, 0))


async def test_a_turn_that_no_connection_finishes_is_given_up() -> None:
    scripts = [[Say(BEGUN, goes_on=True, audio_ms=1_000), Stall()] for _ in range(20)]
    provider = Provider(*scripts)
    async with talking(provider) as talk:
        await ask(talk, seconds=200)
        assert len(provider.made) == MAX_LOSSES + 2
        assert ends(talk, "t1") == (1, 1)
        assert talk.text("t1") == BEGUN


async def test_a_model_that_ends_every_connection_is_tried_less_and_less_often() -> None:
    provider = Provider(*[[HangUp()] for _ in range(100)])
    async with talking(provider) as talk:
        await asyncio.sleep(100)
        gaps = [after - before for before, after in pairwise(provider.made_at_s)]
        assert gaps[0] < 0.1
        assert max(gaps) == pytest.approx(15, rel=0.1)
        assert len(provider.made) < 20
        assert talk.energy == []


# Trying again.


async def test_the_time_between_attempts_doubles() -> None:
    provider = Provider(ScriptedLive([Pause(0)]), *[LOST] * 12)
    async with talking(provider) as talk:
        await asyncio.sleep(6)
        provider.made[0]._hang_up(Closed("gone"))
        await asyncio.sleep(90)
        times = provider.made_at_s[1:]
        gaps = [after - before for before, after in pairwise(times)]
        assert times[0] == pytest.approx(provider.made_at_s[0] + 6, abs=0.1)
        for gap, expected in zip(gaps, [0.3, 0.6, 1.2, 2.4, 4.8, 9.6, 15, 15], strict=False):
            assert gap == pytest.approx(expected, rel=0.101)
        assert len({round(gap / expected, 3) for gap, expected in zip(gaps, [0.3, 0.6, 1.2], strict=False)}) > 1
        assert talk.notices == ["reconnecting"]
        await asyncio.sleep(60)
        assert talk.notices == ["reconnecting", "reconnected"]


async def test_a_model_that_is_given_up_is_not_connected_again() -> None:
    provider = Provider([HangUp()], *[LOST] * 50)
    async with talking(provider) as talk:
        await asyncio.sleep(5)
        await talk.close()
        made = len(provider.made)
        await asyncio.sleep(60)
        assert len(provider.made) == made


async def test_closing_while_connecting_leaves_nothing() -> None:
    model = ScriptedLive(connect_s=inf)
    async with talking(Provider(model)) as talk:
        talk.model.respond("t1", "hi")
        await asyncio.sleep(1)
        await asyncio.wait_for(talk.close(), 1)
        assert model.closed
        assert talk.model.is_closed
        assert talk.posted == []


async def test_a_user_who_waits_is_told_so_once() -> None:
    provider = Provider([Pause(100), HangUp()], ScriptedLive([HELLO], connect_s=5))
    async with talking(provider) as talk:
        begun_s = asyncio.get_running_loop().time()
        await ask(talk)
        assert talk.of(Delayed) == [Delayed("t1")]
        at_s = talk.at_s[talk.posted.index(Delayed("t1"))] - begun_s
        assert at_s == pytest.approx(0.1 + DELAY_S, abs=0.05)
        assert talk.text("t1") == "Hello."


async def test_a_turn_does_not_wait_for_ever() -> None:
    provider = Provider([Pause(100), HangUp()], *[LOST] * 50)
    async with talking(provider) as talk:
        await ask(talk, seconds=MAX_WAIT_S + 1)
        (failed,) = talk.of(TurnFailed)
        assert failed.kind is FailureKind.UNREACHABLE
        assert ends(talk, "t1") == (1, 1)
        # It is still tried: the user may ask again.
        assert talk.model.state is not ConnectionState.LOST


# Interrupting.


async def test_a_turn_interrupted_during_the_gap_is_not_asked_again() -> None:
    provider = Provider([Say(BEGUN, goes_on=True), HangUp()], ScriptedLive([HELLO], connect_s=2))
    async with talking(provider) as talk:
        await ask(talk, seconds=1)
        talk.model.interrupt("t1", "It is noon")
        await asyncio.sleep(5)
        assert provider.last.texts == []
        assert ends(talk, "t1") == (1, 0)


async def test_a_request_during_the_gap_takes_the_place_of_the_one_before() -> None:
    provider = Provider([Say(BEGUN, goes_on=True), HangUp()], ScriptedLive([HELLO], connect_s=2))
    async with talking(provider) as talk:
        await ask(talk, seconds=1)
        await ask(talk, "t2", "ho")
        assert provider.last.texts == ["ho"]
        assert (ends(talk, "t1"), ends(talk, "t2")) == ((1, 0), (1, 0))


async def test_a_model_is_told_of_a_turn_that_ended_while_it_was_connected() -> None:
    cut = [Resumable("h1"), Say(BEGUN, goes_on=True), HangUp()]
    provider = Provider([Pause(0), *cut], ScriptedLive(profile=RESUMING, connect_s=2), profile=RESUMING)
    async with talking(provider) as talk:
        await ask(talk, seconds=1)
        talk.model.interrupt("t1", "It is noon")
        talk.context.history = [UserMessage("hi"), AssistantMessage("It is noon")]
        await asyncio.sleep(5)
        assert [model.resumed_with for model in provider.made] == [None, "h1", None]
        assert provider.last.context is not None
        assert list(provider.last.context.history) == talk.context.history
        assert talk.context.notes[-1] == CONTINUE_NOTE


async def test_speech_over_an_answer_is_heard_by_the_next_connection() -> None:
    first = ScriptedLive([Hear("hi"), Say(LONG, audio_ms=8_000), Hear("stop", after_ms=9_000)])
    second = ScriptedLive([Hear("stop it please", after_ms=900), HELLO])
    provider = Provider(first, second)
    async with talking(provider) as talk:
        await talk.speak(1)
        await asyncio.sleep(2)
        await talk.speak(0.5)
        (started,) = talk.of(TurnStarted)
        talk.model.interrupt(started.turn, "It is noon")
        first._hang_up(Closed("gone"))
        await talk.speak(0.5)
        await asyncio.sleep(3)
        assert second.audio_ms == pytest.approx(1_000, abs=350)
        assert len(talk.of(TurnStarted)) == 2


# Tools.

CALL = ToolCall("call_0123456789", "set_light", {"on": True})


def result(call: ToolCall) -> ToolAnswer:
    return ToolAnswer(call, {"ok": True}, "Done.")


@pytest.mark.parametrize("done_s", [0.5, 2.5], ids=["in the gap", "after the gap"])
async def test_the_result_of_a_tool_that_ran_meanwhile_is_given_once(done_s: float) -> None:
    second = ScriptedLive([Say("Done.")], connect_s=1)
    provider = Provider(ScriptedLive([Call(CALL.name, CALL.args, CALL.id)]), second)
    async with talking(provider) as talk:
        talk.model.respond("t1", "light")
        await asyncio.sleep(0.1)
        (calls,) = talk.of(ToolCalls)
        provider.made[0]._hang_up(Closed("gone"))
        await asyncio.sleep(done_s)
        assert second.texts == []
        talk.model.send_tool_results("t1", [result(call) for call in calls.calls])
        await asyncio.sleep(5)
        assert second.texts == ["light"]
        assert [answer.call for answer in second.results] == [CALL]
        assert (talk.text("t1"), ends(talk, "t1")) == ("Done.", (1, 0))
        assert len(talk.of(ToolCalls)) == 1


async def test_a_call_that_the_next_connection_makes_again_is_answered_by_the_result() -> None:
    first = ScriptedLive([Call(CALL.name, CALL.args, CALL.id), Stall()])
    second = ScriptedLive([Call(CALL.name, CALL.args, "call_other_id"), Say("It is {results}")])
    provider = Provider(first, second)
    async with talking(provider) as talk:
        talk.model.respond("t1", "light")
        await asyncio.sleep(0.1)
        talk.model.send_tool_results("t1", [result(CALL)])
        await asyncio.sleep(0.1)
        first._hang_up(Closed("gone"))
        await asyncio.sleep(5)
        assert len(talk.of(ToolCalls)) == 1
        assert ends(talk, "t1") == (1, 0)
        assert talk.text("t1").startswith("It is Done.")


async def test_a_second_call_of_the_same_connection_is_run() -> None:
    again = ToolCall("call_9876543210", CALL.name, CALL.args)
    first, second = (Call(call.name, call.args, call.id) for call in (CALL, again))
    provider = Provider([first, Pause(10), second, Say("Done.")])
    async with talking(provider) as talk:
        talk.model.respond("t1", "roll the dice twice")
        await asyncio.sleep(0.1)
        talk.model.send_tool_results("t1", [result(CALL)])
        await asyncio.sleep(0.1)
        assert [event.calls for event in talk.of(ToolCalls)] == [(CALL,), (again,)]
        talk.model.send_tool_results("t1", [result(again)])
        await asyncio.sleep(3)
        assert ends(talk, "t1") == (1, 0)


async def test_a_cancelled_call_is_not_waited_for() -> None:
    first = ScriptedLive([Call(CALL.name, CALL.args, CALL.id), Cancel(100), Stall()])
    provider = Provider(first, [HELLO])
    async with talking(provider) as talk:
        talk.model.respond("t1", "light")
        await asyncio.sleep(0.5)
        first._hang_up(Closed("gone"))
        await asyncio.sleep(3)
        assert (talk.text("t1"), ends(talk, "t1")) == ("Hello.", (1, 0))
        assert provider.last.results == []


async def test_results_of_an_earlier_turn_that_come_in_the_gap_are_sent_to_a_resumed_session() -> None:
    second = ScriptedLive(connect_s=1, profile=RESUMING)
    provider = Provider([Resumable("h1"), HangUp()], second, profile=RESUMING)
    async with talking(provider) as talk:
        await asyncio.sleep(0.5)
        talk.model.send_tool_results("t0", [result(CALL)])
        await asyncio.sleep(2)
        assert [answer.call for answer in second.results] == [CALL]


# Greetings.


async def test_a_greeting_after_a_reconnect_is_not_heard() -> None:
    greeting = ScriptedLive([Hear("", after_ms=100, transcript="never"), Say("Hello, I am your assistant!")])
    provider = Provider([HangUp()], greeting)
    async with talking(provider, history=HISTORY) as talk:
        await talk.speak(1, pcm=bytes(640))
        await asyncio.sleep(5)
        assert talk.of(TurnStarted) == []
        assert talk.of(GenerationComplete) == []
        assert greeting.interrupts != []
        assert CONTINUE_NOTE in talk.context.notes[-1]


# Replacing by hand.


async def test_a_renewed_model_has_a_new_upstream_session() -> None:
    provider = Provider([Resumable("h1")], profile=RESUMING)
    async with talking(provider, history=HISTORY) as talk:
        talk.model.renew()
        await asyncio.sleep(1)
        assert [model.resumed_with for model in provider.made] == [None, None]
        assert provider.made[0].closed
        assert talk.notices == ["new_upstream"]


async def test_a_model_that_is_renewed_while_it_is_resumed_is_not_resumed() -> None:
    provider = Provider([Resumable("h1"), HangUp()], ScriptedLive(connect_s=2, profile=RESUMING), profile=RESUMING)
    async with talking(provider, history=HISTORY) as talk:
        await asyncio.sleep(1)
        talk.model.renew()
        await asyncio.sleep(5)
        assert provider.last.resumed_with is None
        assert provider.last.context is not None
        assert talk.model.handle is None
        assert talk.notices == ["new_upstream"]


async def test_an_answer_goes_on_when_its_model_is_renewed() -> None:
    provider = Provider([Say(BEGUN, goes_on=True, audio_ms=1_000), Stall()], [Say(LONG, audio_ms=3_800)])
    async with talking(provider) as talk:
        await ask(talk, seconds=1)
        talk.model.renew()
        await asyncio.sleep(5)
        assert (talk.text("t1"), ends(talk, "t1")) == (LONG, (1, 0))


# The first connection.


async def test_a_first_connection_that_fails_is_reported() -> None:
    error = ModelError("The key is wrong.", retryable=False, kind=FailureKind.REFUSED)
    async with talking(Provider(error)) as talk:
        assert talk.posted == [ConnectFailed(error)]
        assert talk.model.state is ConnectionState.LOST


async def test_requests_before_the_first_connection_are_answered() -> None:
    provider = Provider(ScriptedLive([HELLO], connect_s=3))
    async with talking(provider) as talk:
        await ask(talk)
        assert talk.of(Opened) == [Opened("scripted")]
        assert (provider.last.texts, talk.text("t1")) == (["hi"], "Hello.")


async def test_in_text_a_connection_that_nobody_waits_for_is_not_made_again() -> None:
    provider = Provider([HELLO, HangUp("over")])
    async with talking(provider, mode=Mode.TEXT) as talk:
        await ask(talk)
        assert talk.posted[-1] == Closed("over")
        assert len(provider.made) == 1


@pytest.mark.parametrize("profile", [PROFILE, WAITING])
@pytest.mark.parametrize(
    "command",
    [
        lambda model: model.respond("t1", "hi"),
        lambda model: model.say("t1", "hi"),
        lambda model: model.end_audio("t1"),
        lambda model: model.interrupt("t1", None),
        lambda model: model.send_tool_results("t1", []),
        lambda model: model.renew(),
        lambda model: model.set_level(2),
    ],
)
async def test_a_closed_model_ignores_commands(profile: Any, command: Callable[[Any], None]) -> None:
    provider = Provider(profile=profile)
    async with talking(provider) as talk:
        await talk.close()
        told = len(talk.posted)
        command(talk.model)
        await asyncio.sleep(60)
        assert len(provider.made) == 1
        assert len(talk.posted) == told


async def test_a_conversation_that_cannot_be_read_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    provider = Provider()
    talk = Talk(provider)
    talk.context.error = OSError("the disk is gone")
    await asyncio.sleep(1)
    (failed,) = talk.of(ConnectFailed)
    assert "could not be read" in str(failed.error)
    await talk.close()

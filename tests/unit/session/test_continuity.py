"""A session whose models are lost, limited and replaced: what the client sees of it."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from antiphon.models.live import Closed, CloseKind, UpstreamError
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, UserMessage
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.continuous import Provider
from tests.fakes.gates import Counted, make_action
from tests.fakes.scripted_live import PROFILE, Call, HangUp, Hear, Pause, Say, ScriptedLive, Stall

LONG = "It is noon in Oslo, and the sun is shining. In Tokyo, it is already evening."
BEGUN = "It is noon in Oslo, "
LIMITED = UpstreamError("Too many.", CloseKind.QUOTA, retry_after_s=40)
HELLO = Say("Hello.", audio_ms=500)


def provider(name: str, *scripts: Any) -> Provider:
    return Provider(*scripts, profile=replace(PROFILE, name=name))


async def start(servers: ScriptedServers, *providers: Provider, tools: tuple[Any, ...] = ()) -> Client:
    """A client in a call, on a ladder of these models."""
    server = servers.open(*tools, text=["Noted.", "Noted."], voice=[])
    server.use(Mode.VOICE, *(each.factory for each in providers))
    client = await Client(server).enter()
    await client.say(c.StartListening(), seconds=1)
    return client


def levels(client: Client) -> list[tuple[int, int, str]]:
    return [(each.previous, each.level, each.reason.value) for each in client.every(s.Energy)]


def notices(client: Client) -> list[str | None]:
    return [each.code for each in client.every(s.Notice)]


def answers(client: Client) -> list[str]:
    return [each.text.strip() for each in client.every(s.Response)]


async def test_an_answer_that_was_cut_is_one_answer(servers: ScriptedServers) -> None:
    cut = [Hear("what time is it"), Say(BEGUN, goes_on=True, audio_ms=1_000), HangUp()]
    client = await start(servers, provider("live", cut, [Say(LONG, audio_ms=3_800)]))
    await client.speak(1)
    await client.settle(20)
    assert answers(client) == [LONG]
    assert "".join(chunk.text for chunk in client.every(s.ResponseChunk)) == LONG
    assert [each.text for each in client.every(s.Transcript) if each.is_final] == ["what time is it"]
    assert client.every(s.Error) == []
    assert notices(client) == []


async def test_a_turn_that_was_not_understood_yet_is_one_turn(servers: ScriptedServers) -> None:
    cut = [Hear("what time is it", transcript="never"), Pause(300), HangUp()]
    client = await start(servers, provider("live", cut, [Hear("what time is it", transcript="late"), HELLO]))
    await client.speak(1)
    await client.settle(20)
    assert answers(client) == ["Hello."]
    assert [each.text for each in client.every(s.Transcript) if each.is_final] == ["what time is it"]
    assert client.every(s.Error) == []


async def test_a_tool_runs_once_if_its_model_is_lost_meanwhile(servers: ScriptedServers) -> None:
    handler = Counted()
    first = ScriptedLive([Hear("book it"), Call("book", {}, "call_0123456789"), Stall()])
    again = [Call("book", {}, "call_9876543210"), Say("It is booked.")]
    client = await start(servers, provider("live", first, again), tools=(make_action("book", handler),))
    await client.speak(1)
    first._hang_up(Closed("gone"))
    await client.settle(20)
    assert handler.runs == 1
    assert answers(client) == ["It is booked."]


async def test_an_interrupt_during_the_gap_ends_the_turn(servers: ScriptedServers) -> None:
    cut = [Hear("what time is it"), Say(BEGUN, goes_on=True, audio_ms=1_000), HangUp()]
    second = ScriptedLive([HELLO], connect_s=3)
    live = provider("live", cut, second, [Hear("and now"), HELLO])
    client = await start(servers, live)
    await client.speak(1)
    await client.settle(0.5)
    await client.say(c.Interrupt(played_ms=200), seconds=10)
    assert second.texts == []
    assert client.states[-1] == "listening"
    await client.speak(1)
    await client.settle(10)
    assert answers(client)[-1] == "Hello."
    assert live.last.context is not None
    # It is told of the turn as the user has heard it.
    question, answer = live.last.context.history
    assert question == UserMessage("what time is it")
    assert isinstance(answer, AssistantMessage)
    assert BEGUN.startswith(answer.text.strip())


async def test_a_user_who_types_during_the_gap_is_answered(servers: ScriptedServers) -> None:
    first = ScriptedLive()
    second = ScriptedLive([HELLO], connect_s=2)
    client = await start(servers, provider("live", first, second))
    first._hang_up(Closed("gone"))
    await client.write("hi", seconds=10)
    assert (second.texts, answers(client)) == (["hi"], ["Hello."])


# Energy.


async def test_a_rate_limit_in_a_call_is_told_and_the_next_model_answers(servers: ScriptedServers) -> None:
    quota = [Hear("what time is it"), Pause(100), HangUp("quota", CloseKind.QUOTA, 40)]
    best, good, local = provider("best", quota), provider("good", [HELLO]), provider("local")
    client = await start(servers, best, good, local)
    await client.speak(1)
    await client.settle(10)
    assert levels(client) == [(3, 2, "rate-limit-exceeded")]
    (energy,) = client.every(s.Energy)
    assert (energy.model, energy.requires_fallback) == ("good", False)
    assert notices(client) == ["model_switched"]
    assert answers(client) == ["Hello."]
    assert client.every(s.Error) == []


async def test_without_energy_a_call_is_refused_until_a_model_has_cooled_down(servers: ScriptedServers) -> None:
    best, good, local = provider("best", LIMITED), provider("good", LIMITED), provider("local", LIMITED)
    client = await start(servers, best, good, local)
    assert levels(client) == [(n, n - 1, "rate-limit-exceeded") for n in (3, 2, 1)]
    assert notices(client).count("energy_exhausted") == 1
    assert "try again in 40 s" in client.every(s.Notice)[-1].text
    assert client.states[-1] == "idle"
    await client.write("hi")
    assert answers(client) == ["Noted."]

    made = [len(each.made) for each in (best, good, local)]
    await client.say(c.StartListening(), seconds=1)
    assert [len(each.made) for each in (best, good, local)] == made
    assert notices(client).count("energy_exhausted") == 2

    await asyncio.sleep(41)
    await client.say(c.StartListening(), seconds=1)
    assert levels(client)[-1] == (0, 3, "session-reset")
    assert client.states[-1] == "listening"
    assert best.last.context is not None


async def test_a_new_call_begins_with_the_best_model_that_is_not_cooling_down(servers: ScriptedServers) -> None:
    best, good, local = provider("best", LIMITED), provider("good"), provider("local")
    client = await start(servers, best, good, local)
    await client.say(c.EndVoice(), seconds=1)
    await client.say(c.StartListening(), seconds=1)
    assert levels(client) == [(3, 2, "rate-limit-exceeded")]
    await client.say(c.EndVoice(), seconds=41)
    await client.say(c.StartListening(), seconds=1)
    assert levels(client)[-1] == (2, 3, "session-reset")
    assert len(best.made) == 2


async def test_a_new_conversation_resets_the_energy_of_text(servers: ScriptedServers) -> None:
    server = servers.open(text=[])
    best, local = provider("best", LIMITED), provider("local", [HELLO])
    server.use(Mode.TEXT, best.factory, local.factory)
    client = await Client(server).enter(mode=c.Mode.TEXT)
    await client.write("hi")
    assert levels(client) == [(2, 1, "rate-limit-exceeded")]
    assert answers(client) == ["Hello."]
    await client.settle(41)
    await client.say(c.ClearConversation(), seconds=1)
    assert levels(client)[-1] == (1, 2, "session-reset")


async def test_other_failures_cost_no_energy(servers: ScriptedServers) -> None:
    lost = UpstreamError("It is away.", CloseKind.TRANSIENT)
    client = await start(servers, provider("best", lost), provider("good"), provider("local"))
    assert levels(client) == []
    assert client.states[-1] == "listening"


# By hand.


async def test_a_level_is_chosen_by_hand(servers: ScriptedServers) -> None:
    best, good, local = provider("best"), provider("good"), provider("local", [Hear("hi"), HELLO])
    client = await start(servers, best, good, local)
    assert client.live is not None
    client.live.runner.models.set_level(Mode.VOICE, 1)
    await client.settle(1)
    assert levels(client) == [(3, 1, "manual")]
    await client.speak(1)
    await client.settle(5)
    assert answers(client) == ["Hello."]


async def test_a_model_is_renewed_in_the_middle_of_an_answer(servers: ScriptedServers) -> None:
    stuck = [Hear("what time is it"), Say(BEGUN, goes_on=True, audio_ms=1_000), Stall()]
    live = provider("live", stuck, [Say(LONG, audio_ms=3_800)])
    client = await start(servers, live)
    await client.speak(1)
    await client.settle(1)
    assert client.live is not None
    client.live.runner.models.renew()
    await client.settle(20)
    assert answers(client) == [LONG]
    assert notices(client) == ["new_upstream"]


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.4, 2.0])
async def test_a_session_that_ends_while_a_model_is_connected_leaves_nothing(
    servers: ScriptedServers, seconds: float
) -> None:
    first = ScriptedLive()
    live = provider("live", first, *[UpstreamError("It is away.", CloseKind.TRANSIENT)] * 20)
    client = await start(servers, live)
    first._hang_up(Closed("gone"))
    await client.settle(seconds)
    client.drop(for_good=True)
    await client.settle(1)
    made = len(live.made)
    await client.settle(300)
    assert len(live.made) == made

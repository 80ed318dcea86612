"""A session may do anything at any time: every turn still ends once, and the server refuses nothing that matters."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, Final

import pytest

from antiphon.models.live import Closed, OutputText, ToolCalls, TurnComplete, TurnFailed, TurnStarted
from antiphon.transcript import Message
from tests.contract.live_models import check_order
from tests.fakes.paced import results_of
from tests.fakes.realtime_server import RealtimeServer
from tests.fakes.realtime_talk import RealtimeTalk, realtime_talk
from tests.fakes.vendor_answers import Call, Output, Say

STEPS: Final = 60
CROSSED: Final = {
    "cannot_update_speed",
    "conversation_already_has_active_response",
    "input_audio_buffer_commit_empty",
    "response_cancel_not_active",
}
"""Refusals that cannot be avoided: the client's request and the server's own decision were on their way at once."""


def act(random: Random, talk: RealtimeTalk) -> str | None:
    """Does something that a session may do, and returns the turn that it has asked for, if any."""
    listener = talk.listener
    match random.choice(
        ["ask", "say", "interrupt", "interrupt", "hear", "hear", "quiet", "quiet", "end", "results", "voice"]
    ):
        case "ask":
            return listener.respond("hello")
        case "say":
            talk.model.say(turn := listener.make_turn(), "Good morning.")
            return turn
        case "interrupt" if listener.turn:
            said = "".join(e.text for e in listener.of(listener.turn) if isinstance(e, OutputText)).split()
            heard = random.choice([None, "", " ".join(said[: random.randint(0, 3)])])
            listener.interrupt(heard)
        case "hear":
            talk.hear(random.choice([20, 100, 400]), playing=random.random() < 0.5)
        case "quiet":
            talk.hear(random.choice([100, 600]), loud=False)
        case "end":
            talk.model.end_audio(turn := listener.make_turn("spoken"))
            return turn
        case "results":
            for event in listener.events:
                if isinstance(event, ToolCalls) and random.random() < 0.5:
                    talk.model.send_tool_results(event.turn, results_of(event))
        case "voice":
            talk.model.set_voice(None, random.choice([0.8, 1.0, 1.2]))
    return None


@pytest.mark.parametrize("seed", range(6))
async def test_every_turn_ends_once_whatever_the_session_does(seed: int) -> None:
    random = Random(seed)
    made = 0

    def reply(messages: Sequence[Message], asked: dict[str, Any]) -> Sequence[Output]:
        nonlocal made
        made += 1
        calls = [Call("get_time", {}, f"call_{made:09}{place}") for place in range(random.choice([0, 0, 1, 2]))]
        return [*([Say("One two three four.")] if random.random() < 0.8 or not calls else []), *calls]

    server = RealtimeServer(reply, transcript=random.choice(["before", "late", "after", "never"]))
    async with realtime_talk(server) as talk:
        begun = set[str]()
        for _ in range(STEPS):
            begun |= {turn} if (turn := act(random, talk)) is not None else set()
            await asyncio.sleep(random.choice([0.0, 0.0, 0.001, 0.05, 0.3, 1.0]))
        talk.model.set_voice(None, 1.1)
        await talk.listener.settle()
        assert server.session.settings["audio"]["output"]["speed"] == 1.1
        for calls in [event for event in talk.events if isinstance(event, ToolCalls)]:
            talk.model.send_tool_results(calls.turn, results_of(calls))
        last = await talk.listener.ask("are you there?")
        for _ in range(3):
            open_calls = [event for event in talk.listener.of(last) if isinstance(event, ToolCalls)]
            for calls in open_calls:
                talk.model.send_tool_results(last, results_of(calls))
            await talk.listener.settle()
        begun |= {event.turn for event in talk.events if isinstance(event, TurnStarted)}
        over = [event.turn for event in talk.events if isinstance(event, TurnComplete)]
        assert begun <= set(over)
        assert len(over) == len(set(over))
        assert not any(isinstance(event, TurnFailed | Closed) for event in talk.events)
        assert {error["code"] for error in server.errors} <= CROSSED
        check_order(talk.events, lambda turn: talk.listener.is_asked(turn))

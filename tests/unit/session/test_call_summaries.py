"""The summary of a call: stored at its end, and replaced by a model's in the background."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from antiphon.continuity.summarizer import UNAVAILABLE
from antiphon.models.base import ModelError
from antiphon.protocol import client_messages as c
from antiphon.session.call_summaries import AT_ONCE, CLOSE_S, SUMMARY_S, CallSummaries
from antiphon.storage.base import StoreUnavailable
from antiphon.storage.conversations import VoiceCall
from antiphon.storage.memory import MemoryDatabase
from antiphon.transcript import AssistantMessage, Message, UserMessage
from tests.fakes.calls import Client, ScriptedServers, Server
from tests.fakes.scripted_live import Hear, Say

NOON = (Hear("what time is it"), Say("It is noon.", audio_ms=1_000))
EXTRACTIVE = "You asked what time it is."


class SlowSummarizer:
    def __init__(self, takes_s: float = 1.0, error: Exception | None = None) -> None:
        self.given: list[Sequence[Message]] = []
        self.running = 0
        self.most_running = 0
        self._takes_s = takes_s
        self._error = error

    async def summarize(self, messages: Sequence[Message]) -> str:
        self.given.append(messages)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(self._takes_s)
        finally:
            self.running -= 1
        if self._error is not None:
            raise self._error
        return "You asked for the time, and it was noon."


async def have_call(server: Server) -> Client:
    """A client that has had a short call and still is in it."""
    client = await Client(server).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(1)
    await client.settle(10)
    return client


async def read_call(server: Server) -> VoiceCall:
    (call,) = await server.database.voice_calls.list("ann", 10)
    return call


async def test_a_call_has_a_summary_at_once_and_a_better_one_when_the_model_is_done(servers: ScriptedServers) -> None:
    summarizer = SlowSummarizer(takes_s=3.0)
    server = servers.open(text=[], voice=NOON, summarizer=summarizer)
    client = await have_call(server)
    await client.say(c.EndVoice(), seconds=1)
    assert (await read_call(server)).summary == EXTRACTIVE
    await client.settle(3)
    assert (await read_call(server)).summary == "You asked for the time, and it was noon."
    assert summarizer.given == [[UserMessage("what time is it"), AssistantMessage("It is noon.")]]


async def test_the_summary_is_written_after_the_session_is_over(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=NOON, summarizer=SlowSummarizer(takes_s=3.0))
    client = await have_call(server)
    client.drop(for_good=True)
    await client.settle(1)
    assert server.hub.sessions == {}
    await client.settle(3)
    assert (await read_call(server)).summary == "You asked for the time, and it was noon."


@pytest.mark.parametrize(
    "make",
    [
        lambda: SlowSummarizer(error=ModelError("The model cannot be reached.")),
        lambda: SlowSummarizer(takes_s=10 * SUMMARY_S),
        lambda: SlowSummarizer(error=RuntimeError("a bug")),
    ],
    ids=["failure", "too_slow", "bug"],
)
async def test_a_call_keeps_its_first_summary_if_the_model_fails(
    servers: ScriptedServers, make: Callable[[], SlowSummarizer]
) -> None:
    summarizer = make()
    server = servers.open(text=[], voice=NOON, summarizer=summarizer)
    client = await have_call(server)
    await client.say(c.EndVoice(), seconds=SUMMARY_S + 2)
    assert (await read_call(server)).summary == EXTRACTIVE
    assert summarizer.running == 0


async def test_a_process_that_stops_waits_a_moment_for_the_summary(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=NOON, summarizer=SlowSummarizer(takes_s=CLOSE_S - 0.5))
    client = await have_call(server)
    client.drop(for_good=True)
    await client.settle(0.1)
    await server.hub.aclose()
    assert (await read_call(server)).summary == "You asked for the time, and it was noon."


async def test_a_process_that_stops_does_not_wait_for_long(servers: ScriptedServers) -> None:
    summarizer = SlowSummarizer(takes_s=SUMMARY_S - 1)
    server = servers.open(text=[], voice=NOON, summarizer=summarizer)
    client = await have_call(server)
    client.drop(for_good=True)
    await client.settle(0.1)
    started_s = asyncio.get_running_loop().time()
    await server.hub.aclose()
    assert asyncio.get_running_loop().time() - started_s <= CLOSE_S + 0.1
    assert summarizer.running == 0
    assert (await read_call(server)).summary == EXTRACTIVE


async def test_a_call_whose_words_cannot_be_read_says_that_it_has_no_summary(
    servers: ScriptedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = servers.open(text=[], voice=NOON, summarizer=SlowSummarizer())
    client = await have_call(server)

    async def fail(*args: object) -> None:
        raise StoreUnavailable("The database cannot be read.")

    monkeypatch.setattr(server.database.conversations, "turns", fail)
    await client.say(c.EndVoice())
    call = await read_call(server)
    assert call.summary == UNAVAILABLE
    assert call.ended_ms is not None
    assert client.live is not None
    assert await client.live.runner.calls.latest_summary() == "", "it is of no use to a model"


async def test_only_a_few_calls_are_summarized_at_the_same_time() -> None:
    summarizer = SlowSummarizer()
    summaries = CallSummaries(MemoryDatabase().voice_calls, summarizer)
    for n in range(3 * AT_ONCE):
        summaries.start(f"v{n}", [UserMessage("hello")])
    await asyncio.sleep(5)
    assert len(summarizer.given) == 3 * AT_ONCE
    assert summarizer.most_running == AT_ONCE
    await summaries.aclose()


async def test_the_energy_levels_of_a_call_are_on_record(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=NOON)
    client = await Client(server).enter()
    assert client.live is not None
    calls = client.live.runner.calls
    calls.note_level(2)
    calls.note_level(3)
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(1)
    await client.settle(10)
    for level in (3, 2, 2, 1):
        calls.note_level(level)
    await client.say(c.EndVoice())
    assert (await read_call(server)).energy_path == (3, 2, 1)


async def test_the_latest_summary_is_that_of_this_conversation(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello."], voice=NOON)
    client = await have_call(server)
    assert client.live is not None
    calls = client.live.runner.calls
    assert await calls.latest_summary() == "", "the call goes on"
    await client.say(c.EndVoice())
    assert await calls.latest_summary() == EXTRACTIVE
    other = await Client(server).enter(mode=c.Mode.TEXT)
    await other.write("hi")
    assert other.live is not None
    assert await other.live.runner.calls.latest_summary() == ""

"""A spoken answer that a client has missed is spoken when the client comes back, once, wherever it comes back to."""

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from antiphon.models.live import GenerationComplete, LiveEvent, LiveProfile, ModelFactory, OutputAudio, OutputText
from antiphon.models.text_live import text_factory
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.session.active import PARKED_S
from antiphon.session.outbox import KEPT_SPEECH_BYTES
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, UserMessage
from tests.fakes.calls import Client, ScriptedServers, Server
from tests.fakes.gates import make_tool
from tests.fakes.scripted import ScriptedModel
from tests.fakes.scripted_live import PROFILE, Call, HangUp, Hear, Say, ScriptedLive, Stall
from tests.fakes.spelling import SpellingVoice, read, spell
from tests.fakes.voice import FakeEngines

NAMES = ("Alpha", "Bravo", "Charlie", "Delta", "Echo", "Foxtrot")
STORY = " ".join(f"{name} is here to be said aloud and heard by somebody." for name in NAMES)
"""An answer of six seconds."""
LONG_STORY = " ".join(STORY.replace("is here", f"number {number} is here") for number in range(6))
"""An answer of which not all audio is kept."""


async def synthesize(text: str, voice: str | None, speed: float) -> bytes:
    return b"".join([sound.pcm async for sound in SpellingVoice().speak(text)])


@dataclass
class Processes:
    """Server processes over one database, with the local voice."""

    story: str = STORY

    def __post_init__(self) -> None:
        self.database = MemoryDatabase()
        self.opened: list[Server] = []

    def start(self) -> Server:
        script, fakes = ScriptedModel([self.story]), FakeEngines()
        models = {Mode.TEXT: text_factory(script), Mode.VOICE: fakes.factory(script, SpellingVoice())}
        owner = f"process{len(self.opened)}"
        self.opened.append(Server(models=models, database=self.database, owner=owner, synthesize=synthesize))
        return self.opened[-1]


@pytest.fixture
async def processes() -> AsyncIterator[Processes]:
    processes = Processes()
    yield processes
    for server in processes.opened:
        await server.aclose()


async def ask(server: Server, text: str = "tell me a story", seconds: float = 1) -> Client:
    client = await Client(server).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.write(text, seconds=seconds)
    return client


def spoken(client: Client, up_to_n: int | None = None) -> str:
    """The words of the speech that a client has received, up to a message."""
    received = [audio for audio in client.every(s.Audio) if up_to_n is None or audio.n <= up_to_n]
    return "".join(read(base64.b64decode(audio.data)[44:]) for audio in received)


def moment(client: Client, heard: float) -> int:
    """The number of the last message that a client has received, if it has got this share of the answer's speech."""
    pieces = [audio.n for audio in client.every(s.Audio)]
    at = round(len(pieces) * heard)
    return client.last_n if at == len(pieces) else pieces[at] - 1


# A client that comes back.

NOTHING, A_THIRD, ALL = 0.0, 0.34, 1.0


@pytest.mark.parametrize("heard", [NOTHING, A_THIRD, ALL])
@pytest.mark.parametrize("away_s", [0.1, 60, PARKED_S + 60])
@pytest.mark.parametrize("is_noticed", [True, False], ids=["cut", "half_open"])
@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["same", "other"])
async def test_what_was_not_heard_is_spoken_once(
    processes: Processes, heard: float, away_s: float, is_noticed: bool, is_elsewhere: bool
) -> None:
    """`half_open`: the server does not notice that the connection is dead."""
    one = processes.start()
    client = await ask(one)
    last_n, handle = moment(client, heard), client.handle
    before = spoken(client, last_n)
    if is_noticed:
        client.drop()
    await asyncio.sleep(away_s)
    back = await Client(processes.start() if is_elsewhere else one).enter(resume=handle, last_n=last_n)
    assert back.last(s.Session).resumed
    await back.settle(20)
    assert (before + spoken(back)).split() == STORY.split()
    assert back.states[-1] == "listening"
    shown = {message.text.strip() for message in (*client.every(s.Response), *back.every(s.Response))}
    assert shown == {STORY}


async def test_a_client_that_returns_to_an_unheard_answer_is_told_that_it_is_spoken(processes: Processes) -> None:
    one = processes.start()
    client = await ask(one)
    last_n = moment(client, NOTHING)
    await asyncio.sleep(30)
    assert client.states[-1] == "listening"
    back = await Client(one).enter(resume=client.handle, last_n=last_n)
    assert back.states[-1] == "speaking"


async def test_an_answer_that_was_reported_as_played_is_not_repeated(processes: Processes) -> None:
    one = processes.start()
    client = await ask(one, seconds=10)
    await client.say(c.PlaybackDone(), seconds=1)
    for server in (one, processes.start()):
        back = await Client(server).enter(resume=client.handle, last_n=0)
        await back.settle(20)
        assert spoken(back) == ""
        client = back


async def test_playback_that_is_reported_late_still_counts(processes: Processes) -> None:
    one = processes.start()
    client = await ask(one, seconds=30)
    await client.say(c.PlaybackDone(), seconds=1)
    back = await Client(processes.start()).enter(resume=client.handle, last_n=0)
    await back.settle(20)
    assert spoken(back) == ""


async def test_a_new_question_ends_the_unheard_answer(processes: Processes) -> None:
    one = processes.start()
    client = await ask(one)
    last_n = moment(client, A_THIRD)
    back = await Client(processes.start()).enter(resume=client.handle, last_n=last_n)
    await back.write("tell me another one", seconds=20)
    turns = await processes.database.conversations.turns(back.last(s.Session).conversation_id)
    told = [turn.text for turn in turns]
    assert STORY.startswith(told[1])
    assert len(told[1]) < len(STORY) / 2
    assert told[2] == "tell me another one"
    assert {audio.turn for audio in back.every(s.Audio)} == {2}


async def test_an_interrupt_ends_the_unheard_answer(processes: Processes) -> None:
    client = await ask(processes.start())
    last_n = moment(client, A_THIRD)
    back = await Client(processes.start()).enter(resume=client.handle, last_n=last_n)
    await back.say(c.Interrupt(played_ms=0), seconds=20)
    assert back.every(s.Audio) == []
    assert back.states[-1] == "listening"


@pytest.mark.parametrize("is_noticed", [True, False], ids=["cut", "half_open"])
@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["same", "other"])
async def test_an_old_answer_is_shown_and_not_spoken(
    processes: Processes, is_noticed: bool, is_elsewhere: bool
) -> None:
    one = processes.start()
    client = await ask(one)
    last_n = moment(client, A_THIRD)
    if is_noticed:
        client.drop()
    await asyncio.sleep(11 * 60)
    back = await Client(processes.start() if is_elsewhere else one).enter(resume=client.handle, last_n=last_n)
    await back.settle(20)
    assert [message.text.strip() for message in back.every(s.Response)] == [STORY]
    assert back.every(s.Audio) == []
    assert back.states[-1] == "listening"


async def test_an_answer_after_which_another_client_has_continued_is_not_spoken(processes: Processes) -> None:
    one = processes.start()
    client = await ask(one)
    last_n = moment(client, NOTHING)
    conversation_id = client.last(s.Session).conversation_id
    client.drop()
    other = await Client(one).enter(mode=c.Mode.TEXT, conversation_id=conversation_id)
    await other.write("never mind")
    back = await Client(processes.start()).enter(resume=client.handle, last_n=last_n)
    await back.settle(20)
    assert back.every(s.Audio) == []


async def test_an_unheard_answer_does_not_change_the_idempotency_turn(processes: Processes) -> None:
    """The turn of an answer that is only spoken again is counted once, like its number."""
    client = await ask(processes.start(), seconds=30)
    assert client.live is not None
    turn = client.live.runner.tools.turn
    back = await Client(processes.start()).enter(resume=client.handle, last_n=moment(client, NOTHING))
    await back.settle(30)
    assert back.live is not None
    assert back.live.runner.tools.turn == turn
    assert {audio.turn for audio in (*client.every(s.Audio), *back.every(s.Audio))} == {1}


# Long answers.


@pytest.fixture
async def storytellers(processes: Processes) -> Processes:
    processes.story = LONG_STORY
    assert len(spell(LONG_STORY)) > 1.5 * KEPT_SPEECH_BYTES
    return processes


@pytest.mark.parametrize("listens_s", [0.12, 0.5, 1.5])
async def test_what_was_made_again_and_lost_again_is_spoken_by_another_process(
    storytellers: Processes, listens_s: float
) -> None:
    one = storytellers.start()
    client = await ask(one, seconds=0.3)
    heard, last_n = spoken(client), client.last_n
    client.drop()
    await asyncio.sleep(60)
    back = await Client(one).enter(resume=client.handle, last_n=last_n)
    await back.settle(listens_s)
    heard += spoken(back)
    third = await Client(storytellers.start()).enter(resume=back.handle, last_n=back.last_n)
    await third.settle(80)
    assert (heard + spoken(third)).split() == LONG_STORY.split()


# Fillers.


class FillingLive(ScriptedLive):
    """Says something to fill the wait for its answer."""

    def _begin(self, turn: str, heard: Hear | None = None) -> None:
        self._emit(OutputAudio(turn, spell("One moment. "), is_filler=True))
        super()._begin(turn, heard)


async def test_a_filler_that_was_heard_is_no_part_of_the_answer() -> None:
    database, opened = MemoryDatabase(), list[Server]()

    def start(*script: Any) -> Server:
        models = {
            Mode.TEXT: text_factory(ScriptedModel([])),
            Mode.VOICE: ModelFactory(PROFILE, lambda: FillingLive(script)),
        }
        owner = f"process{len(opened)}"
        opened.append(Server(models=models, database=database, owner=owner, synthesize=synthesize))
        return opened[-1]

    client = await ask(start(Say(STORY, audio_ms=6_000)), seconds=4)
    filler = next(audio.n for audio in client.every(s.Audio))
    back = await Client(start()).enter(resume=client.handle, last_n=filler)
    await back.settle(20)
    assert spoken(back).split() == STORY.split()
    for server in opened:
        await server.aclose()


# Models with a voice of their own.

SONG = "One two three four. Five six seven eight. Nine ten."
OWN_VOICE = replace(PROFILE, voices=("aoede",))


def pieces_ms(client: Client) -> int:
    return sum((len(base64.b64decode(audio.data)) - 44) * 1000 // 44_100 for audio in client.every(s.Audio))


@pytest.mark.parametrize(
    ("profile", "voice"), [(PROFILE, None), (OWN_VOICE, synthesize)], ids=["no synthesizer", "a voice of its own"]
)
@pytest.mark.parametrize(
    ("heard", "rest"), [(NOTHING, SONG), (A_THIRD, "Five six seven eight. Nine ten."), (ALL, None)]
)
async def test_the_model_itself_says_the_rest_in_another_process(
    servers: ScriptedServers, profile: LiveProfile, voice: Any, heard: float, rest: str | None
) -> None:
    one = servers.open(text=[], voice=[Say(SONG, audio_ms=6_000)], profile=profile, database=MemoryDatabase())
    client = await ask(one, "sing", seconds=3)
    last_n = moment(client, heard)
    two = servers.open(text=[], voice=[], profile=profile, database=one.database, owner="two", synthesize=voice)
    back = await Client(two).enter(resume=client.handle, last_n=last_n)
    await back.settle(20)
    assert servers.voice.said == ([] if rest is None else [rest])
    written = (*back.every(s.ResponseChunk), *back.every(s.Response))
    assert all(message.n <= client.last_n for message in written), "its text is only replayed"
    assert len(back.every(s.Audio)) == (0 if rest is None else rest.count("."))
    assert back.states[-1] == "listening"
    assert await told(back) == ["sing", SONG]
    assert servers.voice.context is None or list(servers.voice.context.history) == [
        UserMessage("sing"),
        AssistantMessage(SONG),
    ]


async def test_an_answer_of_which_no_audio_was_made_is_said(servers: ScriptedServers) -> None:
    class TextFirst(ScriptedLive):
        """Has the whole text long before the audio, as some providers do."""

        def _emit(self, event: LiveEvent) -> None:
            super()._emit(event)
            if isinstance(event, OutputText):
                super()._emit(GenerationComplete(event.turn))

    database = MemoryDatabase()
    script = [Say("It is noon.", first_audio_ms=5_000, audio_ms=1_000)]
    models = {
        Mode.TEXT: text_factory(ScriptedModel([])),
        Mode.VOICE: ModelFactory(PROFILE, lambda: TextFirst(script)),
    }
    one = Server(models=models, database=database)
    servers.opened.append(one)
    client = await ask(one, "what time is it", seconds=2)
    assert client.every(s.Response)
    assert not client.every(s.Audio)
    two = servers.open(text=[], voice=[], database=database, owner="two")
    back = await Client(two).enter(resume=client.handle, last_n=client.last_n)
    await back.settle(20)
    assert servers.voice.said == ["It is noon."]
    assert len(back.every(s.Audio)) == 1
    assert back.states[-1] == "listening"


async def test_the_model_says_again_what_this_process_has_dropped(servers: ScriptedServers) -> None:
    one = servers.open(text=[], voice=[Say(SONG, audio_ms=40_000)])
    client = await ask(one, "sing", seconds=0.1)
    client.drop()
    await asyncio.sleep(60)
    back = await Client(one).enter(resume=client.handle, last_n=client.last_n)
    await back.settle(60)
    assert servers.voice.said == [SONG]
    assert len(back.every(s.Response)) == 1
    assert await told(back) == ["sing", SONG]
    assert back.states[-1] == "listening"


async def test_what_the_model_says_again_can_be_interrupted(servers: ScriptedServers) -> None:
    one = servers.open(text=[], voice=[Say(SONG, audio_ms=6_000)], database=MemoryDatabase())
    client = await ask(one, "sing", seconds=3)
    last_n = moment(client, A_THIRD)
    two = servers.open(text=[], voice=[], database=one.database, owner="two")
    back = await Client(two).enter(resume=client.handle, last_n=last_n)
    await back.settle(1)
    await back.say(c.Interrupt(played_ms=2_400), seconds=10)
    assert back.states[-1] == "listening"
    assert await told(back) == ["sing", "One two three four."]


async def test_a_model_that_cannot_be_reached_leaves_the_answer_shown(servers: ScriptedServers) -> None:
    one = servers.open(text=[], voice=[Say(SONG, audio_ms=6_000)], database=MemoryDatabase())
    client = await ask(one, "sing", seconds=3)
    two = servers.open(text=[], voice=[HangUp("gone")], database=one.database, owner="two")
    servers.next_voice = [Stall()]
    back = await Client(two).enter(resume=client.handle, last_n=moment(client, A_THIRD))
    await back.settle(30)
    assert back.states[-1] == "listening"
    assert await told(back) == ["sing", SONG]


async def test_an_answer_is_still_heard_if_its_model_is_lost_meanwhile(servers: ScriptedServers) -> None:
    one = servers.open(text=[], voice=[Say(SONG, audio_ms=6_000), HangUp("gone")])
    client = await ask(one, "sing", seconds=0.1)
    client.drop()
    await asyncio.sleep(60)
    back = await Client(one).enter(resume=client.handle, last_n=client.last_n)
    await back.settle(1)
    assert back.states[-1] == "speaking"
    assert pieces_ms(back) > 5_900


# What else is told to a client that is away.


@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["same", "other"])
async def test_what_is_told_while_no_turn_is_under_way_is_not_lost(
    servers: ScriptedServers, is_elsewhere: bool
) -> None:
    one = servers.open(text=["Hello."], voice=[], database=MemoryDatabase())
    client = await ask(one, "hi")
    client.drop()
    await client.settle(1)
    await client.say(c.TestAudio())
    server = servers.open(text=[], voice=[], database=one.database, owner="two") if is_elsewhere else one
    back = await Client(server).enter(resume=client.handle, last_n=client.last_n)
    assert [notice.code for notice in back.every(s.Notice)] == ["voice_unavailable"]


@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["same", "other"])
async def test_a_turn_with_a_tool_that_ends_while_the_client_is_away_is_replayed(
    servers: ScriptedServers, is_elsewhere: bool
) -> None:
    async def read(args: Args, context: Context) -> ToolResult:
        await asyncio.sleep(2)
        return ok({"text": "read"})

    tool = make_tool("read_it", read, latency_budget_ms=5_000)
    script = [Call("read_it"), Say(SONG, audio_ms=3_000)]
    one = servers.open(tool, text=[], voice=script, database=MemoryDatabase())
    client = await ask(one, "read it")
    assert client.every(s.ToolCall)
    assert not client.every(s.ToolResult)
    client.drop()
    await asyncio.sleep(10)
    two = servers.open(tool, text=[], voice=[], database=one.database, owner="two") if is_elsewhere else one
    back = await Client(two).enter(resume=client.handle, last_n=client.last_n)
    await back.settle(20)
    assert back.every(s.ToolCall) == []
    assert [result.ok for result in back.every(s.ToolResult)] == [True]
    assert [response.text for response in back.every(s.Response)] == [SONG]
    assert len(back.every(s.Audio)) == 3
    assert back.states[-1] == "listening"


async def told(client: Client) -> list[str]:
    turns = await client.server.database.conversations.turns(client.last(s.Session).conversation_id)
    return [turn.text for turn in turns if turn.text]

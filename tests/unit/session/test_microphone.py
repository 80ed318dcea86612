"""Microphone audio on its way to a model, which may not be connected yet."""

import asyncio

import pytest

from antiphon.models.base import ModelError
from antiphon.models.live import LiveContext, ModelFactory
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.tools.spec import Mode
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.scripted_live import PROFILE, HangUp, Hear, Say, ScriptedLive, Stall

FRAME_MS = 20


class Distant(ScriptedLive):
    """A model that is slow to connect, and records the first sample of each frame."""

    def __init__(self, connects_s: float) -> None:
        super().__init__()
        self._connects_s = connects_s
        self.frames: list[int] = []

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        await asyncio.sleep(self._connects_s)
        await super().connect(context, resume)

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        super().send_audio(pcm, playing=playing)
        self.frames.append(int.from_bytes(pcm[:2], "little"))


async def speak(client: Client, frames: range) -> None:
    """Sends distinguishable frames."""
    assert client.live is not None
    for number in frames:
        client.live.runner.hear(number.to_bytes(2, "little") + bytes(638))
        await asyncio.sleep(FRAME_MS / 1000)


@pytest.mark.parametrize("mode", c.Mode)
async def test_speech_during_connecting_is_not_lost(servers: ScriptedServers, mode: c.Mode) -> None:
    server = servers.open(text=[], voice=[])
    servers.voice = model = Distant(connects_s=1)
    client = await Client(server).enter(mode=mode)
    await client.say(c.StartListening(), seconds=0)
    await speak(client, range(100))
    assert client.states[-1] == "listening"
    assert model.frames == list(range(100))


async def test_only_the_newest_audio_is_kept_when_the_wait_is_too_long(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=[])
    servers.voice = model = Distant(connects_s=8)
    client = await Client(server).enter()
    await client.say(c.StartListening(), seconds=0)
    await speak(client, range(450))
    assert model.frames[-1] == 449
    assert model.frames == list(range(model.frames[0], 450))
    waited_ms = (400 - model.frames[0]) * FRAME_MS
    assert waited_ms == pytest.approx(5_000, abs=2 * FRAME_MS)


async def test_a_frame_right_after_start_listening_is_heard(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=[])
    servers.voice = model = Distant(connects_s=0)
    client = await Client(server).enter()
    assert client.live is not None
    client.live.runner.post(c.StartListening())
    client.live.runner.hear(bytes(640))
    await client.settle()
    assert model.frames == [0]


async def test_audio_of_an_idle_session_is_dropped(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[], voice=[])).enter()
    await client.speak(1)
    await client.say(c.StartListening())
    assert servers.voice.audio_bytes == 0


async def test_audio_that_no_model_will_hear_is_dropped(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello."], voice=[])
    servers.voice = ScriptedLive(refuses=ModelError("The voice is away."))
    client = await Client(server).enter()
    await client.say(c.StartListening(), seconds=0)
    await client.speak(1)
    assert client.last(s.Notice).code == "voice_unavailable"
    servers.voice = ScriptedLive()
    await client.say(c.StartListening())
    assert servers.voice.audio_bytes == 0


async def test_the_model_is_told_which_audio_came_during_playback(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[], voice=[])).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(1)
    await client.speak(0.5, playing=True)
    assert (servers.voice.audio_ms, servers.voice.playing_bytes) == (1_500, 500 * 32)


async def test_a_call_that_lost_its_model_gets_a_new_one(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[], voice=[HangUp("gone")])).enter()
    servers.next_voice = [Hear("hello"), Say("Here again.", audio_ms=500)]
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(3)
    assert client.every(s.Error) == []
    assert client.last(s.Response).text == "Here again."
    assert client.last(s.Transcript).text == "hello"


async def test_what_was_typed_while_a_model_was_lost_is_answered_by_the_next(servers: ScriptedServers) -> None:
    script = [Stall(), Say("I am", goes_on=True), HangUp("gone")]
    servers.next_voice = [Say("Here I am.")]
    client = await Client(servers.open(text=[], voice=script)).enter()
    await client.write("hi", seconds=0.1)
    assert client.live is not None
    client.live.runner.post(c.Interrupt())
    client.live.runner.post(c.TextMessage("are you there"))
    await client.settle(1)
    assert client.every(s.Error) == []
    assert client.last(s.Response).text.strip().endswith("Here I am.")


async def test_a_model_that_keeps_failing_is_not_reconnected_at_every_frame(servers: ScriptedServers) -> None:
    made: list[ScriptedLive] = []

    def make() -> ScriptedLive:
        made.append(ScriptedLive([HangUp("gone")]))
        return made[-1]

    server = servers.open(text=[], voice=[])
    server.use(Mode.VOICE, ModelFactory(PROFILE, make))
    client = await Client(server).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(10)
    assert len(made) <= 12


async def test_a_call_keeps_listening_after_its_conversation_is_cleared(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[], voice=[])).enter()
    await client.say(c.StartListening(), seconds=0.1)
    servers.next_voice = [Hear("hello"), Say("Here.", audio_ms=500)]
    await client.say(c.ClearConversation())
    await client.speak(2)
    assert client.last(s.Response).text == "Here."

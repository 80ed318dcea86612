"""Speech is kept until it was played, for a client that reconnects."""

import asyncio
import base64
from collections.abc import AsyncIterator
from string import ascii_letters

import pytest

from antiphon.models.live import ModelFactory
from antiphon.models.text_live import text_factory
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.tools.spec import Mode
from tests.fakes.calls import Client, Server
from tests.fakes.scripted import ScriptedModel
from tests.fakes.scripted_live import PROFILE, Hear, Say, ScriptedLive
from tests.fakes.spelling import SpellingVoice, read
from tests.fakes.voice import FakeEngines

SENTENCES = [f"Sentence {name} is here to be said aloud and to be heard by somebody." for name in ascii_letters]
STORY = " ".join(SENTENCES)


@pytest.fixture
async def speaking() -> AsyncIterator[Client]:
    """A client that is playing an answer of one second."""
    voice = ScriptedLive([Hear("what time is it"), Say("It is noon.", audio_ms=1_000)])
    script = ScriptedModel([])
    server = Server(models={Mode.TEXT: text_factory(script), Mode.VOICE: ModelFactory(PROFILE, lambda: voice)})
    client = await Client(server).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(1)
    await client.settle(1)
    assert client.states[-1] == "speaking"
    yield client
    await server.aclose()


async def come_back(client: Client) -> Client:
    """Reconnects the client on a new socket that has received nothing."""
    client.drop()
    return await Client(client.server).enter(resume=client.handle, last_n=0)


async def test_unplayed_speech_is_sent_again_in_order(speaking: Client) -> None:
    back = await come_back(speaking)
    assert len(back.every(s.Audio)) == len(speaking.every(s.Audio)) > 0
    replayed = [message.n for message in back.received if message.n <= speaking.last_n]
    assert replayed == sorted(replayed)


async def test_played_speech_is_not_sent_again(speaking: Client) -> None:
    await speaking.say(c.PlaybackDone(), seconds=1)
    back = await come_back(speaking)
    assert back.every(s.Response)
    assert back.every(s.Audio) == []


async def test_interrupted_speech_is_not_sent_again(speaking: Client) -> None:
    await speaking.say(c.Interrupt(), seconds=1)
    assert (await come_back(speaking)).every(s.Audio) == []


# A client that is away for a long time.


@pytest.fixture
async def storyteller() -> AsyncIterator[Server]:
    """A server whose answer lasts 70 seconds, which is more audio than is kept."""
    voice = SpellingVoice()

    async def synthesize(text: str, voice_id: str | None, speed: float) -> bytes:
        return b"".join([sound.pcm async for sound in voice.speak(text)])

    fakes, script = FakeEngines(), ScriptedModel([STORY])
    server = Server(
        models={Mode.TEXT: text_factory(script), Mode.VOICE: fakes.factory(script, voice)},
        synthesize=synthesize,
    )
    yield server
    await server.aclose()


async def ask_and_leave(server: Server) -> Client:
    """A client that has heard the first sentences, and is then away for 80 seconds."""
    client = await Client(server).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.write("tell me a story", seconds=1)
    client.drop()
    await asyncio.sleep(80)
    return client


async def test_a_client_that_reconnects_misses_nothing_of_a_long_answer(storyteller: Server) -> None:
    client = await ask_and_leave(storyteller)
    heard = "".join(read(spoken(audio)) for audio in client.every(s.Audio))
    assert 0 < len(heard) < len(STORY)
    back = await Client(storyteller).enter(resume=client.handle, last_n=client.last_n)
    await back.settle(80)
    heard += "".join(read(spoken(audio)) for audio in back.every(s.Audio))
    assert heard.split() == STORY.split()
    assert [message.text.strip() for message in back.every(s.Response)] == [STORY]
    pieces = [audio.seq for audio in (*client.every(s.Audio), *back.every(s.Audio))]
    assert pieces == sorted(set(pieces)), "a client takes an earlier piece for the begin of another answer"
    await back.say(c.PlaybackDone(), seconds=1)
    assert back.states[-1] == "listening"


async def test_speech_is_sent_again_in_the_format_the_client_now_wants(storyteller: Server) -> None:
    client = await ask_and_leave(storyteller)
    back = await Client(storyteller).enter(resume=client.handle, last_n=client.last_n, audio=c.AudioForm.BINARY)
    await back.settle(80)
    assert back.every(s.Audio) == []
    heard = "".join(read(spoken(audio)) for audio in client.every(s.Audio))
    heard += "".join(read(frame.pcm) for frame in back.link.audio)
    assert heard.split() == STORY.split()


async def test_a_client_that_drops_again_during_resynthesis_still_hears_the_rest(storyteller: Server) -> None:
    client = await ask_and_leave(storyteller)
    heard = "".join(read(spoken(audio)) for audio in client.every(s.Audio))
    for _ in range(3):
        last_n, handle = client.last_n, client.handle
        client = await Client(storyteller).enter(resume=handle, last_n=last_n)
        await client.settle(0.12)
        heard += "".join(read(spoken(audio)) for audio in client.every(s.Audio))
        client.drop()
    back = await Client(storyteller).enter(resume=client.handle, last_n=client.last_n)
    await back.settle(80)
    heard += "".join(read(spoken(audio)) for audio in back.every(s.Audio))
    assert heard.split() == STORY.split()


def spoken(audio: s.Audio) -> bytes:
    return base64.b64decode(audio.data)[44:]

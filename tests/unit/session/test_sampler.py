"""A voice sample is one short sentence, whatever the session is doing."""

import asyncio

import pytest

from antiphon.errors import AntiphonError
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.session.speaking import SAMPLE
from tests.fakes.calls import Client, ScriptedServers


class FakeSynthesizer:
    """Synthesizes any text in half a second, and refuses an unknown voice."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None, float]] = []

    async def synthesize(self, text: str, voice: str | None, speed: float) -> bytes:
        self.asked.append((text, voice, speed))
        await asyncio.sleep(0.5)
        if voice == "nobody":
            raise AntiphonError('There is no voice "nobody".')
        return bytes(2 * 22_050)


@pytest.fixture
def synthesizer() -> FakeSynthesizer:
    return FakeSynthesizer()


@pytest.fixture
async def client(servers: ScriptedServers, synthesizer: FakeSynthesizer) -> Client:
    return await Client(servers.open(text=["Hello."], voice=[], synthesize=synthesizer.synthesize)).enter()


async def test_a_sample_is_one_audio_message_outside_any_turn(client: Client, synthesizer: FakeSynthesizer) -> None:
    await client.say(c.TestAudio("amy"), seconds=1)
    (audio,) = client.every(s.Audio)
    assert (audio.turn, audio.seq, audio.last) == (0, 0, True)
    assert synthesizer.asked == [(SAMPLE, "amy", 1.0)]
    assert client.states == ["idle"]


async def test_a_sample_uses_the_voice_and_speed_of_the_settings(client: Client, synthesizer: FakeSynthesizer) -> None:
    await client.say(c.Settings(voice="joe", voice_speed=150))
    await client.say(c.TestAudio(), seconds=1)
    assert synthesizer.asked == [(SAMPLE, "joe", 1.5)]


async def test_nothing_waits_for_a_sample(client: Client) -> None:
    await client.say(c.TestAudio(), seconds=0)
    await client.say(c.Ping(1), seconds=0.1)
    assert client.last(s.Pong).t == 1
    assert client.every(s.Audio) == []


async def test_only_the_last_of_many_requested_samples_is_synthesized(
    client: Client, synthesizer: FakeSynthesizer
) -> None:
    for voice in ("amy", "joe", "kim"):
        await client.say(c.TestAudio(voice), seconds=0.1)
    await client.settle(2)
    assert [voice for _, voice, _ in synthesizer.asked] == ["amy", "joe", "kim"]
    assert len(client.every(s.Audio)) == 1


async def test_an_unknown_voice_is_reported(client: Client) -> None:
    await client.say(c.TestAudio("nobody"), seconds=1)
    assert (client.last(s.Notice).code, client.last(s.Notice).text) == (
        "voice_unavailable",
        'There is no voice "nobody".',
    )
    assert client.every(s.Audio) == []


async def test_a_sample_is_not_repeated_to_a_client_that_comes_back(client: Client) -> None:
    await client.say(c.TestAudio(), seconds=1)
    client.drop()
    back = await Client(client.server).enter(resume=client.handle, last_n=0)
    assert back.every(s.Audio) == []


async def test_a_client_that_leaves_during_synthesis_leaves_no_task_behind(client: Client) -> None:
    await client.say(c.TestAudio(), seconds=0.1)
    client.drop(for_good=True)
    await client.settle(2)
    assert client.every(s.Audio) == []


async def test_without_a_synthesizer_there_is_no_sample(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[])).enter()
    await client.say(c.TestAudio())
    assert client.last(s.Notice).code == "voice_unavailable"

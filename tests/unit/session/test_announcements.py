"""What a session says by itself, once no turn is under way."""

from typing import Any

from antiphon.models.base import ModelError
from antiphon.models.live import LiveProfile, ModelFactory
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.session.announcements import RETRY_S, STALE_MS
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.scripted_live import PROFILE, WAITING, Hear, Say, ScriptedLive

DONE = "Your pasta timer is done."


async def call(servers: ScriptedServers, *script: Any, profile: LiveProfile = PROFILE) -> Client:
    client = await Client(servers.open(text=[], voice=script, profile=profile)).enter()
    await client.say(c.StartListening(), seconds=0.1)
    return client


def announce(client: Client, text: str = DONE) -> None:
    assert client.live is not None
    client.live.runner.announcements.add(text)


def said(client: Client) -> list[str]:
    return [message.text.strip() for message in client.every(s.Response)]


async def test_a_call_at_rest_says_it_at_once_and_listens_again(servers: ScriptedServers) -> None:
    client = await call(servers)
    announce(client)
    await client.settle(3)
    await client.say(c.PlaybackDone())
    assert servers.voice.said == [DONE]
    assert said(client) == [DONE]
    assert client.states[-3:] == ["processing", "speaking", "listening"]


async def test_the_local_voice_says_it_too(servers: ScriptedServers) -> None:
    client = await call(servers, profile=WAITING)
    announce(client)
    await client.settle(3)
    assert servers.voice.said == [DONE]


async def test_during_an_answer_it_waits(servers: ScriptedServers) -> None:
    client = await call(servers, Hear("what time is it"), Say("It is noon.", audio_ms=1_000))
    await client.speak(1)
    announce(client)
    await client.settle(0.5)
    assert servers.voice.said == []
    await client.settle(2)
    await client.say(c.PlaybackDone(), seconds=3)
    assert said(client) == ["It is noon.", DONE]


async def test_several_are_said_one_after_another(servers: ScriptedServers) -> None:
    client = await call(servers)
    announce(client)
    announce(client, "Your rice timer is done.")
    await client.settle(3)
    await client.say(c.PlaybackDone(), seconds=3)
    assert said(client) == [DONE, "Your rice timer is done."]


async def test_it_is_part_of_the_conversation(servers: ScriptedServers) -> None:
    client = await call(servers)
    announce(client)
    await client.settle(3)
    assert client.live is not None
    stored = await client.server.database.conversations.turns(client.live.runner.conversation_id)
    assert [(turn.role, turn.text.strip(), turn.spoken) for turn in stored] == [("assistant", DONE, True)]


async def test_in_text_nothing_is_said(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[], voice=[])).enter(mode=c.Mode.TEXT)
    announce(client)
    await client.settle(3)
    assert client.states == ["idle"]
    assert client.live is not None
    assert len(client.live.runner.announcements) == 0


async def test_an_announcement_that_fails_is_made_again(servers: ScriptedServers) -> None:
    client = await call(servers)
    say = servers.voice.say
    attempts: list[str] = []

    def fail_once(turn: str, text: str) -> None:
        attempts.append(text)
        if len(attempts) == 1:
            raise ModelError("The model is not there.")
        say(turn, text)

    servers.voice.say = fail_once  # type: ignore[method-assign]
    announce(client)
    await client.settle(RETRY_S / 2)
    assert said(client) == []
    await client.settle(RETRY_S + 3)
    assert said(client) == [DONE]


async def test_a_model_that_cannot_be_connected_does_not_lose_it(servers: ScriptedServers) -> None:
    client = await call(servers)
    broken = [True]

    def make() -> ScriptedLive:
        return ScriptedLive(refuses=ModelError("It is down.", retryable=False) if broken[0] else None)

    client.server.use(Mode.VOICE, ModelFactory(PROFILE, make))
    assert client.live is not None
    client.live.runner.models.close()
    announce(client)
    await client.settle(1)
    broken[0] = False
    await client.settle(60)
    assert said(client) == [DONE]


async def test_one_that_the_user_speaks_over_at_once_is_said_afterwards(servers: ScriptedServers) -> None:
    client = await call(servers, Hear("what time is it", after_ms=100, over=True), Say("It is noon.", audio_ms=500))
    announce(client)
    await client.speak(0.15)
    await client.settle(3)
    await client.say(c.PlaybackDone(), seconds=RETRY_S + 4)
    assert said(client)[-1] == DONE
    assert said(client).count(DONE) == 1


async def test_one_that_was_heard_in_part_is_not_repeated(servers: ScriptedServers) -> None:
    client = await call(servers)
    announce(client, "Your pasta timer is done. Take the pasta off the stove now.")
    await client.settle(1)
    await client.say(c.Interrupt(played_ms=700), seconds=30)
    assert len(servers.voice.said) == 1
    assert client.live is not None
    heard = [each for each in client.live.runner.writer.transcript.messages if isinstance(each, AssistantMessage)]
    assert heard[0].text


async def test_one_that_cannot_be_said_for_long_is_given_up(servers: ScriptedServers) -> None:
    client = await call(servers)

    def fail(turn: str, text: str) -> None:
        raise ModelError("The model is not there.")

    servers.voice.say = fail  # type: ignore[method-assign]
    announce(client)
    await client.settle(STALE_MS / 1000 + 120)
    assert client.live is not None
    assert len(client.live.runner.announcements) == 0
    assert client.states[-1] in ("listening", "idle")


async def test_one_that_was_made_whole_but_spoken_over_at_once_is_said_again(servers: ScriptedServers) -> None:
    client = await call(servers)
    announce(client)
    while not client.every(s.GenerationComplete):
        await client.settle(0.05)
    assert client.states[-1] == "speaking"
    await client.say(c.Interrupt(played_ms=0), seconds=RETRY_S + 5)
    assert servers.voice.said == [DONE, DONE]

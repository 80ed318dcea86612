"""Gemini Live's messages, translated to and from a session with a scripted model."""

import asyncio
from base64 import b64encode
from typing import Any

import msgspec
import pytest

from antiphon.gateway import gemini_messages as gm
from antiphon.gateway.gemini_conversation import GeminiConversation
from antiphon.gateway.gemini_input import read_setup
from antiphon.gateway.session import GatewaySession, Opening
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import BLOCKED, TAKEN_OVER, TOO_FAST, Close
from antiphon.security.quota import Kind, Limit, Quota, Rate
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from tests.fakes.calls import ScriptedServers, Server
from tests.fakes.gateway import ANN, gateway_deps
from tests.fakes.scripted_live import WAITING, Hear, Say, Use

LIGHT = {"functionDeclarations": [{"name": "set_light"}]}
FRAME = b64encode(bytes(640)).decode()
"""20 ms of silence at 16 kHz. The scripted model only counts it."""


class Talk:
    """A conversation, and what its client was sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.closed: Close | None = None
        self.conversation: GeminiConversation

    def note_close(self, close: Close) -> None:
        self.closed = self.closed or close

    @property
    def contents(self) -> list[dict[str, Any]]:
        return [message["serverContent"] for message in self.sent if "serverContent" in message]

    @property
    def kinds(self) -> list[str]:
        """What the client was sent, with repeated messages of one kind as one."""
        named = [next(iter(message.get("serverContent", message))) for message in self.sent]
        return [kind for n, kind in enumerate(named) if not n or named[n - 1] != kind]

    def give(self, **message: Any) -> None:
        self.conversation.take(gm.decode(msgspec.json.encode(message)))

    def ask(self, text: str) -> None:
        self.give(clientContent={"turns": [{"role": "user", "parts": [{"text": text}]}], "turnComplete": True})

    async def speak(self, ms: int) -> None:
        for _ in range(ms // 20):
            self.give(realtimeInput={"audio": {"data": FRAME, "mimeType": "audio/pcm;rate=16000"}})
            await asyncio.sleep(0.02)


async def begin(server: Server, quota: Quota | None = None, **setup: Any) -> Talk:
    """Opens a conversation, in text unless the set-up says otherwise."""
    modality = {"generationConfig": {"responseModalities": ["TEXT"]}}
    message = gm.decode(msgspec.json.encode({"setup": {"model": "models/m", **modality, **setup}}))
    assert message.setup is not None
    deps, talk = gateway_deps(server, quota), Talk()
    settings = read_setup(message.setup, has_voice=server.hub.has_voice)
    talk.conversation = GeminiConversation(deps, settings, send=talk.sent.append, close=talk.note_close)
    opening = Opening(
        mode=Mode.VOICE if settings.speaks else Mode.TEXT,
        application=talk.conversation.application,
        tools=talk.conversation.make_tools(),
    )
    talk.conversation.session = await GatewaySession.open(deps, ANN, opening, talk.conversation)
    talk.conversation.begin()
    return talk


SPOKEN: dict[str, Any] = {"generationConfig": {}, "outputAudioTranscription": {}, "inputAudioTranscription": {}}


async def test_a_spoken_turn_has_its_parts_in_order(servers: ScriptedServers) -> None:
    talk = await begin(servers.open(voice=[Hear("What time is it?"), Say("Noon."), Use(7, 3)]), **SPOKEN)
    await talk.speak(1_000)
    await asyncio.sleep(5)
    assert talk.kinds[:2] == ["setupComplete", "inputTranscription"]
    assert set(talk.kinds[2:-2]) == {"outputTranscription", "modelTurn"}
    assert talk.kinds[-2:] == ["generationComplete", "turnComplete"]
    assert talk.contents[0] == {"inputTranscription": {"text": "What time is it?"}}
    assert talk.sent[-1]["usageMetadata"]["totalTokenCount"] == 10


async def test_speech_comes_in_pieces_that_any_client_accepts(servers: ScriptedServers) -> None:
    talk = await begin(servers.open(voice=[Say("A long answer.", audio_ms=20_000)]), **SPOKEN)
    talk.ask("hi")
    await asyncio.sleep(30)
    spoken = [content["modelTurn"]["parts"][0]["inlineData"] for content in talk.contents if "modelTurn" in content]
    assert max(len(each["data"]) for each in spoken) <= 32_000
    assert {each["mimeType"] for each in spoken} == {"audio/pcm;rate=24000"}


async def test_a_question_over_an_answer_interrupts_it(servers: ScriptedServers) -> None:
    talk = await begin(servers.open(voice=[Say("One two three.", audio_ms=9_000), Say("Short.")]), **SPOKEN)
    talk.ask("first")
    await asyncio.sleep(1)
    talk.ask("second")
    await asyncio.sleep(8)
    first_end = talk.kinds.index("turnComplete")
    assert talk.kinds[first_end - 1] == "interrupted"
    assert talk.kinds[-2:] == ["generationComplete", "turnComplete"]


@pytest.mark.parametrize("turns", [[{"role": "user", "parts": [{"text": "The user has heard only: One."}]}], []])
async def test_content_that_asks_for_no_answer_ends_the_one_under_way(
    servers: ScriptedServers, turns: list[dict[str, Any]]
) -> None:
    server = servers.open(voice=[Say("One two three.", audio_ms=9_000), Hear("And now?"), Say("Two.")], profile=WAITING)
    talk = await begin(server, **SPOKEN)
    talk.ask("first")
    await asyncio.sleep(1)
    talk.give(clientContent={"turns": turns, "turnComplete": False})
    await asyncio.sleep(1)
    assert talk.kinds[-2:] == ["interrupted", "turnComplete"]
    await talk.speak(1_200)
    await asyncio.sleep(5)
    assert talk.kinds[-2:] == ["generationComplete", "turnComplete"]
    assert {"inputTranscription": {"text": "And now?"}} in talk.contents


async def test_speech_waits_if_it_may_not_interrupt(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Say("One two three.", audio_ms=2_000), Hear("And now?"), Say("Two.")])
    config: dict[str, Any] = {"realtimeInputConfig": {"activityHandling": "NO_INTERRUPTION"}}
    talk = await begin(server, **SPOKEN, **config)
    talk.ask("first")
    await asyncio.sleep(0.5)
    await talk.speak(1_200)
    assert servers.voice.audio_ms == 0
    await asyncio.sleep(8)
    assert "interrupted" not in talk.kinds
    assert talk.kinds.count("turnComplete") == 2


async def test_audio_sent_at_once_with_the_opening_of_the_microphone_is_heard(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Hear("One?"), Say("One."), Hear("Two?"), Say("Two.")], profile=WAITING)
    talk = await begin(server, **SPOKEN)
    await talk.speak(1_000)
    await asyncio.sleep(0.1)
    talk.give(realtimeInput={"audioStreamEnd": True})
    await asyncio.sleep(5)
    for _ in range(60):
        # Without a pause, as from a file.
        talk.give(realtimeInput={"audio": {"data": FRAME, "mimeType": "audio/pcm"}})
    await asyncio.sleep(5)
    said = [content["outputTranscription"]["text"] for content in talk.contents if "outputTranscription" in content]
    assert "".join(said) == "One.Two."


async def test_a_call_that_takes_too_long_is_cancelled(servers: ScriptedServers) -> None:
    talk = await begin(servers.open(text=[[ToolCall("call-12345", "set_light", {})], "Sorry."]), tools=[LIGHT])
    talk.ask("light")
    await asyncio.sleep(90)
    [call] = [message["toolCall"]["functionCalls"][0] for message in talk.sent if "toolCall" in message]
    assert {"toolCallCancellation": {"ids": [call["id"]]}} in talk.sent
    assert talk.kinds[-1] == "turnComplete"
    talk.give(toolResponse={"functionResponses": [{"id": call["id"], "response": {}}]})


async def test_a_response_that_will_continue_is_waited_for(servers: ScriptedServers) -> None:
    talk = await begin(servers.open(text=[[ToolCall("call-12345", "set_light", {})], "Done."]), tools=[LIGHT])
    talk.ask("light")
    await asyncio.sleep(1)
    [call] = [message["toolCall"]["functionCalls"][0] for message in talk.sent if "toolCall" in message]
    part = {"id": call["id"], "response": {"output": "working"}, "willContinue": True}
    talk.give(toolResponse={"functionResponses": [part]})
    await asyncio.sleep(1)
    assert "turnComplete" not in talk.kinds
    talk.give(toolResponse={"functionResponses": [{**part, "willContinue": False}]})
    await asyncio.sleep(1)
    assert talk.kinds[-1] == "turnComplete"


async def test_the_end_of_the_server_is_announced_in_seconds(servers: ScriptedServers) -> None:
    talk = await begin(servers.open(text=[]), sessionResumption={})
    talk.conversation.on_message(s.GoAway(9_500, "The server is restarting.", None))
    assert {"goAway": {"timeLeft": "9.5s"}} in talk.sent


@pytest.mark.parametrize(
    ("close", "told"),
    [
        (TAKEN_OVER, (1008, TAKEN_OVER.reason)),
        (BLOCKED, (1008, BLOCKED.reason)),
        (TOO_FAST, (1011, "Resource has been exhausted (e.g. check quota).")),
    ],
)
async def test_closes_are_told_with_codes_of_the_protocol(
    servers: ScriptedServers, close: Close, told: tuple[int, str]
) -> None:
    talk = await begin(servers.open(text=[]))
    talk.conversation.on_close(close)
    assert talk.closed is not None
    assert (talk.closed.code, talk.closed.reason) == told


async def test_a_client_that_floods_is_closed(servers: ScriptedServers) -> None:
    quota = Quota({Kind.MESSAGE: Limit(session=Rate(per_s=1, burst=10))})
    talk = await begin(servers.open(text=[]), quota)
    for _ in range(300):
        talk.give(realtimeInput={})
    assert talk.closed is not None
    assert talk.closed.code == 1011


async def test_a_question_over_the_quota_is_not_lost_in_silence(servers: ScriptedServers) -> None:
    talk = await begin(servers.open(text=[]), Quota({Kind.MESSAGE: Limit(session=Rate(per_s=1, burst=1))}))
    talk.give(realtimeInput={})
    with pytest.raises(gm.GeminiError, match="Resource has been exhausted") as caught:
        talk.ask("hi")
    assert caught.value.close.code == 1011


async def test_a_silent_client_is_told_nothing(servers: ScriptedServers) -> None:
    talk = await begin(servers.open(voice=[Hear("Hi?"), Say("Ho.")]), **SPOKEN)
    await talk.speak(200)
    await asyncio.sleep(1)
    talk.give(realtimeInput={"audioStreamEnd": True})
    await asyncio.sleep(5)
    assert talk.kinds == ["setupComplete"]

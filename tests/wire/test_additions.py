"""Additions to the first protocol version: hello, binary audio, confirmed settings and all other messages."""

import json
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.fakes.scripted_live import Hear, Say
from tests.wire.caller import Caller, Message, call
from tests.wire.served import serve

pytestmark = pytest.mark.real_time

QUESTION: Final = "What's the weather?"
AUDIO_MS: Final = 700
VOICE: Final = (Hear(QUESTION), Say("It's 65 degrees, and sunny.", audio_ms=AUDIO_MS))
SPEECH: Final = b"\x00" + bytes(2 * 16 * 20)
"""Twenty milliseconds of microphone audio."""


@pytest.fixture(scope="module")
def voice_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("served"), voice=VOICE) as served:
        yield served.url


async def speak(caller: Caller) -> None:
    await caller.send("start_listening")
    await caller.until("state", state="listening")
    for _ in range(45):
        await caller.socket.send(SPEECH)


async def test_audio_comes_in_binary_frames_for_a_client_that_asks_for_them(voice_url: str) -> None:
    async with call(voice_url, {"audio": "binary"}) as caller:
        await speak(caller)
        await caller.until("response")
        while sum(len(frame) - 13 for frame in caller.audio) < 2 * 22_050 * AUDIO_MS // 1000 - 8:
            await caller.hear()
    assert not caller.every("audio")
    heads = [(frame[0], *(int.from_bytes(frame[at : at + 4]) for at in (1, 5, 9))) for frame in caller.audio]
    assert [(kind, turn, seq) for kind, _, turn, seq in heads] == [(1, 1, seq) for seq in range(len(heads))]
    numbers = [n for _, n, _, _ in heads] + [message["n"] for message in caller.received]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


async def test_a_session_can_switch_from_text_to_voice_and_back(voice_url: str) -> None:
    async with call(voice_url, {"mode": "text", "client": "a test/1"}) as caller:
        assert caller.session["mode"] == "text"
        await caller.send("start_voice", pending_request=QUESTION)
        await caller.until("audio")
        await caller.send("end_voice")
        await caller.until("end_voice_session")
        await caller.until("state", state="idle")
        assert await caller.ask("What is 2 plus 3?") == "2 plus 3 is 5."


async def test_a_session_begins_in_voice_where_voice_is_available(voice_url: str) -> None:
    async with call(voice_url) as caller:
        assert caller.session["mode"] == "voice"
        await caller.send("text_message", text=QUESTION)
        await caller.until("audio", last=True)
        assert caller.states == ["idle", "processing", "speaking"]


async def test_a_session_begins_in_text_where_voice_is_unavailable(url: str) -> None:
    async with call(url, {"mode": "voice"}) as caller:
        assert caller.session["mode"] == "text"
        await caller.send("start_voice")
        assert (await caller.until("notice"))["code"] == "voice_unavailable"


async def test_speech_right_after_start_listening_is_heard(voice_url: str) -> None:
    async with call(voice_url) as caller:
        await caller.send("start_listening")
        for _ in range(40):
            await caller.socket.send(SPEECH)
        transcript = await caller.until("transcript", is_final=True)
        assert transcript["text"] == QUESTION


async def test_messages_supplied_by_a_client_become_history(url: str) -> None:
    brought = [{"role": "user", "content": "I am Ann."}, {"role": "assistant", "content": "Hello, Ann."}]
    async with call(url, {"mode": "text", "initial_messages": brought}) as caller:
        turns = (await caller.until("history"))["turns"]
    assert [{"role": turn["role"], "content": turn["content"]} for turn in turns] == brought


async def test_a_conversation_continues_in_another_session(url: str) -> None:
    async with call(url, {"mode": "text"}) as caller:
        await caller.ask("What is 2 plus 3?")
        conversation_id = caller.session["conversation_id"]
    async with call(url, {"mode": "text", "conversation_id": conversation_id}) as caller:
        history = await caller.until("history")
        assert caller.session["conversation_id"] == conversation_id
        assert [turn["role"] for turn in history["turns"]] == ["user", "assistant"]


async def test_tool_calls_are_in_the_history(url: str) -> None:
    async with call(url, {"mode": "text"}) as caller:
        await caller.ask("What is 2 plus 3?")
        called, finished = caller.every("tool_call")[-1], caller.every("tool_result")[-1]
        conversation_id = caller.session["conversation_id"]
    async with call(url, {"mode": "text", "conversation_id": conversation_id}) as caller:
        asked, answered = (await caller.until("history"))["turns"]
    assert asked["calls"] == []
    (made,) = answered["calls"]
    assert (made["name"], made["args"]) == (called["name"], called["args"])
    assert (made["result"], made["ok"]) == (finished["result"], True)


async def test_hello_comes_first_or_not_at_all(url: str) -> None:
    async with call(url, {"mode": "text"}) as caller:
        await caller.send("hello", mode="text")
        assert (await caller.until("error"))["code"] == "hello_late"


async def test_settings_are_confirmed(url: str) -> None:
    async with call(url) as caller:
        await caller.send("settings", theme="midnight", voice_speed=150, volume=0)
        received = await caller.until("settings_updated")
        assert (received["theme"], received["voice_speed"], received["volume"]) == ("midnight", 150, 0)


@pytest.mark.parametrize("wrong", [{"voice_speed": 49}, {"voice_speed": 201}, {"volume": 101}, {"theme": 7}])
async def test_invalid_settings_change_nothing(url: str, wrong: dict[str, Any]) -> None:
    async with call(url) as caller:
        await caller.send("settings", **{"theme": "dawn", "volume": 50, **wrong})
        assert (await caller.until("error"))["code"] == "bad_settings"
        await caller.send("settings", voice_speed=100)
        received = await caller.until("settings_updated")
        assert (received["theme"], received["volume"]) == (None, 80)


async def test_a_cleared_conversation_is_empty_and_the_state_stays(url: str) -> None:
    async with call(url, {"mode": "text"}) as caller:
        await caller.ask("What is 2 plus 3?")
        before = len(caller.states)
        await caller.send("clear_conversation")
        await caller.send("load_conversation", conversation_id=caller.session["conversation_id"])
        assert (await caller.until("history"))["turns"] == []
        assert len(caller.states) == before


async def test_a_voice_sample_changes_no_state(voice_url: str) -> None:
    async with call(voice_url) as caller:
        await caller.send("test_audio")
        assert await caller.is_answered()
        assert caller.received[-2]["type"] in ("audio", "notice")
        assert caller.states == ["idle"]


async def test_a_message_does_not_wait_for_the_previous_acknowledgement(url: str) -> None:
    gaps_s: list[float] = []
    async with call(url, {"mode": "text"}) as caller:
        for _ in range(10):
            await caller.send("text_message", text="What is 2 plus 3?")
            await caller.until("state", state="processing")
            begun_s = time.perf_counter()
            await caller.until("transcript")
            gaps_s.append(time.perf_counter() - begun_s)
            await caller.until("state", state="idle")
    assert min(gaps_s) < 0.03, "a delayed acknowledgement takes 40 ms"


EVERY_MESSAGE: Final[tuple[Message, ...]] = (
    {"type": "start_listening"},
    {"type": "stop_listening"},
    {"type": "interrupt", "played_ms": 10.5},
    {"type": "playback_done", "turn": 1},
    {"type": "settings", "voice": "x", "greeting": False, "captions": False},
    {"type": "clear_conversation"},
    {"type": "test_audio", "voice": "x"},
    {"type": "text_message", "text": "What is 2 plus 3?"},
    {"type": "playback", "turn": 1, "played_ms": 10},
    {"type": "confirm", "confirmation_token": "none", "approved": True},
    {"type": "start_voice", "pending_request": "What is 2 plus 3?"},
    {"type": "end_voice"},
    {"type": "load_conversation", "conversation_id": "none"},
    {"type": "ping", "t": -1},
    {"type": "hello"},
)


async def test_every_message_is_understood_regardless_of_what_precedes_it(url: str) -> None:
    async with call(url) as caller:
        for first in EVERY_MESSAGE:
            for message in (first, *EVERY_MESSAGE):
                await caller.socket.send(json.dumps(message))
            await caller.until("pong", t=-1)
        assert await caller.is_answered()
    misunderstood = {"bad_json", "bad_message", "unknown_type", "internal"}
    assert not misunderstood & {error["code"] for error in caller.every("error")}

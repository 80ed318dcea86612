"""Models that are slow to connect or never do: everything else is still answered at once."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Final

import pytest

from tests.fakes.scripted_live import Hear, Say
from tests.wire.caller import Caller, call
from tests.wire.native_child import CONNECT_DEADLINE_S, Models
from tests.wire.served import Served, serve

pytestmark = pytest.mark.real_time

SLOW_S: Final = 3.0
AT_ONCE_S: Final = 1.5
"""How long a reply that needs no model may take on a busy machine."""
SUM: Final = "What is 2 plus 3?"
FIVE: Final = "2 plus 3 is 5."
VOICE: Final = (Hear("hello", after_ms=500), Say("Hello.", audio_ms=300))
SPEECH: Final = b"\x00" + bytes(2 * 16 * 600)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("connecting")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    Models().write(folder)
    with serve(folder, child="tests.wire.native_child") as served:
        yield served


@contextmanager
def at_once() -> Iterator[None]:
    begun_s = time.monotonic()
    yield
    assert time.monotonic() - begun_s < AT_ONCE_S


async def check_that_all_else_is_answered(caller: Caller, served: Served, folder: Path) -> None:
    """While a model of this session is being connected; models that are made from now on connect at once."""
    with at_once():
        assert await caller.is_answered()
    with at_once():
        await caller.send("settings", volume=30)
        assert (await caller.until("settings_updated"))["volume"] == 30
    Models(VOICE).write(folder)
    with at_once():
        async with call(served.url, {"mode": "text"}) as other:
            assert await other.ask(SUM) == FIVE


async def type_while_connecting(caller: Caller) -> None:
    with at_once():
        await caller.send("text_message", text=SUM)
        await caller.until("state", state="processing")
        assert (await caller.until("transcript"))["text"] == SUM


@pytest.mark.parametrize(("mode", "answer"), [("text", FIVE), ("voice", "Hello.")])
async def test_only_the_typed_message_waits_for_a_slow_model(
    served: Served, folder: Path, mode: str, answer: str
) -> None:
    Models(VOICE, voice_connect_s=SLOW_S, text_connect_s=SLOW_S).write(folder)
    async with call(served.url, {"mode": mode}) as caller:
        begun_s = time.monotonic()
        await type_while_connecting(caller)
        await check_that_all_else_is_answered(caller, served, folder)
        assert not caller.every("response_chunk")
        assert (await caller.until("response"))["text"] == answer
        assert time.monotonic() - begun_s > SLOW_S
        assert not caller.every("error")


@pytest.mark.parametrize(("mode", "connect_s"), [("text", inf), ("text", SLOW_S), ("voice", SLOW_S)])
async def test_a_message_waiting_for_its_model_can_be_interrupted(
    served: Served, folder: Path, mode: str, connect_s: float
) -> None:
    Models(VOICE, voice_connect_s=connect_s, text_connect_s=connect_s).write(folder)
    async with call(served.url, {"mode": mode}) as caller:
        await type_while_connecting(caller)
        with at_once():
            await caller.send("interrupt")
            await caller.until("state", state="idle")
        await check_that_all_else_is_answered(caller, served, folder)
        if connect_s == SLOW_S:
            await asyncio.sleep(SLOW_S)
            assert await caller.is_answered()
            assert not caller.every("response")


@pytest.mark.parametrize("mode", ["text", "voice"])
async def test_a_model_that_never_connects_is_abandoned_and_the_user_is_told(
    served: Served, folder: Path, mode: str
) -> None:
    Models(VOICE, voice_connect_s=inf, text_connect_s=inf).write(folder)
    async with call(served.url, {"mode": mode}) as caller:
        begun_s = time.monotonic()
        await type_while_connecting(caller)
        await check_that_all_else_is_answered(caller, served, folder)
        error = await caller.until("error")
        assert CONNECT_DEADLINE_S - 0.5 < time.monotonic() - begun_s < CONNECT_DEADLINE_S + 2
        assert "could not be reached within 4 seconds" in error["message"]
        assert error["retryable"]
        await caller.until("state", state="idle")
        assert await caller.is_answered()
        assert await caller.ask(SUM) == FIVE, "the next try has a model"


async def test_a_call_begins_once_its_model_is_connected_and_earlier_speech_is_heard(
    served: Served, folder: Path
) -> None:
    Models(VOICE, voice_connect_s=SLOW_S).write(folder)
    async with call(served.url) as caller:
        await caller.send("start_listening")
        await caller.socket.send(SPEECH)
        await check_that_all_else_is_answered(caller, served, folder)
        assert "listening" not in caller.states
        await caller.until("state", state="listening")
        assert (await caller.until("transcript", is_final=True))["text"] == "hello"
        assert (await caller.until("response"))["text"] == "Hello."


async def test_the_conversation_continues_in_text_while_a_call_waits_for_its_model(
    served: Served, folder: Path
) -> None:
    Models(VOICE, voice_connect_s=SLOW_S).write(folder)
    async with call(served.url, {"mode": "text"}) as caller:
        await caller.send("start_voice", pending_request="hi")
        with at_once():
            assert await caller.ask(SUM) == FIVE
        assert not caller.every("audio")
        await caller.until("audio")


@pytest.mark.parametrize("mode", ["text", "voice"])
async def test_a_call_whose_model_never_connects_is_refused_and_text_continues(
    served: Served, folder: Path, mode: str
) -> None:
    Models(VOICE, voice_connect_s=inf).write(folder)
    async with call(served.url, {"mode": mode}) as caller:
        await caller.send("start_voice")
        await check_that_all_else_is_answered(caller, served, folder)
        notice = await caller.until("notice")
        assert notice["code"] == "voice_unavailable"
        assert "could not be reached within 4 seconds" in notice["text"]
        assert await caller.ask(SUM) == FIVE

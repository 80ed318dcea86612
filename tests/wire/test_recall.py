"""What was said before: asked over the protocol, without a model; and the summaries that calls leave behind."""

import asyncio
from pathlib import Path

import httpx2
import pytest

from antiphon.protocol import codec
from tests.fakes.chat_server import HANG_UP, Answer, ChatServer, End, Request, words
from tests.fakes.scripted_live import Hear, Say
from tests.wire.caller import call
from tests.wire.served import Served, serve

pytestmark = pytest.mark.real_time

MICROPHONE = codec.encode_microphone(b"\0" * 640)
NOON = (Hear("What time is it?"), Say("It is noon.", audio_ms=200))
EXTRACTIVE = "You asked what time it is."


async def test_the_offline_assistant_knows_what_was_asked(url: str) -> None:
    async with call(url, {"mode": "text"}) as caller:
        assert await caller.ask("what did I ask you?") == "You haven't asked me anything yet."
        result = await caller.ask("what is 15 percent of 80")
        assert "12" in result
        told = await caller.ask("What did I just ask you?")
        assert told.startswith("You asked what 15 percent of 80 is, and I said")
        assert "12" in told
        assert await caller.ask("What did we talk about?") == "You asked what 15 percent of 80 is."
        assert await caller.ask("What time is it in Tokyo?")
        earlier = await caller.ask("what did I ask you before?")
        assert earlier.startswith("You asked what time it is in Tokyo, and I said it's ")
        assert earlier.endswith("Before that, you asked what 15 percent of 80 is.")


async def test_the_last_answer_is_said_again(url: str) -> None:
    async with call(url, {"mode": "text"}) as caller:
        answer = await caller.ask("what time is it in Oslo")
        assert await caller.ask("Could you say that again, please?") == answer
        assert await caller.ask("what did you say?") == f"I said {answer[0].lower()}{answer[1:]}"


async def test_another_conversation_is_not_remembered(url: str) -> None:
    async with call(url, {"mode": "text"}) as caller:
        await caller.ask("what time is it in Oslo")
    async with call(url, {"mode": "text"}) as caller:
        assert await caller.ask("what did I ask you before?") == "You haven't asked me anything yet."


async def make_call(served: Served) -> None:
    """Has a short spoken call, and hangs up."""
    async with call(served.url, {"mode": "voice"}) as caller:
        await caller.send("start_listening")
        await caller.until("state", state="listening")
        for _ in range(50):
            await caller.socket.send(MICROPHONE)
            await asyncio.sleep(0.02)
        await caller.until("response")
        await caller.send("playback_done")
        await caller.until("state", state="listening")
        await caller.send("end_voice")
        await caller.until("end_voice_session")


async def read_summary(served: Served, *, until: str | None = None) -> str:
    """Returns the summary of the only call, once it is this one."""
    async with httpx2.AsyncClient(base_url=served.http, trust_env=False) as http:
        for _ in range(100):
            (record,) = (await http.get("/api/calls")).json()["calls"]
            if until is None or record["summary"] == until:
                break
            await asyncio.sleep(0.05)
    summary: str = record["summary"]
    return summary


async def test_a_call_is_summarized_by_the_text_model_after_it_has_ended(tmp_path: Path) -> None:
    better = "You wanted to know the time, and it was noon."
    async with ChatServer(lambda request: words(better), hides_warm_ups=True) as server:
        with serve(tmp_path, voice=NOON, model={"text": f"openai:{server.url}#x"}) as served:
            await make_call(served)
            assert await read_summary(served, until=better) == better
            assert served.failures == []
    (request,) = server.requests
    assert request.messages[-1]["content"] == '[{"user": "What time is it?"}, {"assistant": "It is noon."}]'
    assert not request.body.get("tools")


@pytest.mark.parametrize("answer", [HANG_UP, Answer(end=End.STALL)], ids=["failure", "silence"])
async def test_a_call_keeps_its_first_summary_without_the_model(tmp_path: Path, answer: Answer) -> None:
    asked = asyncio.Event()

    def misbehave(request: Request) -> Answer:
        asked.set()
        return answer

    async with ChatServer(misbehave, hides_warm_ups=True) as server:
        with serve(tmp_path, voice=NOON, model={"text": f"openai:{server.url}#x"}) as served:
            await make_call(served)
            async with asyncio.timeout(10):
                await asked.wait()
            assert await read_summary(served) == EXTRACTIVE
            # A summary that is under way does not keep the process from stopping.
            served.stop()
            assert served.failures == []
            assert "What time" not in served.log

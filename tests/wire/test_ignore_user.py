"""A user blocked by the model is refused by the server, whatever the client does, until the block ends."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from websockets.asyncio.client import connect

from antiphon.prompts.composer import TIMEOUT_SETTLED
from antiphon.storage.sql import Database, open_database
from tests.fakes.chat_server import Answer, ChatServer, Request, call_delta, delta, stream, words
from tests.fakes.scripted_live import Call, Hear, Say
from tests.wire.caller import Caller, Message, call
from tests.wire.served import Served, add_token, serve

pytestmark = pytest.mark.real_time

FAREWELL: Final = "That is enough for today."
ARGS: Final = {"duration_seconds": 3600, "farewell_message": FAREWELL}
VOICE: Final = (
    *(Hear("You fool."), Call("ignore_user", ARGS), Say(FAREWELL, audio_ms=500)),
    *(Hear("Are you there?"), Say("I am here.", audio_ms=500)),
)
SPEECH: Final = b"\x00" + bytes(2 * 16 * 900)


def answer(request: Request) -> Answer:
    """A model that blocks users who insult it."""
    last = request.messages[-1]
    if last["role"] == "user" and "fool" in last["content"]:
        call = {"index": 0, "id": "call_1", "type": "function"}
        arguments = f'{{"duration_seconds": 3600, "farewell_message": "{FAREWELL}"}}'
        return stream(
            call_delta({**call, "function": {"name": "ignore_user", "arguments": arguments}}), delta("tool_calls")
        )
    return words(FAREWELL if last["role"] == "tool" else "Hello.")


@asynccontextmanager
async def serving(folder: Path, **options: Any) -> AsyncIterator[Served]:
    """A server with that model."""
    async with ChatServer(answer) as model:
        with serve(folder, model={"text": f"openai:{model.url}#m"}, **options) as served:
            yield served


@asynccontextmanager
async def database_of(folder: Path) -> AsyncIterator[Database]:
    database = await open_database(folder / "data" / "antiphon.db")
    yield database
    await database.aclose()


async def insult(url: str, hello: Message | None = None) -> Caller:
    """A user who is blocked and has disconnected."""
    async with call(url, {"mode": "text", **(hello or {})}) as caller:
        await caller.send("text_message", text="You fool.")
        await caller.until("timeout")
    return caller


async def refusal_on_connect(url: str, hello: Message | None = None) -> tuple[int, list[str]]:
    """The close code, and the types of the messages before it."""
    async with connect(url) as socket:
        caller = Caller(socket)
        await caller.send("hello", **(hello or {}))
        return (await caller.closing()).code, [message["type"] for message in caller.received]


async def is_accepted(url: str, hello: Message | None = None) -> bool:
    async with call(url, {"mode": "text", **(hello or {})}) as caller:
        return (await caller.ask("Hello?")).strip() == "Hello."


async def test_the_farewell_comes_before_the_end(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        caller = await insult(served.url)
    received = [message["type"] for message in caller.received]
    assert received.index("tool_result") < received.index("response") < received.index("timeout")
    assert caller.every("response")[0]["text"].strip() == FAREWELL


async def test_the_client_learns_when_the_block_ends(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        (timeout,) = (await insult(served.url)).every("timeout")
    assert timeout["duration_seconds"] == 3600
    assert timeout["until"] == pytest.approx(time.time() * 1000 + 3_600_000, abs=60_000)
    assert timeout["message"] == FAREWELL


@pytest.mark.parametrize(
    "message",
    [
        {"type": "text_message", "text": "Sorry."},
        {"type": "start_voice", "pending_request": "Sorry."},
        {"type": "start_voice"},
        {"type": "start_listening"},
    ],
    ids=str,
)
async def test_messages_on_the_open_socket_are_not_answered_either(tmp_path: Path, message: Message) -> None:
    async with serving(tmp_path, voice=VOICE[3:]) as served, call(served.url, {"mode": "text"}) as caller:
        await caller.send("text_message", text="You fool.")
        await caller.until("timeout")
        mark = len(caller.received)
        await caller.send(**message)
        assert (await caller.until("error"))["code"] == "blocked"
        received = {each["type"] for each in caller.received[mark:]}
        assert not received & {"response_chunk", "response", "audio", "transcript"}
        assert "listening" not in caller.states


async def test_a_reconnect_is_refused_with_the_time(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        caller = await insult(served.url)
        assert await refusal_on_connect(served.url) == (4403, ["timeout"])
        assert await refusal_on_connect(served.url, {"resume": caller.session["resume"]}) == (4403, ["timeout"])


async def test_a_server_restart_does_not_lift_the_block(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await insult(served.url)
        served.stop()
    async with serving(tmp_path) as served:
        assert await refusal_on_connect(served.url) == (4403, ["timeout"])


async def test_a_server_crash_does_not_lift_the_block(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await insult(served.url)
        served.process.kill()
    async with serving(tmp_path) as served:
        assert await refusal_on_connect(served.url) == (4403, ["timeout"])


async def test_the_user_is_accepted_again_when_the_block_expires(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await insult(served.url)
        async with database_of(tmp_path) as database:
            # The tool blocks for at least half a minute, which is too long to wait for here.
            await database.blocks.unblock("local")
            await database.blocks.block("local", int(time.time() * 1000) + 1_500, FAREWELL)
        assert (await refusal_on_connect(served.url))[0] == 4403
        await asyncio.sleep(1.6)
        assert await is_accepted(served.url)


async def test_a_block_can_be_lifted_while_the_server_runs(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await insult(served.url)
        async with database_of(tmp_path) as database:
            assert await database.blocks.unblock("local")
        assert await is_accepted(served.url)


async def test_other_users_are_not_blocked(tmp_path: Path) -> None:
    ann, bob = await asyncio.to_thread(lambda: [add_token(tmp_path, user) for user in ("ann", "bob")])
    async with serving(tmp_path, server={"auth": "required"}) as served:
        await insult(served.url, {"token": ann})
        assert (await refusal_on_connect(served.url, {"token": ann}))[0] == 4403
        assert await is_accepted(served.url, {"token": bob})


async def test_in_voice_the_farewell_is_heard_and_the_call_ends(tmp_path: Path) -> None:
    async with serving(tmp_path, voice=VOICE) as served, call(served.url) as caller:
        await caller.send("start_listening")
        await caller.until("state", state="listening")
        await caller.socket.send(SPEECH)
        await caller.until("response")
        await asyncio.sleep(0.5)
        await caller.send("playback_done")
        await caller.until("end_voice_session")
        received = [message["type"] for message in caller.received]
        assert received.index("audio") < received.index("timeout") < received.index("end_voice_session")


async def test_another_call_of_the_same_user_is_no_longer_answered(tmp_path: Path) -> None:
    async with serving(tmp_path, voice=VOICE[3:]) as served, call(served.url) as caller:
        await caller.send("start_listening")
        await caller.until("state", state="listening")
        await insult(served.url)
        await caller.socket.send(SPEECH)
        await caller.until("end_voice_session")
        assert not caller.every("response")
        assert [error["code"] for error in caller.every("error")] == ["blocked"]


async def test_the_model_is_told_once_that_an_expired_block_is_settled(tmp_path: Path) -> None:
    prompts: list[str] = []

    def note(request: Request) -> Answer:
        prompts.append(request.messages[0]["content"])
        return answer(request)

    async with ChatServer(note) as model:
        with serve(tmp_path, model={"text": f"openai:{model.url}#m"}) as served:
            await insult(served.url)
            async with database_of(tmp_path) as database:
                await database.blocks.unblock("local")
                await database.blocks.block("local", int(time.time() * 1000) + 300, FAREWELL)
            await asyncio.sleep(0.4)
            prompts.clear()
            assert await is_accepted(served.url)
            assert await is_accepted(served.url)
    assert [TIMEOUT_SETTLED in prompt for prompt in prompts] == [True, False]


async def test_a_session_that_outlives_the_block_tells_the_model_too(tmp_path: Path) -> None:
    prompts: list[str] = []

    def note(request: Request) -> Answer:
        prompts.append(request.messages[0]["content"])
        return answer(request)

    async with ChatServer(note) as model:
        with serve(tmp_path, model={"text": f"openai:{model.url}#m"}) as served:
            async with call(served.url, {"mode": "text"}) as caller:
                await caller.send("text_message", text="You fool.")
                await caller.until("timeout")
                await caller.send("text_message", text="Sorry.")
                await caller.until("error")
                async with database_of(tmp_path) as database:
                    await database.blocks.unblock("local")
                    await database.blocks.block("local", int(time.time() * 1000) + 300, FAREWELL)
                await asyncio.sleep(0.4)
                prompts.clear()
                assert (await caller.ask("Hello?")).strip() == "Hello."
    assert [TIMEOUT_SETTLED in prompt for prompt in prompts] == [True]

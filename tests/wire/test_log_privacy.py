"""After every kind of failure, the log says what failed, and contains no spoken words, tokens or handles."""

import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from antiphon.security.tokens import hash_token, make_token
from tests.fakes.chat_server import HANG_UP, Answer, ChatServer, Request, call_delta, delta, refusal, stream, words
from tests.fakes.toolbox import write_tool
from tests.wire.caller import Caller
from tests.wire.served import UNLIMITED, Served, make_known, serve

pytestmark = pytest.mark.real_time

SAID: Final = "xylophone"
"""A word that only people and models say here."""
PATIENCE_S: Final = 30.0

FAILING_HANDLER: Final = """\
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    try:
        int(args["name"])
    except ValueError as error:
        raise RuntimeError("cannot greet " + args["name"]) from error
    return ok({})
"""


class Person:
    """A user who talks to the failing server, with the secrets that must stay out of its log."""

    def __init__(self, served: Served, token: str) -> None:
        self.served = served
        self.secrets = {token, hash_token(token)}
        self._token = token

    async def post(self, message: str, **options: Any) -> httpx2.Response:
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
            headers = {"Authorization": f"Bearer {self._token}"}
            url = f"{self.served.http}/api/chat"
            return await client.post(url, headers=headers, **(options or {"json": {"message": message}}))

    @asynccontextmanager
    async def call(self, **hello: Any) -> AsyncIterator[Caller]:
        async with connect(self.served.url, max_size=None) as socket:
            caller = Caller(socket)
            await caller.send("hello", token=self._token, mode="text", **hello)
            yield caller
        for session in caller.every("session"):
            self.secrets |= {session["resume"], hash_token(session["resume"])}

    async def say(self, *texts: str) -> Caller:
        """Sends texts over the socket one by one, each until its answer, an error, or the end of the connection."""
        async with self.call() as caller:
            with suppress(ConnectionClosed):
                for text in texts:
                    await caller.send("text_message", text=text)
                    received: Any = {}
                    while received.get("type") not in ("response", "error"):
                        received = json.loads(await caller.socket.recv())
                        caller.received.append(received)
        return caller

    def check_log(self) -> list[str]:
        """The warnings and errors in the log. Fails if it contains a secret or a spoken word."""
        log = self.served.log
        assert SAID not in log
        assert [secret for secret in self.secrets if secret in log] == []
        lines = map(json.loads, log.splitlines())
        return [line["event"] for line in lines if line["level"] in ("warning", "error")]


@contextmanager
def served_to(folder: Path, token: str, **options: Any) -> Iterator[Person]:
    with serve(folder, limits=UNLIMITED, server={"auth": "required"}, **options) as served:
        yield Person(served, token)


@contextmanager
def stored(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / "data" / "antiphon.db", isolation_level=None)) as connection:
        yield connection


async def test_the_log_is_private_after_the_store_was_locked(tmp_path: Path) -> None:
    token = await make_known(tmp_path, "ann")
    with served_to(tmp_path, token) as person:
        async with person.call() as caller:
            await caller.ask(f"The {SAID} is mine.")
            await caller.socket.close(1001)
        with stored(tmp_path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            assert (await person.post(f"The {SAID} is locked away.")).status_code == 503
            await person.say(f"The {SAID} is lost.")
            async with person.call(resume=caller.session["resume"]) as again:
                await again.until("error")
        assert person.check_log() != []


async def test_the_log_is_private_after_the_disk_was_full(tmp_path: Path) -> None:
    token = await make_known(tmp_path, "ann")
    with served_to(tmp_path, token, max_file_bytes=1 << 20) as person:
        while (answer := await person.post(f"The {SAID} is {'very ' * 1_000} big.")).status_code == 200:
            pass
        assert answer.status_code == 503
        await person.say(f"The {SAID} is {'very ' * 1_000} big.")
        assert person.check_log() != []


async def test_the_log_is_private_after_tables_were_deleted(tmp_path: Path) -> None:
    token = await make_known(tmp_path, "ann")
    with served_to(tmp_path, token) as person:
        await person.say(f"The {SAID} is in tune.")
        # In this order, each deletion is noticed in a different place: later tables are used earlier.
        for table in ("audit", "calls", "messages", "turns", "sessions", "conversations", "blocks"):
            with stored(tmp_path) as connection:
                connection.execute(f"DROP TABLE {table}")
            for text in (f"The {SAID} is gone.", "What is 2 plus 3?", f"Remind me to tune the {SAID} in an hour."):
                await person.post(text)
                await person.say(text, text)
        person.served.stop()
        assert person.check_log() != []


def quote(request: Request) -> str:
    """The reply of a model that repeats its prompt in an error message."""
    return f"I do not like: {request.messages[-1]['content']}"


def calling(name: str, arguments: str) -> Callable[[Request], Answer]:
    """A model that calls a tool, and accepts any result."""
    wanted = call_delta({"index": 0, "id": "1", "function": {"name": name, "arguments": arguments}})
    return lambda request: (
        words("Well.") if request.messages[-1]["role"] == "tool" else stream(wanted, delta("tool_calls"))
    )


MODEL_FAILURES: Final[dict[str, Callable[[Request], Answer]]] = {
    "a refusal": lambda request: refusal(400, {"error": {"message": quote(request)}}),
    "a failure": lambda request: refusal(500, {"error": {"message": quote(request)}}),
    "no JSON": lambda request: Answer((f"data: {{{quote(request)}\n\n".encode(),)),
    "no completion": lambda request: stream({"choices": quote(request)}),
    "an error in the stream": lambda request: stream(delta(content="Once"), {"error": {"message": quote(request)}}),
    "gone": lambda request: HANG_UP,
    "an unknown tool": calling(SAID, "{}"),
    "bad arguments": calling("calculate", f'{{"{SAID}'),
    "wrong arguments": calling("calculate", json.dumps({"expression": [SAID]})),
    # The last one, since the model is not asked again for a while.
    "too many": lambda request: refusal(429, {"error": {"message": quote(request)}}),
}


async def test_the_log_is_private_after_the_model_failed(tmp_path: Path) -> None:
    token = await make_known(tmp_path, "ann")

    def fail(request: Request) -> Answer:
        asked = next(message["content"] for message in reversed(request.messages) if message["role"] == "user")
        return MODEL_FAILURES[asked.partition(" and ")[0]](request)

    async with ChatServer(fail) as model:
        with served_to(tmp_path, token, model={"text": f"openai:{model.url}#m"}) as person:
            for kind in MODEL_FAILURES:
                await person.post(f"{kind} and a {SAID}")
                await person.say(f"{kind} and a {SAID}")
            person.served.stop()
            person.check_log()
    assert len(model.requests) >= 2 * len(MODEL_FAILURES) - 1


async def test_the_log_is_private_after_a_tool_failed(tmp_path: Path) -> None:
    write_tool(tmp_path / "tools", "greet", files={"handler.py": FAILING_HANDLER})
    token = await make_known(tmp_path, "ann")
    async with ChatServer(calling("greet", json.dumps({"name": f"the {SAID}"}))) as model:
        with served_to(tmp_path, token, model={"text": f"openai:{model.url}#m"}) as person:
            answered = await person.post(f"Greet the {SAID}.")
            assert [run["ok"] for run in answered.json()["toolCalls"]] == [False]
            await person.say(f"Greet the {SAID}.")
            assert "handler_failed" in person.check_log()


async def test_the_log_is_private_after_meaningless_frames_and_requests(tmp_path: Path) -> None:
    token, wrong = await make_known(tmp_path, "ann"), make_token()
    with served_to(tmp_path, token) as person:
        person.secrets |= {wrong, hash_token(wrong)}
        async with person.call() as caller:
            for frame in (
                f"{{ {SAID}",
                json.dumps({"type": SAID}),
                json.dumps({"type": "text_message", "text": [SAID]}),
                json.dumps({"type": "settings", "theme": SAID * 1_000}),
                json.dumps({"type": "confirm", "confirmation_token": SAID, "approved": True}),
                json.dumps({"type": "load_conversation", "conversation_id": SAID}),
                json.dumps({"type": "hello", "token": token, "resume": SAID}),
                b"\x00" + SAID.encode()[:8],
            ):
                await caller.socket.send(frame)
            assert await caller.is_answered()
            await caller.socket.send(f'{{"type": "text_message", "text": "{SAID}'.encode() + b"\xff", text=True)
            assert (await caller.closing()).code == 1007
        for body in (b"{" + SAID.encode(), json.dumps({SAID: 1}).encode(), json.dumps({"message": [SAID]}).encode()):
            assert (await person.post("", content=body)).status_code == 400
        async with httpx2.AsyncClient() as client:
            headers = {"Authorization": f"Bearer {wrong}"}
            await client.get(f"{person.served.http}/api/tools", params={"q": SAID}, headers=headers)
            await client.get(f"{person.served.http}/{token}", headers={"Origin": "https://evil.example"})
        assert person.check_log().count("request_refused") == 2

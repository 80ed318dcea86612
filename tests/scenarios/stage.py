"""A server of its own for each scenario, with the simulated providers behind it, and a person who uses it."""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import httpx2

from antiphon.config import Continuity, Ladder, Model, Settings
from antiphon.serve import run_server
from tests.fakes.chat_server import Answer, ChatServer, Request, words
from tests.scenarios.providers import Providers, Said
from tests.wire.caller import PATIENCE_S, Caller, Message, call

PLAYED_MS: Final = 60_000
"""Longer than any answer."""
TOO_MANY: Final = {"refuse": {"status": 429, "retry_after_s": 60}}
"""The provider refuses a connection."""
LOOK_S: Final = 0.05
SUMMARY: Final = "You asked for some sums and got them. (This summary was written by the summary model.)"


@dataclass(frozen=True)
class Served:
    url: str
    stop: Callable[[], None]
    """Begins to stop the server. Its clients are told."""

    async def get(self, path: str) -> Any:
        return await self._request("GET", path)

    async def put(self, path: str, body: Any) -> Any:
        return await self._request("PUT", path, body)

    async def said(self, conversation_id: str) -> list[Said]:
        """The stored turns of a conversation, without tools."""
        turns = (await self.get(f"/api/conversations/{conversation_id}"))["turns"]
        told = [(turn["message"]["role"], turn["message"].get("text", "").strip()) for turn in turns]
        return [each for each in told if each[0] in ("user", "assistant") and each[1]]

    async def _request(self, method: str, path: str, body: Any = None) -> Any:
        base = self.url.replace("ws:", "http:").removesuffix("/ws")
        async with httpx2.AsyncClient(base_url=base, trust_env=False) as http:
            answer = await http.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json()


class Person(Caller):
    """A client that talks by typing, in a call or in text."""

    async def ask(self, text: str) -> str:
        """Asks, hears the whole answer, and returns it."""
        await self.send("text_message", text=text)
        return await self.hear_answer()

    async def hear_answer(self) -> str:
        """Reads the answer that is on its way. Its audio counts as heard at once, so that nobody waits for it."""
        answer: str = (await self.until("response"))["text"].strip()
        if self.states[-1] == "speaking":
            await self.until("generation_complete")
            await self.send("interrupt", played_ms=PLAYED_MS)
        while self.states[-1] not in ("listening", "idle"):
            await self.until("state")
        return answer

    async def begin_call(self) -> None:
        """Opens the microphone."""
        await self.send("start_listening")
        await self.until("state", state="listening")

    async def until_energy(self, level: int) -> Message:
        return await self.until("energy", level=level)

    @property
    def last_n(self) -> int:
        return max(int(each["n"]) for each in self.received)

    def codes(self) -> list[str]:
        """The codes of the notices so far."""
        return [each["code"] for each in self.every("notice")]


@asynccontextmanager
async def connected(url: str, **hello: Any) -> AsyncIterator[Person]:
    async with call(url, hello) as caller:
        person = Person(caller.socket)
        person.received = caller.received
        yield person


@asynccontextmanager
async def serve(
    folder: Path,
    *,
    voice: Mapping[str, str] | None = None,
    text: Mapping[str, str] | None = None,
    models_dir: Path | None = None,
    summarize: Literal["always", "auto"] = "always",
    summary_model: str = "",
) -> AsyncIterator[Served]:
    """Runs a server inside this process. `voice` and `text` are its ladders."""
    voice, text = voice or {}, text or {"2": "builtin"}
    settings = Settings(
        project_dir=folder,
        data_dir=folder / "data",
        shared_models_dir=models_dir,
        model=Model(text=text["2"], voice=voice.get("3", "none"), local_first=False),
        ladder=Ladder.model_validate({"voice": dict(voice), "text": dict(text)}),
        continuity=Continuity(summarize=summarize, summary_model=summary_model),
    )
    interval_s = sys.getswitchinterval()
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    running = asyncio.create_task(
        run_server(
            settings, port=0, needs_voice=bool(voice), handles_signals=False, stop=stop, on_started=url.set_result
        )
    )
    try:
        first: list[asyncio.Future[Any]] = [running, url]
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        yield Served(await url, stop.set)
    finally:
        stop.set()
        await running
        # The server sets these for the whole process, in which other tests run.
        sys.setswitchinterval(interval_s)
        gc.unfreeze()


class ChatModels(ChatServer):
    """The text models of a provider. Each answers with words of its own, or is limited."""

    def __init__(self) -> None:
        super().__init__(self._reply, hides_warm_ups=True)
        self.limited: dict[str, Answer] = {}
        """How a model that is over its rate limit refuses."""
        self._counts: dict[str, int] = {}

    def name(self, model: str) -> str:
        """The name by which the settings know a model."""
        return f"openai:{self.url}#{model}"

    def asked(self, model: str) -> list[Request]:
        return [request for request in self.requests if request.method == "POST" and request.body["model"] == model]

    def _reply(self, request: Request) -> Answer:
        model = request.body["model"]
        if model in self.limited:
            return self.limited[model]
        if model == "summary":
            return words(SUMMARY)
        self._counts[model] = self._counts.get(model, 0) + 1
        return words(f"The {model} model gives answer {self._counts[model]}.")


def spoken(messages: Sequence[Message]) -> list[Said]:
    """The messages of a request to a chat model that people and assistants have said."""
    roles = ("user", "assistant")
    return [(each["role"], each["content"].strip()) for each in messages if each["role"] in roles and each["content"]]


@asynccontextmanager
async def call_at_level_2(
    folder: Path, providers: Providers, chat: ChatModels, *, summarize: Literal["always", "auto"], **hello: Any
) -> AsyncIterator[tuple[Served, Person]]:
    """A person in a call. The best model is rate-limited from the start, so the call is at level 2."""
    providers.gemini.arm("connect", TOO_MANY)
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(
            serve(folder, voice=providers.ladder, summarize=summarize, summary_model=chat.name("summary"))
        )
        person = await stack.enter_async_context(connected(served.url, mode="voice", **hello))
        await person.begin_call()
        yield served, person


async def until(is_true: Callable[[], bool]) -> None:
    """Waits for something that happens elsewhere, such as in a simulator."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_true():  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)

"""A conversation goes from text to voice and back, on every live model: the cascade, Gemini Live and OpenAI Realtime.

The text model is a chat server that keeps what it was asked; the cascade answers with it too.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon.config import Assistant
from antiphon.prompts.composer import HISTORY_HEADING, SUMMARY_HEADING
from tests.e2e.voices import SLT, make_clips
from tests.fakes.chat_server import HANG_UP, words
from tests.scenarios.providers import Providers, Said, Upstream
from tests.scenarios.stage import SUMMARY, ChatModels, Person, Served, connected, serve, spoken, until

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(90)]

CASCADE: Final = "cascade"
GEMINI: Final = "gemini-live"
OPENAI: Final = "openai-realtime"
FRAME_BYTES: Final = 640
TYPED: Final = ("I have a cat", "I have a dog")
ASKED: Final = "what is seventeen times six"
NEXT: Final = "what is 7 times 7"


@dataclass(frozen=True)
class Live:
    """A server with one of the models for calls."""

    name: str
    served: Served
    providers: Providers
    chat: ChatModels

    def upstreams(self) -> list[Upstream]:
        """The sessions of the voice model, as its provider saw them."""
        return self.providers.gemini_sessions() if self.name == GEMINI else self.providers.openai_sessions()

    def told(self, asked: str) -> list[Said]:
        """The conversation that the voice model knew when it was asked this."""
        if self.name == CASCADE:
            found = [spoken(each.messages) for each in self.chat.asked("standard")]
            [*_, context] = [each[:-1] for each in found if each[-1][1].endswith(asked)]
            return [(role, text.rpartition("\n\n")[2]) for role, text in context]
        [upstream] = self.upstreams()
        assert upstream.asked[0] == asked
        return upstream.history


@pytest.fixture(params=[CASCADE, GEMINI, OPENAI])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def question(models_dir: Path) -> bytes:
    """The sound of a question."""
    return make_clips(models_dir, [(SLT, ASKED)])[SLT, ASKED]


@asynccontextmanager
async def serve_live(
    name: str, folder: Path, providers: Providers, chat: ChatModels, models_dir: Path
) -> AsyncIterator[Live]:
    model = {CASCADE: CASCADE, GEMINI: providers.gemini_model(), OPENAI: providers.openai_model}[name]
    async with serve(
        folder,
        voice={"3": model, "1": model},
        text={"2": chat.name("standard")},
        models_dir=models_dir,
        summary_model=chat.name("summary"),
    ) as served:
        yield Live(name, served, providers, chat)


async def type_all(person: Person, texts: Sequence[str] = TYPED) -> list[Said]:
    said: list[Said] = []
    for text in texts:
        said += [("user", text), ("assistant", await person.ask(text))]
    return said


async def start_call(person: Person, **fields: Any) -> None:
    await person.send("start_voice", **fields)
    await person.until("state", state="listening")


async def start_call_after_greeting(person: Person) -> None:
    await person.send("start_voice")
    await person.hear_answer()


async def end_call(person: Person) -> None:
    await person.send("end_voice")
    await person.until("end_voice_session")
    while person.states[-1] != "idle":
        await person.until("state")


async def test_a_conversation_goes_from_text_to_voice_and_back_and_only_a_new_one_is_greeted(
    name: str, tmp_path: Path, providers: Providers, chat: ChatModels, models_dir: Path
) -> None:
    async with (
        serve_live(name, tmp_path, providers, chat, models_dir) as live,
        connected(live.served.url, mode="text") as person,
    ):
        said = await type_all(person)
        await start_call(person)
        if name != CASCADE:
            [upstream] = live.upstreams()
            assert upstream.order == ["setup", "history"]
            assert HISTORY_HEADING in upstream.instructions
        said += [("user", NEXT), ("assistant", await person.ask(NEXT))]
        assert live.told(NEXT) == said[:-2]
        assert len(person.every("generation_complete")) == len(said) / 2, "nobody was greeted, or answered twice"

        await end_call(person)
        said += await type_all(person, ["what do you know of me"])
        assert spoken(chat.asked("standard")[-1].messages) == said[:-1]
        assert await live.served.said(person.session["conversation_id"]) == said

        async with connected(live.served.url, mode="text") as another:
            await another.send("start_voice")
            assert await another.hear_answer() == Assistant().greeting, "without a history, the call begins so"


async def test_a_pending_request_is_answered_first_and_what_was_said_meanwhile_comes_after_it(
    name: str, tmp_path: Path, providers: Providers, chat: ChatModels, models_dir: Path
) -> None:
    for each in (providers.gemini, providers.openai):
        each.arm("connect", {"stall": {"seconds": 0.5}})
    async with (
        serve_live(name, tmp_path, providers, chat, models_dir) as live,
        connected(live.served.url, mode="text") as person,
    ):
        said = await type_all(person)
        await person.send("start_voice", pending_request=NEXT)
        for _ in range(10):
            await person.socket.send(b"\x00" + bytes(FRAME_BYTES))
        await person.hear_answer()
        assert live.told(NEXT) == said
        if name != CASCADE:
            await until(lambda: live.upstreams()[0].heard_audio)
            assert live.upstreams()[0].order[:4] == ["setup", "history", "asked", "audio"]
        assert [each["text"] for each in person.every("transcript")] == [*TYPED, NEXT]


async def test_a_spoken_turn_belongs_to_the_conversation_even_if_it_begins_before_the_model_is_connected(
    name: str, tmp_path: Path, providers: Providers, chat: ChatModels, models_dir: Path, question: bytes
) -> None:
    for each in (providers.gemini, providers.openai):
        each.arm("connect", {"stall": {"seconds": 0.5}})
    async with (
        serve_live(name, tmp_path, providers, chat, models_dir) as live,
        connected(live.served.url, mode="text") as person,
    ):
        said = await type_all(person)
        await person.send("start_voice")
        microphone = asyncio.create_task(say(person, question))
        answer = await person.hear_answer()
        await microphone
        while len(transcripts := [each for each in person.every("transcript") if each["is_final"]]) == len(TYPED):
            # A provider may write down what it heard after it has answered.
            await person.until("transcript", is_final=True)
        heard = transcripts[-1]["text"]
        assert "17 times 6" in heard.lower().replace("seventeen", "17").replace("six", "6")

        await end_call(person)
        await person.ask(NEXT)
        said += [("user", heard), ("assistant", answer), ("user", NEXT)]
        assert spoken(chat.asked("standard")[-1].messages) == said
        turns = (await live.served.get(f"/api/conversations/{person.session['conversation_id']}"))["turns"]
        of = {turn["message"].get("text", "").strip(): turn["spoken"] for turn in turns}
        assert [of[text] for _, text in said] == [False] * 4 + [True, True, False]


async def say(person: Person, pcm: bytes) -> None:
    """Speaks, and is silent afterwards."""
    frames = [pcm[at : at + FRAME_BYTES] for at in range(0, len(pcm), FRAME_BYTES)]
    for frame in [*frames, *[bytes(FRAME_BYTES)] * 75]:
        await person.socket.send(b"\x00" + frame.ljust(FRAME_BYTES, b"\0"))
        await asyncio.sleep(0.02)


async def test_of_a_long_history_the_voice_model_gets_a_summary_and_the_newest_turns(
    name: str, tmp_path: Path, providers: Providers, chat: ChatModels, models_dir: Path
) -> None:
    numbers = " ".join(map(str, range(1_800)))
    long = [f"List {letter}: {numbers}" for letter in "abcdefghijklmnop"]
    async with (
        serve_live(name, tmp_path, providers, chat, models_dir) as live,
        connected(live.served.url, mode="text") as person,
    ):
        said = await type_all(person, [*long, *TYPED])
        await start_call(person)
        await person.ask(NEXT)
        told = live.told(NEXT)
        assert 4 <= len(told) < len(said)
        assert told == said[-len(told) :]
        if name == CASCADE:
            instructions = chat.asked("standard")[-1].messages[0]["content"]
        else:
            instructions = live.upstreams()[0].instructions
        assert SUMMARY in instructions.partition(SUMMARY_HEADING)[2]
        [request] = chat.asked("summary")
        assert "List a" in str(request.messages)


async def test_a_message_that_was_not_answered_in_text_is_answered_by_voice(
    name: str, tmp_path: Path, providers: Providers, chat: ChatModels, models_dir: Path
) -> None:
    async with (
        serve_live(name, tmp_path, providers, chat, models_dir) as live,
        connected(live.served.url, mode="text") as person,
    ):
        said = await type_all(person)
        chat.limited["standard"] = HANG_UP
        await person.send("text_message", text=NEXT)
        await person.until("error")
        del chat.limited["standard"]
        await person.send("start_voice")
        answer = await person.hear_answer()
        assert live.told(NEXT) == said
        assert await live.served.said(person.session["conversation_id"]) == [
            *said,
            ("user", NEXT),
            ("assistant", answer),
        ]


async def test_the_voice_model_knows_an_answer_that_was_written_while_it_was_connected(
    tmp_path: Path, providers: Providers, chat: ChatModels, models_dir: Path
) -> None:
    async with (
        serve_live(OPENAI, tmp_path, providers, chat, models_dir) as live,
        connected(live.served.url, mode="text") as person,
    ):
        chat.limited["standard"] = replace(words("This answer takes a while."), pause_s=0.2)
        await person.send("text_message", text=TYPED[0])
        await person.until("response_chunk")
        await start_call(person)
        said = [("user", TYPED[0]), ("assistant", person.every("response")[-1]["text"].strip())]
        await person.ask(NEXT)
        assert live.told(NEXT) == said


async def test_the_next_call_knows_what_was_typed_since_the_last_one(
    tmp_path: Path, providers: Providers, chat: ChatModels, models_dir: Path
) -> None:
    async with (
        serve_live(GEMINI, tmp_path, providers, chat, models_dir) as live,
        connected(live.served.url, mode="text") as person,
    ):
        await start_call_after_greeting(person)
        await person.ask(NEXT)
        await end_call(person)
        typed = await type_all(person)
        await start_call(person)
        await person.ask("what is 2 plus 3")
        _, upstream = live.upstreams()
        told = upstream.history + [("user", text) for text in upstream.asked[:-1]]
        assert set(typed) <= set(told)


async def test_a_call_that_follows_the_last_one_goes_on_with_its_upstream_session(
    tmp_path: Path, providers: Providers, chat: ChatModels, models_dir: Path
) -> None:
    async with (
        serve_live(GEMINI, tmp_path, providers, chat, models_dir) as live,
        connected(live.served.url, mode="text") as person,
    ):
        await start_call_after_greeting(person)
        await person.ask(NEXT)
        await end_call(person)
        await start_call(person)
        assert "7 times 7" in await person.ask("what did I ask you before")
        _, upstream = live.upstreams()
        assert upstream.handle is not None
        assert upstream.history == []
        assert person.codes() == []

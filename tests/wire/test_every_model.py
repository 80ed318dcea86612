"""`/ws` behaves the same whichever model is behind it: the local cascade, Gemini Live, OpenAI or Azure Realtime."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.fakes import gardener
from tests.fakes.toolbox import document, write_tool
from tests.fakes.voice import wave
from tests.wire.caller import PATIENCE_S, Caller, Message, call
from tests.wire.model_child import KIND_FILE, SAID_FILE, Kind, vocabulary
from tests.wire.served import Served, serve
from tests.wire.test_confirmation import write_garden
from tests.wire.test_native_models import BELL, NOTHING, start

pytestmark = pytest.mark.real_time

SPEECH: Final = wave(600, 4_000)
"""What a server of a vendor takes for the next words."""
SILENCE: Final = bytes(2 * 16 * 1_200)
LOOK: Final = BELL.replace('"rings"', '"looks"').replace("The bell has rung.", "It is sunny.")


@dataclass(frozen=True)
class Garden:
    """A server, its tools, and what is behind it."""

    served: Served
    folder: Path
    kind: Kind

    def will_hear(self, *phrases: str) -> None:
        """What the user says in the next call."""
        (self.folder / SAID_FILE).write_text("\n".join(phrases))

    def lines(self, tool: str, name: str) -> int:
        """How often a tool has run."""
        file = self.folder / "tools" / tool / name
        return len(file.read_text().splitlines()) if file.exists() else 0

    async def begin_to_say(self, caller: Caller, phrase: str) -> None:
        """The user says this, and may go on."""
        await send(caller, SILENCE[:16_000] + (vocabulary().say(phrase) if self.kind is Kind.CASCADE else SPEECH))

    async def hear(self, caller: Caller, phrase: str) -> None:
        """The user says this, and is silent then."""
        await self.begin_to_say(caller, phrase)
        await send(caller, SILENCE)

    async def ask(self, caller: Caller, phrase: str) -> str:
        """The user says this, and hears the answer to its end."""
        mark = len(caller.received)
        await self.hear(caller, phrase)
        await play(caller)
        # A vendor may tell what it heard after its answer.
        while not any(message.get("text") == phrase for message in finals(caller, mark)):
            await caller.hear()
        return responses(caller, mark)[-1]

    async def history(self, caller: Caller) -> list[tuple[str, str]]:
        """Who said what, as it is stored."""
        id = caller.session["conversation_id"]
        async with httpx2.AsyncClient(base_url=self.served.http) as http:
            turns = (await http.get(f"/api/conversations/{id}")).json()["turns"]
        messages = [turn["message"] for turn in turns]
        return [(each["role"], each["text"].strip()) for each in messages if each["role"] != "tool" and each["text"]]


async def send(caller: Caller, pcm: bytes) -> None:
    for at in range(0, len(pcm), 640):
        await caller.socket.send(b"\x00" + pcm[at : at + 640])


async def play(caller: Caller) -> None:
    """Plays the answer to its end. A `playback_done` that comes before the audio can have been played is ignored."""
    await caller.until("generation_complete")
    async with asyncio.timeout(PATIENCE_S):
        while caller.states[-1] != "listening":
            await caller.send("playback_done")
            with suppress(TimeoutError):
                await asyncio.wait_for(caller.until("state", state="listening"), 0.2)


def finals(caller: Caller, mark: int = 0) -> list[Message]:
    return [m for m in caller.received[mark:] if m["type"] == "transcript" and m["is_final"]]


def responses(caller: Caller, mark: int = 0) -> list[str]:
    return [message["text"].strip() for message in caller.received[mark:] if message["type"] == "response"]


@pytest.fixture(scope="module", params=list(Kind))
def garden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Garden]:
    folder = tmp_path_factory.mktemp("garden")
    write_garden(folder)
    for name, handler in (("ring_bell", BELL), ("look_outside", LOOK)):
        write_tool(
            folder / "tools",
            name,
            category="action",
            sideEffects="writes",
            idempotent=False,
            parameters=NOTHING,
            files={"handler.py": handler, "doc.md": document(name, "{}")},
        )
    (folder / KIND_FILE).write_text(request.param)
    with serve(folder, child="tests.wire.model_child", assistant={"greeting": ""}) as served:
        yield Garden(served, folder, request.param)


async def test_a_spoken_question_is_answered_with_audio(garden: Garden) -> None:
    garden.will_hear(gardener.HELLO)
    async with call(garden.served.url) as caller:
        await start(caller)
        assert await garden.ask(caller, gardener.HELLO) == "Hello there."
    assert caller.every("audio")
    assert [final["text"] for final in finals(caller)] == [gardener.HELLO]
    assert caller.states == ["idle", "listening", "processing", "speaking", "listening"]
    assert await garden.history(caller) == [("user", gardener.HELLO), ("assistant", "Hello there.")]


async def test_words_typed_in_a_call_are_answered_aloud(garden: Garden) -> None:
    garden.will_hear()
    async with call(garden.served.url) as caller:
        await start(caller)
        await caller.send("text_message", text=gardener.HELLO)
        await play(caller)
    assert responses(caller) == ["Hello there."]
    assert caller.every("audio")


async def test_a_call_of_a_tool_runs_once_and_its_result_is_told(garden: Garden) -> None:
    garden.will_hear(gardener.RING)
    before = garden.lines("ring_bell", "rings")
    async with call(garden.served.url) as caller:
        await start(caller)
        assert await garden.ask(caller, gardener.RING) == "I have rung it."
    assert garden.lines("ring_bell", "rings") == before + 1
    assert [message["name"] for message in caller.every("tool_call")] == ["ring_bell"]
    assert [message["ok"] for message in caller.every("tool_result")] == [True]


async def test_two_calls_of_one_message_both_run(garden: Garden) -> None:
    garden.will_hear(gardener.RING_AND_LOOK)
    before = garden.lines("ring_bell", "rings"), garden.lines("look_outside", "looks")
    async with call(garden.served.url) as caller:
        await start(caller)
        assert await garden.ask(caller, gardener.RING_AND_LOOK) == "I have rung it, and it is sunny."
    assert (garden.lines("ring_bell", "rings"), garden.lines("look_outside", "looks")) == (before[0] + 1, before[1] + 1)
    assert len(responses(caller)) == 1


async def test_a_spoken_yes_lets_the_action_run_once(garden: Garden) -> None:
    garden.will_hear(gardener.WATER, gardener.YES)
    before = garden.lines("water_plants", "watered")
    async with call(garden.served.url) as caller:
        await start(caller)
        assert await garden.ask(caller, gardener.WATER) == "Shall I water the garden?"
        assert garden.lines("water_plants", "watered") == before
        await garden.hear(caller, gardener.YES)
        while "The garden is wet now." not in responses(caller):
            await play(caller)
    assert garden.lines("water_plants", "watered") == before + 1
    assert [message["outcome"] for message in caller.every("confirmation_resolved")] == ["approved"]


async def test_after_a_spoken_no_a_repeated_call_is_refused(garden: Garden) -> None:
    garden.will_hear(gardener.WATER, gardener.NO, gardener.HELLO)
    before = garden.lines("water_plants", "watered")
    async with call(garden.served.url) as caller:
        await start(caller)
        await garden.ask(caller, gardener.WATER)
        assert await garden.ask(caller, gardener.NO) == "Then I leave it."
        assert await garden.ask(caller, gardener.HELLO) == "Hello there."
    assert garden.lines("water_plants", "watered") == before
    assert len(caller.every("tool_call")) > 1
    assert not any(message["ok"] for message in caller.every("tool_result"))
    assert {message["outcome"] for message in caller.every("confirmation_resolved")} == {"denied"}


async def test_speech_over_the_answer_stops_it(garden: Garden) -> None:
    garden.will_hear(gardener.STORY, gardener.HELLO)
    async with call(garden.served.url) as caller:
        await start(caller)
        await garden.hear(caller, gardener.STORY)
        await caller.until("audio")
        await asyncio.sleep(0.5)
        await garden.begin_to_say(caller, gardener.HELLO)
        await caller.until("state", state="interrupted")
        await send(caller, SILENCE)
        await play(caller)
        while finals(caller)[-1]["text"] != gardener.HELLO:
            await caller.hear()
    said = await garden.history(caller)
    assert [role for role, _ in said] == ["user", "assistant"] * 2
    assert len(said[1][1]) < len(gardener.LONG)
    assert gardener.LONG.startswith(said[1][1].rstrip("…"))
    assert said[3] == ("assistant", "Hello there.")


async def test_an_interruption_by_button_stops_the_answer(garden: Garden) -> None:
    garden.will_hear(gardener.STORY, gardener.HELLO)
    async with call(garden.served.url) as caller:
        await start(caller)
        await garden.hear(caller, gardener.STORY)
        await caller.until("audio")
        await caller.send("interrupt", played_ms=400)
        await caller.until("state", state="listening")
        mark = len(caller.received)
        assert await garden.ask(caller, gardener.HELLO) == "Hello there."
        assert not [m for m in caller.received[mark:] if m["type"] == "response_chunk" and "king" in m["text"]]
    said = await garden.history(caller)
    assert len(said[1][1]) < len(gardener.LONG)


async def test_what_was_typed_before_the_call_is_known_in_it(garden: Garden) -> None:
    garden.will_hear(gardener.HELLO)
    async with call(garden.served.url, {"mode": "text"}) as caller:
        await caller.ask("what is 2 plus 3?")
        await caller.send("start_voice")
        await caller.until("state", state="listening")
        assert await garden.ask(caller, gardener.HELLO) == "Hello there."
    roles = [role for role, _ in await garden.history(caller)]
    assert roles == ["user", "assistant"] * 2

"""Live models of both flavours over the wire. A native one answers by itself, and its transcripts come before, within
or after the answer, or never. Whatever the order of arrival, what is stored and exported reads in the order of the
conversation."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import httpx2
import pytest

from tests.fakes.scripted_live import Barge, Call, Cancel, GoOn, Hear, Say, Step
from tests.fakes.toolbox import document, write_tool
from tests.wire.caller import Caller, Message, call
from tests.wire.native_child import Models
from tests.wire.served import Served, serve
from tests.wire.test_confirmation import DONE, QUESTION, write_garden

pytestmark = pytest.mark.real_time

FRAME: Final = b"\x00" + bytes(2 * 16 * 120)
"""More audio than any `Hear` of these tests needs."""
LONG_FRAME: Final = b"\x00" + bytes(2 * 16 * 400)
"""Enough audio to count as speech for `stop_listening`."""
TIME: Final = "What time is it?"
NOON: Final = "It's noon, sir. And sunny."
STORY: Final = (
    "Once there was a king, who had a daughter. She had a dog, which was old. The dog had a bone, and the bone was "
    "white. The king was sad, the dog was glad, and the daughter slept. One day a wolf came, and they all ran."
)
JOKE: Final = "Why did the chicken cross the road? It wanted to see, what was there. Nothing was there, but a chicken."

BELL: Final = """\
from pathlib import Path

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok

HERE = Path(__file__).parent


async def execute(args: Args, context: Context) -> ToolResult:
    with (HERE / "rings").open("a") as lines:
        lines.write("ring\\n")
    return ok({"rung": True}, spoken="The bell has rung.")
"""
SLOW: Final = """\
import asyncio
from pathlib import Path

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok

HERE = Path(__file__).parent


async def execute(args: Args, context: Context) -> ToolResult:
    try:
        await asyncio.sleep(8)
    except asyncio.CancelledError:
        (HERE / "stopped").touch()
        raise
    return ok({"found": True}, spoken="I found it.")
"""
NOTHING: Final = {"type": "object", "additionalProperties": False, "required": [], "properties": {}}


@dataclass(frozen=True)
class Voice:
    """A server, and its voice model."""

    served: Served
    folder: Path
    waits: bool

    def write(self, *script: Step, latency_ms: int = 0) -> None:
        """Writes the script of the next call's model."""
        Models(script, latency_ms=latency_ms).write(self.folder)

    def tool_file(self, tool: str, name: str) -> Path:
        return self.folder / "tools" / tool / name


@contextmanager
def voice_in(folder: Path, *, waits: bool) -> Iterator[Voice]:
    write_garden(folder)
    write_tool(
        folder / "tools",
        "ring_bell",
        category="action",
        sideEffects="writes",
        idempotent=False,
        parameters=NOTHING,
        files={"handler.py": BELL, "doc.md": document("ring_bell", "{}")},
    )
    write_tool(
        folder / "tools",
        "search_attic",
        latencyBudgetMs=10_000,
        parameters=NOTHING,
        files={"handler.py": SLOW, "doc.md": document("search_attic", "{}")},
    )
    Models(waits=waits).write(folder)
    with serve(folder, child="tests.wire.native_child") as served:
        yield Voice(served, folder, waits)


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Voice]:
    with voice_in(tmp_path_factory.mktemp("native"), waits=False) as voice:
        yield voice


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Voice]:
    with voice_in(tmp_path_factory.mktemp("waiting"), waits=True) as voice:
        yield voice


@pytest.fixture(params=["native", "waiting"])
def voice(request: pytest.FixtureRequest) -> Voice:
    chosen: Voice = request.getfixturevalue(request.param)
    return chosen


def hear(text: str, transcript: Literal["before", "late", "after", "never"] = "late", *, over: bool = False) -> Hear:
    return Hear(text, after_ms=100, transcript=transcript, over=over)


def say(text: str, audio_ms: int = 300) -> Say:
    return Say(text, audio_ms=audio_ms)


async def start(caller: Caller) -> None:
    await caller.send("start_listening")
    await caller.until("state", state="listening")


async def play(caller: Caller) -> None:
    """Plays the answer, which is short, to its end."""
    await caller.until("generation_complete")
    await caller.send("playback_done")
    await caller.until("state", state="listening")


async def speak(caller: Caller) -> str:
    """A spoken turn and its answer, which is played to the end."""
    mark = len(caller.received)
    await caller.socket.send(FRAME)
    await play(caller)
    assert await caller.is_answered()
    return " ".join(message["text"] for message in caller.received[mark:] if message["type"] == "response")


def place(caller: Caller, type: str, **fields: object) -> int:
    """The position of the first such message."""
    for at, message in enumerate(caller.received):
        if message["type"] == type and fields.items() <= message.items():
            return at
    raise AssertionError(f"there was no {type} with {fields}")


def finals(caller: Caller) -> list[Message]:
    return [message for message in caller.every("transcript") if message["is_final"]]


async def read_back(served: Served, caller: Caller) -> list[tuple[str, str]]:
    """Who said what, as stored. Checks that every way of reading it agrees, and that it is all spoken and in order."""
    id = caller.session["conversation_id"]
    async with httpx2.AsyncClient(base_url=served.http) as http:
        record = (await http.get(f"/api/conversations/{id}")).json()
        markdown = (await http.get(f"/api/conversations/{id}", params={"format": "markdown"})).text
    async with call(served.url, {"mode": "text", "conversation_id": id}) as other:
        shown = (await other.until("history"))["turns"]
    async with call(served.url, {"mode": "text"}) as other:
        await other.send("load_conversation", conversation_id=id)
        assert (await other.until("history"))["turns"] == shown
    with_words = [turn for turn in shown if turn["content"]]
    said = [(turn["role"], turn["content"]) for turn in with_words]
    stored = [turn["message"] for turn in record["turns"]]
    assert [(each["role"], each["text"]) for each in stored if each["role"] != "tool" and each["text"]] == said
    names = {"user": "You", "assistant": "Assistant"}
    lines = [line for line in markdown.splitlines() if line.startswith("**")]
    assert lines == [f"**{names[role]} (spoken):** {text}" for role, text in said]
    assert all(turn["spoken"] for turn in with_words)
    times = [turn["at"] for turn in shown]
    assert all(times)
    assert times == sorted(times)
    return said


# When the transcript comes.


@pytest.mark.parametrize(
    ("voice", "when"),
    [("waiting", "before"), ("native", "before"), ("native", "late"), ("native", "after")],
    indirect=["voice"],
)
async def test_a_transcript_is_shown_and_stored_in_order(
    voice: Voice, when: Literal["before", "late", "after"]
) -> None:
    voice.write(hear(TIME, when), say(NOON), hear("Thanks.", when), say("You're welcome."))
    async with call(voice.served.url) as caller:
        await start(caller)
        assert await speak(caller) == NOON
        assert await speak(caller) == "You're welcome."
    transcript, chunk, response = (
        place(caller, "transcript", is_final=True),
        place(caller, "response_chunk"),
        place(caller, "response"),
    )
    match when:
        case "before":
            assert transcript < chunk < response
        case "late":
            assert chunk < transcript < response
        case "after":
            assert chunk < response < transcript
    assert [(final["text"], final["turn"]) for final in finals(caller)] == [(TIME, 1), ("Thanks.", 2)]
    assert [message["turn"] for message in caller.every("response")] == [1, 2]
    assert {message["turn"] for message in caller.every("response_chunk")} == {1, 2}
    assert [message["turn"] for message in caller.every("generation_complete")] == [1, 2]
    assert caller.states == ["idle", "listening", *["processing", "speaking", "listening"] * 2]
    assert await read_back(voice.served, caller) == [
        *(("user", TIME), ("assistant", NOON)),
        *(("user", "Thanks."), ("assistant", "You're welcome.")),
    ]


async def test_a_transcript_may_come_after_the_next_turn(native: Voice) -> None:
    late = Hear(TIME, after_ms=100, transcript="after", late_ms=1_500)
    native.write(late, say(NOON), hear("Thanks.", "before"), say("You're welcome."))
    async with call(native.served.url) as caller:
        await start(caller)
        await speak(caller)
        await speak(caller)
        await caller.until("transcript", text=TIME)
    assert [(final["text"], final["turn"]) for final in finals(caller)] == [("Thanks.", 2), (TIME, 1)]
    assert await read_back(native.served, caller) == [
        *(("user", TIME), ("assistant", NOON)),
        *(("user", "Thanks."), ("assistant", "You're welcome.")),
    ]


async def test_a_turn_without_a_transcript_is_answered_and_stored(native: Voice) -> None:
    native.write(hear(TIME, "never"), say(NOON), hear("Thanks."), say("You're welcome."))
    async with call(native.served.url) as caller:
        await start(caller)
        assert await speak(caller) == NOON
        await speak(caller)
    assert [(final["text"], final["turn"]) for final in finals(caller)] == [("Thanks.", 2)]
    assert await read_back(native.served, caller) == [
        ("assistant", NOON),
        *(("user", "Thanks."), ("assistant", "You're welcome.")),
    ]


async def test_a_user_who_continues_speaking_has_one_turn(voice: Voice) -> None:
    # The transcript of the first part comes last, when the turn that replaces it is over.
    first = Hear("What time", after_ms=100, transcript="after", late_ms=0 if voice.waits else 1_500)
    voice.write(first, GoOn(50), Hear(TIME, after_ms=100, continues=True), say(NOON))
    async with call(voice.served.url) as caller:
        await start(caller)
        await caller.socket.send(FRAME)
        await caller.until("state", state="processing")
        await caller.until("state", state="listening")
        assert await speak(caller) == NOON
        await asyncio.sleep(0 if voice.waits else 1.5)
        assert await caller.is_answered()
    assert await read_back(voice.served, caller) == [("user", TIME), ("assistant", NOON)]


async def test_a_turn_ended_by_stop_listening_is_an_ordinary_turn(voice: Voice) -> None:
    ring: list[Step] = [
        Hear("Ring the bell.", after_ms=60_000, transcript="late"),
        Call("ring_bell"),
        say("I have rung it."),
    ]
    voice.write(*ring, *ring)
    before = rings(voice)
    async with call(voice.served.url) as caller:
        for _ in range(2):
            await start(caller)
            await caller.socket.send(LONG_FRAME)
            await caller.send("stop_listening")
            await caller.until("generation_complete")
            await caller.send("playback_done")
            await caller.until("state", state="idle")
        assert await caller.is_answered()
    assert rings(voice) == before + 2
    assert [final["turn"] for final in finals(caller)] == [1, 2]
    assert await read_back(voice.served, caller) == [("user", "Ring the bell."), ("assistant", "I have rung it.")] * 2


# Tools.


def rings(voice: Voice) -> int:
    """How often the bell has rung."""
    file = voice.tool_file("ring_bell", "rings")
    return len(file.read_text().splitlines()) if file.exists() else 0


async def test_a_call_before_the_transcript_belongs_to_the_new_turn(voice: Voice) -> None:
    ring: list[Step] = [hear("Ring the bell."), Call("ring_bell"), say("I have rung it.")]
    voice.write(*ring, *ring)
    before = rings(voice)
    async with call(voice.served.url) as caller:
        await start(caller)
        await speak(caller)
        await speak(caller)
    if not voice.waits:
        assert place(caller, "tool_call") < place(caller, "transcript", is_final=True)
    first, second = caller.every("tool_result")
    assert (first["ok"], second["ok"]) == (True, True)
    assert first["id"] != second["id"]
    assert rings(voice) == before + 2
    assert await read_back(voice.served, caller) == [("user", "Ring the bell."), ("assistant", "I have rung it.")] * 2


async def test_a_call_cancelled_by_the_model_is_stopped(voice: Voice) -> None:
    search = Call("search_attic", id="call_0123456789")
    voice.write(hear("Search the attic."), search, Cancel(after_ms=500), say("Never mind."))
    async with call(voice.served.url) as caller:
        await start(caller)
        assert await speak(caller) == "Never mind."
    assert voice.tool_file("search_attic", "stopped").exists()
    assert caller.every("tool_call")
    (result,) = caller.every("tool_result")
    assert (result["ok"], result["result"]["error"]["type"]) == (False, "CANCELLED")
    assert await read_back(voice.served, caller) == [("user", "Search the attic."), ("assistant", "Never mind.")]


# A spoken yes.


async def test_a_spoken_yes_works_even_when_its_transcript_comes_late(voice: Voice) -> None:
    wish: list[Step] = [hear("Water the garden."), Call("water_plants", {"place": "garden"}), say(QUESTION)]
    # A native model has begun to answer by itself before the words of the yes are known.
    own_words = [] if voice.waits else ["One moment."]
    voice.write(*wish, hear("yes please"), *map(say, own_words), say("Listen: {results}"))
    async with call(voice.served.url) as caller:
        await start(caller)
        assert await speak(caller) == QUESTION
        assert not voice.tool_file("water_plants", "watered").exists()
        await caller.socket.send(FRAME)
        for _ in own_words:
            await play(caller)
        await play(caller)
        assert await caller.is_answered()
    if own_words:
        assert place(caller, "response_chunk", turn=2) < place(caller, "transcript", text="yes please")
    answers = [*own_words, f"Listen: {DONE}"]
    assert [response["text"] for response in caller.every("response")][1:] == answers
    assert voice.tool_file("water_plants", "watered").read_text() == "garden\n"
    assert [message["outcome"] for message in caller.every("confirmation_resolved")] == ["approved"]
    assert [result["ok"] for result in caller.every("tool_result")] == [False, True]
    assert await read_back(voice.served, caller) == [
        *(("user", "Water the garden."), ("assistant", QUESTION)),
        *(("user", "yes please"), *(("assistant", text) for text in answers)),
    ]


async def test_a_model_that_repeats_the_call_on_hearing_yes_does_not_run_it_twice(native: Voice) -> None:
    water = Call("water_plants", {"place": "shed"})
    native.write(
        *(hear("Water the shed."), water, say("Water the shed?")),
        *(hear("yes please"), water, say("One moment."), say("Listen: {results}")),
    )
    async with call(native.served.url) as caller:
        await start(caller)
        await speak(caller)
        await caller.socket.send(FRAME)
        await play(caller)
        await play(caller)
        assert await caller.is_answered()
    asked = [message["confirmation_token"] for message in caller.every("confirmation_request")]
    resolved = {message["confirmation_token"]: message["outcome"] for message in caller.every("confirmation_resolved")}
    assert resolved == dict.fromkeys(asked, "approved"), "no question stays open"
    assert native.tool_file("water_plants", "watered").read_text().splitlines().count("shed") == 1


# An interruption.


@pytest.mark.parametrize("by", ["the model", "the client"])
async def test_an_interruption_cancels_two_answers_in_flight(voice: Voice, by: str) -> None:
    story: list[Step] = [hear("Tell me a story."), say(STORY, audio_ms=12_000)]
    joke: list[Step] = [hear("And a joke.", over=True), say(JOKE, audio_ms=9_000)]
    barge = [Barge(after_ms=1_200)] if by == "the model" else []
    hello: list[Step] = [hear("Hello?"), say("Hello.")]
    voice.write(*story, *joke, *barge, *hello, latency_ms=300)
    async with call(voice.served.url) as caller:
        await start(caller)
        await caller.socket.send(FRAME)
        await caller.until("audio", turn=1)
        await asyncio.sleep(1)
        await caller.socket.send(FRAME)
        await caller.until("audio", turn=2)
        if by == "the client":
            await asyncio.sleep(1.2)
            await caller.send("interrupt", played_ms=1_000)
        await caller.until("state", state="interrupted")
        await caller.until("state", state="listening")
        assert await speak(caller) == "Hello."
    numbers = [m["turn"] for m in caller.received if m["type"] in ("response_chunk", "audio")]
    assert numbers == sorted(numbers), "nothing of an answer comes after something of the next"
    said = await read_back(voice.served, caller)
    assert [role for role, _ in said] == ["user", "assistant"] * 3
    assert [text for role, text in said if role == "user"] == ["Tell me a story.", "And a joke.", "Hello?"]
    first, second, third = (text for role, text in said if role == "assistant")
    assert STORY.startswith(first)
    assert JOKE.startswith(second)
    assert 0 < len(first.split()) < len(STORY.split())
    assert 0 < len(second.split()) < len(JOKE.split())
    assert third == "Hello."

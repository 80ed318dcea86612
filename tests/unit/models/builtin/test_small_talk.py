import pytest

from antiphon.models.base import CallRequested, Event, Prompt, TextDelta
from antiphon.models.builtin import BuiltinModel
from antiphon.models.builtin.small_talk import Remark, find
from antiphon.models.builtin.understanding import words_of
from antiphon.tools.spec import Mode
from antiphon.transcript import UserMessage
from tests.fakes.talking_tools import Box, talking_tools
from tests.fakes.toolkit import built_in

MODEL = BuiltinModel(Box(built_in()), name="Ada")
FEW_TOOLS = BuiltinModel(Box(talking_tools()))


async def reply(text: str, mode: Mode = Mode.TEXT, model: BuiltinModel = MODEL) -> list[Event]:
    return [event async for event in model.reply(Prompt("", [UserMessage(text)], (), mode))]


async def answer(text: str, mode: Mode = Mode.TEXT, model: BuiltinModel = MODEL) -> str:
    """What is said. Nothing may be called."""
    (said,) = [event for event in await reply(text, mode, model) if isinstance(event, CallRequested | TextDelta)]
    assert isinstance(said, TextDelta)
    return said.text


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("Hello!", "can I"),
        ("hi there, how are you doing today?", "thank"),
        ("Thanks a lot!", "."),
        ("who are you?", "Ada"),
        ("what's your name", "Ada"),
        ("are you there", "here"),
        ("can you hear me?", "ear"),
        ("are you human", "I'm"),
        ("where are you", "server"),
        ("how old are you", "Program"),
        ("you're great", "Thank"),
        ("well done", "Thank"),
        ("you are so stupid", "Sorry"),
        ("I love you", "help"),
        ("tell me about yourself", "Ada"),
        ("sorry", "No"),
        ("nice to meet you", "too"),
        ("okay", "Okay."),
        ("got it, thanks", "."),
        ("thank you so much, that was very helpful", "."),
    ],
)
@pytest.mark.parametrize("mode", Mode)
async def test_small_talk_gets_a_short_friendly_answer(text: str, part: str, mode: Mode) -> None:
    said = await answer(text, mode)
    assert part.lower() in said.lower()
    assert len(said) < 130
    assert "don't know" not in said


@pytest.mark.parametrize("text", ["Hello!", "thanks", "goodbye", "how are you"])
async def test_the_same_words_always_get_the_same_answer(text: str) -> None:
    assert await answer(text) == await answer(text)


def test_different_greetings_get_different_answers() -> None:
    greeting = find("hello")
    assert greeting is not None
    assert len({greeting.answer(f"hello {n}", "Ada") for n in range(20)}) > 1


@pytest.mark.parametrize(
    "text", ["goodbye", "Bye bye!", "thanks, that's all", "see you later", "okay, goodbye then", "good night"]
)
async def test_a_goodbye_ends_a_call_after_last_words_but_not_a_chat(text: str) -> None:
    calls = [event.call for event in await reply(text, Mode.VOICE) if isinstance(event, CallRequested)]
    assert [call.name for call in calls] == ["end_voice_session"]
    assert len(calls[0].args["final_message"]) >= 5
    assert await answer(text, Mode.TEXT)


@pytest.mark.parametrize(
    "text", ["help", "Help!", "what can you do?", "What can I say?", "what else can I ask you", "how can you help me"]
)
@pytest.mark.parametrize("mode", Mode)
async def test_help_gives_three_examples_that_are_understood(text: str, mode: Mode) -> None:
    examples = (await answer(text, mode)).split("“")[1:]
    assert len(examples) == 3
    for example in examples:
        assert MODEL.find_request(example.partition("”")[0], mode) is not None


@pytest.mark.parametrize("mode", Mode)
async def test_examples_include_only_tools_of_the_mode(mode: Mode) -> None:
    other = "start voice mode" if mode is Mode.VOICE else "end voice mode"
    assert other not in await answer("what can you do", mode, FEW_TOOLS)


@pytest.mark.parametrize(
    "text", ["Hello, what time is it?", "good morning! what time is it", "thanks, and what time is it"]
)
async def test_a_greeting_does_not_hide_a_request(text: str) -> None:
    events = await reply(text)
    assert isinstance(events[0], CallRequested)
    assert events[0].call.name == "get_current_time"


@pytest.mark.parametrize(
    "text",
    [
        "hello is a song by Adele",
        "thanks to the rain we stayed at home",
        "how are you going to remind me",
        "goodbye is a sad word",
        "who are you going to vote for",
        "help my sister with her homework",
    ],
)
def test_a_sentence_that_only_begins_like_small_talk_is_none(text: str) -> None:
    assert find(words_of(text)) is None


def test_kinds() -> None:
    assert [talk.kind for text in ("hi", "bye", "help") if (talk := find(text))] == [
        Remark.OTHER,
        Remark.GOODBYE,
        Remark.HELP,
    ]


def test_a_long_ramble_is_read_quickly() -> None:
    # Nested repetitions of a pattern could take exponential time.
    assert find("thanks a lot so much again " * 4 + "x") is None

"""How the offline assistant understands people, through `POST /api/chat`, with the built-in tools."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from antiphon.models.base import Prompt, TextDelta
from antiphon.models.builtin import BuiltinModel
from antiphon.tools.registry import Registry
from antiphon.tools.spec import Mode
from antiphon.transcript import UserMessage
from tests.fakes.web import WebApp

FIRST_SCREEN = {
    "What time is it in Tokyo?": "get_current_time",
    "What is 15 percent of 80?": "calculate",
    "How many days until Christmas?": "time_until",
    "Tell me a joke": "tell_joke",
}
"""The examples that the page offers before anything was said, and the tool that answers each."""


@pytest.mark.parametrize(("said", "tool"), FIRST_SCREEN.items())
async def test_an_example_of_the_first_screen_is_answered(offline: Callable[[], WebApp], said: str, tool: str) -> None:
    answer = (await offline().chat(said)).json()
    assert [(run["name"], run["ok"]) for run in answer["toolCalls"]] == [(tool, True)]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("What is the sum of 3, 4 and 12.5", "3 plus 4 plus 12.5 is 19.5."),
        ("what's the sum of three, four and twelve point five?", "3 plus 4 plus 12.5 is 19.5."),
        ("sum of 1 2 and 3", "1 plus 2 plus 3 is 6."),
        ("what is the sum of one, two, three and four", "1 plus 2 plus 3 plus 4 is 10."),
        ("What is the total of 1,200 and 34.50?", "1,200 plus 34.5 is 1,234.5."),
        ("add 45 and 78", "45 plus 78 is 123."),
        ("add 1, 2 and 3.5", "1 plus 2 plus 3.5 is 6.5."),
        ("add 5 to 10", "5 plus 10 is 15."),
        ("add up 1, 2, 3 and 4.5", "1 plus 2 plus 3 plus 4.5 is 10.5."),
        ("the average of 3, 4 and 5", "The average of 3, 4 and 5 is 4."),
        ("what is the product of 2, 3 and 4?", "2 times 3 times 4 is 24."),
        ("what is the difference between 4 and 10", "10 minus 4 is 6."),
    ],
)
async def test_a_sum_can_be_asked_for_in_the_words_of_school(
    offline: Callable[[], WebApp], said: str, answer: str
) -> None:
    assert (await offline().chat(said)).json()["message"] == answer


async def test_a_difference_that_is_not_numeric_is_not_a_calculation(offline: Callable[[], WebApp]) -> None:
    answer = (await offline().chat("what is the difference between cats and dogs")).json()
    assert answer["toolCalls"] == []


# What is not understood.

CONNECT_A_MODEL = "To answer anything, connect a model: set model.text in antiphon.toml."


def suggestions(answer: str) -> list[str]:
    return re.findall("“([^”]+)”", answer)


@pytest.mark.parametrize(
    ("said", "near"),
    [
        ("tell me a story", "tell me a joke"),
        ("kill all processes", "cancel all the timers"),
        ("fix my hard disk", "how full is this disk"),
        ("multiply my money", "multiply 12 by 3"),
    ],
)
async def test_an_unknown_request_gets_suggestions_close_to_it(
    offline: Callable[[], WebApp], said: str, near: str
) -> None:
    answer = (await offline().chat(said)).json()["message"]
    assert answer.startswith("I don't know how to do that. You could say “")
    assert any(suggestion.startswith(near) for suggestion in suggestions(answer)), answer
    assert len(suggestions(answer)) <= 3


async def test_the_reply_to_an_unknown_typed_request_explains_how_to_connect_a_model(
    offline: Callable[[], WebApp],
) -> None:
    answer = (await offline().chat("why is the sky blue")).json()["message"]
    assert answer.endswith(CONNECT_A_MODEL)


async def test_the_reply_to_an_unknown_spoken_request_is_one_short_sentence(builtin: BuiltinModel) -> None:
    prompt = Prompt("", (UserMessage("why is the sky blue"),), (), Mode.VOICE)
    answer = "".join([event.text async for event in builtin.reply(prompt) if isinstance(event, TextDelta)])
    assert answer.startswith("I don't know")
    assert len(answer.split()) < 20
    assert CONNECT_A_MODEL not in answer
    assert len(suggestions(answer)) == 1


@pytest.mark.real_time
async def test_every_suggestion_works_when_it_is_said_back(
    offline: Callable[[], WebApp], toolkit: Registry, builtin: BuiltinModel
) -> None:
    # Every word of every sentence, beside unknown words, brings its own suggestions.
    known = {word for tool in toolkit.tools.values() if tool.sentences for word in words_of(tool.sentences)}
    shown: set[str] = set()
    for word in sorted(known):
        for said in (f"blargh {word} frobnicate", f"quux the {word} of my frobnicate"):
            prompt = Prompt("", (UserMessage(said),), (), Mode.TEXT)
            answer = "".join([event.text async for event in builtin.reply(prompt) if isinstance(event, TextDelta)])
            shown.update(suggestions(answer) if answer.startswith("I don't know how") else [])
    assert len(shown) > 60
    web = offline()
    for number, suggestion in enumerate(sorted(shown)):
        # Each comes from a different user, and some from a new server, because of the rate limits.
        web = web if number % 50 else offline()
        answer = (await web.chat(suggestion, user=suggestion[:60])).json()
        [run] = answer["toolCalls"]
        # A tool that uses a service may find nothing there, or ask first.
        assert run["ok"] or toolkit.tools[run["name"]].spec.uses, (suggestion, answer)


def words_of(sentences: Mapping[str, Any]) -> set[str]:
    return set(re.findall(r"[a-z']+", " ".join(text for entry in sentences["data"] for text in entry["sentences"])))

import re

import pytest

from antiphon.authoring.testing import make_context
from antiphon.toolkit.tell_joke.handler import execute
from antiphon.toolkit.tell_joke.jokes import JOKES

LONGEST_CHARACTERS = 160


async def test_the_joke_is_spoken_as_written() -> None:
    result = await execute({}, make_context("tell_joke"))
    assert result.data["joke"] in JOKES
    assert result.spoken == result.data["joke"]


async def test_the_same_random_seed_tells_the_same_joke() -> None:
    first = await execute({}, make_context("tell_joke", seed=3))
    again = await execute({}, make_context("tell_joke", seed=3))
    assert first.data == again.data


async def test_one_conversation_hears_many_jokes() -> None:
    context = make_context("tell_joke")
    told = {(await execute({}, context)).data["joke"] for _ in range(100)}
    assert len(told) > len(JOKES) // 2


@pytest.mark.parametrize("topic", ["cow", "cows", "some old cows", "Cows"])
async def test_a_joke_is_about_the_requested_topic(topic: str) -> None:
    result = await execute({"topic": topic}, make_context("tell_joke"))
    assert "cows" in result.data["joke"]
    assert result.data["is_about_topic"] is True
    assert result.spoken == result.data["joke"]


@pytest.mark.parametrize("topic", ["quantum chromodynamics", "?!"])
async def test_an_unknown_topic_is_admitted(topic: str) -> None:
    result = await execute({"topic": topic}, make_context("tell_joke"))
    assert result.data["is_about_topic"] is False
    assert result.spoken == f"I don't know any jokes about {topic}, but here's another one. {result.data['joke']}"


def test_there_are_at_least_forty_different_jokes() -> None:
    assert len({joke.casefold() for joke in JOKES}) == len(JOKES) >= 40


def test_every_joke_can_be_spoken() -> None:
    """No digits, no signs to be seen, no line breaks, and short enough to be listened to."""
    wrong = [
        joke for joke in JOKES if len(joke) > LONGEST_CHARACTERS or not re.fullmatch(r"[A-Z][A-Za-z ,:'.?-]+[.?]", joke)
    ]
    assert not wrong

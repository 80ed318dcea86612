"""A conversation in which what is said later refers to what was said before, typed and without a language model."""

import re

import pytest

from tests.wire.caller import call

pytestmark = pytest.mark.real_time


async def test_ten_turns_with_follow_ups_and_corrections_are_answered_right(url: str) -> None:
    async with call(url, {"mode": "text"}) as caller:
        for said, expected in (
            ("Good morning! What time is it in Tokyo?", r"in Tokyo"),
            ("and in London?", r"in London"),
            ("no, I meant Paris", r"in Paris"),
            ("what is 15 percent of 80", r"\b12\b"),
            ("what about 20 percent?", r"\b16\b"),
            ("plus ten", r"\b26\b"),
            ("um set a timer for five no wait fifteen minutes", r"15 minutes, starting now"),
            ("sorry, fifty minutes", r"I've cancelled the one before\. All right, 50 minutes"),
            ("add milk to my shopping list and put eggs on it", r"milk on your .*eggs on your"),
            ("cancel that timer", r"cancelled your 50 minute timer"),
        ):
            answer = await caller.ask(said)
            assert re.search(expected, answer), (said, answer)
        assert await caller.ask("what timers do I have") == "You have no timers running."


async def test_speed_and_volume_are_changed_by_words(url: str) -> None:
    async with call(url, {"mode": "text"}) as caller:
        assert await caller.ask("can you speak a bit slower") == "Okay, I'll speak slower."
        assert caller.every("settings_updated")[-1]["voice_speed"] == 80
        assert await caller.ask("slower") == "Okay, I'll speak slower."
        assert await caller.ask("set the volume to thirty percent") == "Okay, the volume is at 30 percent."
        told = caller.every("settings_updated")[-1]
        assert (told["voice_speed"], told["volume"]) == (60, 30)
        await caller.send("settings", voice_speed=100)
        await caller.until("settings_updated")
        await caller.ask("faster")
        assert caller.every("settings_updated")[-1]["voice_speed"] == 120


async def test_a_stop_in_passing_stops_nothing_that_was_not_asked_about(url: str) -> None:
    async with call(url, {"mode": "text"}) as caller:
        await caller.ask("set a timer for ten minutes")
        assert await caller.ask("never mind") == "Okay."
        assert "10 minute" in await caller.ask("what timers do I have")
        assert "cancelled" in await caller.ask("cancel it")

"""The assistant's identity from the settings reaches its model and its callers."""

from pathlib import Path

import pytest

from tests.fakes.hostile_model import Mode, hostile_model
from tests.wire.caller import call
from tests.wire.served import serve

pytestmark = pytest.mark.real_time

ASSISTANT = {"name": "Ada", "instructions": "You serve the museum of clocks.", "greeting": "Welcome to the museum."}


async def test_the_name_and_the_instructions_reach_the_model(tmp_path: Path) -> None:
    with hostile_model() as model, serve(tmp_path, model={"text": model}, assistant=ASSISTANT) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            prompt = await caller.ask(Mode.PROMPT)
    assert prompt.startswith("You are Ada, ")
    assert "You serve the museum of clocks." in prompt


async def test_a_call_begins_with_the_greeting(tmp_path: Path) -> None:
    with serve(tmp_path, voice=[], assistant=ASSISTANT) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            await caller.send("start_voice")
            assert (await caller.until("response"))["text"].strip() == "Welcome to the museum."


async def test_without_a_greeting_a_call_begins_in_silence(tmp_path: Path) -> None:
    with serve(tmp_path, voice=[], assistant={"greeting": ""}) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            await caller.send("start_voice")
            await caller.until("state", state="listening")
            assert await caller.is_answered()
            assert caller.states == ["idle", "listening"]

"""How much of a prompt text and voice share, with the built-in tools, and where the rest goes."""

import json
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import pytest

from antiphon.compose.app import load_tools
from antiphon.config import Settings
from antiphon.models.base import Prompt
from antiphon.models.shared_prefix import SharedPrefixModel, move_note
from antiphon.prompts.composer import Composer
from antiphon.tools.registry import Snapshot
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, Message, UserMessage
from tests.fakes.scripted import ScriptedModel

MIN_SHARED: float = 0.9
QUESTION = (AssistantMessage("Hello!"), UserMessage("why is the sky blue?"), UserMessage("and the sea?"))


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder: Path = tmp_path_factory.mktemp("tools")
    return load_tools(Settings(folder, folder)).snapshot()


def make_prompt(snapshot: Snapshot, mode: Mode, messages: Sequence[Message] = QUESTION) -> Prompt:
    system = Composer().compose(mode, tools_version=snapshot.version, summaries=snapshot.summaries())
    return Prompt(system.text, messages, snapshot.provider_schemas("openai_chat", mode), mode, system.mode_note)


def shared(texts: Sequence[str]) -> float:
    """How much of the shorter text both begin with."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False))
    return len(list(same)) / min(map(len, texts))


def test_text_and_voice_share_the_system_prompt_and_nearly_all_tools(snapshot: Snapshot) -> None:
    prompts = [move_note(make_prompt(snapshot, mode)) for mode in Mode]
    assert shared([prompt.system for prompt in prompts]) == 1.0
    assert shared([json.dumps(list(prompt.tools)) for prompt in prompts]) >= MIN_SHARED


def test_the_note_about_the_call_is_in_the_first_message_of_the_user(snapshot: Snapshot) -> None:
    prompt = make_prompt(snapshot, Mode.VOICE)
    moved = move_note(prompt)
    assert prompt.mode_note not in moved.system
    assert moved.messages == [QUESTION[0], UserMessage(f"({prompt.mode_note})\n\nwhy is the sky blue?"), QUESTION[2]]


def test_in_text_there_is_no_note(snapshot: Snapshot) -> None:
    prompt = make_prompt(snapshot, Mode.TEXT)
    assert move_note(prompt) == prompt


def test_the_prompt_of_a_turn_begins_with_that_of_the_turn_before(snapshot: Snapshot) -> None:
    before = move_note(make_prompt(snapshot, Mode.VOICE, QUESTION[:2]))
    after = move_note(make_prompt(snapshot, Mode.VOICE, QUESTION))
    assert (before.system, before.tools) == (after.system, after.tools)
    assert list(after.messages)[:2] == list(before.messages)


def test_without_a_message_of_the_user_the_note_stays_in_the_system_prompt(snapshot: Snapshot) -> None:
    prompt = make_prompt(snapshot, Mode.VOICE, QUESTION[:1])
    assert move_note(prompt) == prompt


async def test_the_model_is_asked_with_the_moved_note(snapshot: Snapshot) -> None:
    model = ScriptedModel(["Because."])
    prompt = make_prompt(snapshot, Mode.VOICE)
    assert [event async for event in SharedPrefixModel(model).reply(prompt)]
    assert model.prompts[0].system == move_note(prompt).system

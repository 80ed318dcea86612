"""Which model summarises, by the settings."""

from pathlib import Path

import pytest

from antiphon.compose.summaries import make_planner, open_summarizer
from antiphon.config import Continuity, Settings
from antiphon.continuity.context import Carried
from antiphon.models.base import ModelError
from antiphon.models.builtin import BuiltinModel
from antiphon.models.live import LiveProfile
from antiphon.transcript import AssistantMessage, Transcript, UserMessage
from tests.fakes.chat_server import ChatServer, words
from tests.fakes.scripted import ScriptedModel
from tests.fakes.talking_tools import Box, talking_tools

TALK = (UserMessage("What time is it?"), AssistantMessage("Noon."))


def settings_with(summary_model: str) -> Settings:
    return Settings(Path(), Path(), continuity=Continuity(summary_model=summary_model))


async def test_the_offline_assistant_leaves_summaries_to_the_transcript() -> None:
    async with open_summarizer(settings_with(""), BuiltinModel(Box(talking_tools()))) as summarizer:
        assert summarizer is None
    async with open_summarizer(settings_with("builtin"), ScriptedModel([])) as summarizer:
        assert summarizer is None


@pytest.mark.real_time
async def test_the_text_model_summarizes_unless_another_one_is_named() -> None:
    model = ScriptedModel(["You asked for the time."])
    async with open_summarizer(settings_with(""), model) as summarizer:
        assert summarizer is not None
        assert await summarizer.summarize(TALK) == "You asked for the time."
    async with (
        ChatServer([words("You asked, and it was noon.")]) as server,
        open_summarizer(settings_with(f"openai:{server.url}#small"), model) as summarizer,
    ):
        assert summarizer is not None
        assert await summarizer.summarize(TALK) == "You asked, and it was noon."
    assert len(model.prompts) == 1


async def test_a_model_without_its_key_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="GEMINI_API_KEY"):
        async with open_summarizer(settings_with("gemini:gemini-3-flash"), ScriptedModel([])):
            pass


async def test_without_a_model_the_planner_uses_the_words_of_the_transcript() -> None:
    transcript = Transcript()
    for n in range(3):
        transcript.set_user(f"t{n}", "What time is it?")
        transcript.set_answer(f"t{n}", "Noon.")
    profile = LiveProfile("m", hears=False, output_hz=0, needs_network=False, tool_schemas="openai_chat")
    planner = make_planner(None)
    carried = await planner.plan(transcript, profile, is_fallback=True, before_turn=None)
    assert carried == Carried("You asked what time it is.", "t1")

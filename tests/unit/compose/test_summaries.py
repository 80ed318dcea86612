"""Which model summarises, by the settings."""

from pathlib import Path

import pytest

from antiphon.compose.summaries import make_planner, open_summarizer
from antiphon.config import Model, Settings
from antiphon.continuity.context import Carried
from antiphon.models.base import ModelError
from antiphon.models.live import LiveProfile
from antiphon.transcript import AssistantMessage, Transcript, UserMessage
from tests.fakes.scripted import ScriptedModel

TALK = (UserMessage("What time is it?"), AssistantMessage("Noon."))


def settings_with(text: str) -> Settings:
    return Settings(Path(), Path(), model=Model(text=text))


async def test_the_offline_assistant_leaves_summaries_to_the_transcript() -> None:
    async with open_summarizer(settings_with("builtin"), ScriptedModel([])) as summarizer:
        assert summarizer is None
    async with open_summarizer(settings_with("ollama:qwen3"), ScriptedModel([]), "builtin") as summarizer:
        assert summarizer is None


async def test_the_text_model_summarizes_unless_another_one_is_named() -> None:
    model = ScriptedModel(["You asked for the time."])
    async with open_summarizer(settings_with("ollama:qwen3"), model) as summarizer:
        assert summarizer is not None
        assert await summarizer.summarize(TALK) == "You asked for the time."
    async with open_summarizer(settings_with("builtin"), model, "ollama:qwen3:0.6b") as summarizer:
        assert summarizer is not None
    assert len(model.prompts) == 1


async def test_a_model_without_its_key_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="GEMINI_API_KEY"):
        async with open_summarizer(settings_with("builtin"), ScriptedModel([]), "gemini:gemini-3-flash"):
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

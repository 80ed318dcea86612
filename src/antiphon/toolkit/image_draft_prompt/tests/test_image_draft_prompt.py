from collections.abc import Sequence
from pathlib import Path

import pytest

from antiphon.authoring.testing import load_module, make_context
from antiphon.toolkit.image_draft_prompt.drafts import draft
from antiphon.tools.result import ToolResult

handler = load_module(Path(__file__).parents[1])


class Writer:
    """The images capability, with a text model that writes these prompts."""

    def __init__(self, *prompts: str) -> None:
        self._prompts = prompts

    async def draft(self, idea: str, style: str | None, count: int) -> Sequence[str]:
        return self._prompts[:count]


async def run(*prompts: str, **args: object) -> ToolResult:
    context = make_context("image_draft_prompt", granted={"images": Writer(*prompts)})
    result: ToolResult = await handler.execute({"variants": 3, **args}, context)
    return result


async def test_without_a_model_the_rules_write_as_many_prompts_as_asked_for() -> None:
    result = await run(idea="a lighthouse at dusk", variants=5)
    assert result.data["written_by"] == "rules"
    assert len({each["prompt"] for each in result.data["variants"]}) == 5


async def test_a_prompt_says_medium_composition_light_colours_and_mood() -> None:
    (only,) = draft("a lighthouse", None, 1)
    assert only.prompt.startswith("A lighthouse, as ")
    for part in ("Composition: ", "Light: ", "Colours: ", "Mood: "):
        assert part in only.prompt


def test_the_same_idea_gives_the_same_prompts_and_another_idea_others() -> None:
    assert draft("a red boat", None, 3) == draft("a red boat", None, 3)
    assert [each.style for each in draft("a red boat", None, 3)] != [each.style for each in draft("a fox", None, 3)]


def test_variants_differ_in_medium_and_composition() -> None:
    drafts = draft("a fox in the snow", None, 4)
    assert len({each.style for each in drafts}) == 4
    assert len({each.prompt.partition("Composition: ")[2].partition(". ")[0] for each in drafts}) == 4


@pytest.mark.parametrize(
    ("idea", "light"),
    [
        ("a lighthouse at night", ("moonlight", "lamp", "starlight")),
        ("a harbour at dawn", ("early", "first low sun", "morning")),
        ("a street in the rain", ("cloud", "diffuse")),
        ("a cabin in the snow", ("winter", "snow", "cold")),
    ],
)
def test_the_light_does_not_contradict_the_idea(idea: str, light: tuple[str, ...]) -> None:
    for each in draft(idea, None, 3):
        told = each.prompt.partition("Light: ")[2].partition(". ")[0]
        assert any(word in told for word in light)


def test_a_style_is_the_style_of_every_variant() -> None:
    drafts = draft("a fox", "Pencil sketch", 3)
    assert {each.style for each in drafts} == {"pencil sketch"}
    assert len({each.prompt for each in drafts}) == 3


def test_a_style_that_is_not_known_is_given_in_its_own_words() -> None:
    for each in draft("a fox", "stained glass", 2):
        assert "in this style: stained glass" in each.prompt
        assert each.style == "stained glass"


def test_a_medium_in_the_idea_is_kept() -> None:
    assert {each.style for each in draft("a watercolor of two boats", None, 3)} == {"watercolour"}


def test_part_of_a_word_is_not_taken_for_a_word() -> None:
    # "caterpillar" is no cat, and "moonstone" no moon.
    (only,) = draft("a moonstone", None, 1)
    assert "moonlight" not in only.prompt


async def test_the_text_model_writes_them_if_it_can() -> None:
    result = await run("One lighthouse, in oil.", "Two.", idea="a lighthouse", style="oil", variants=1)
    assert result.data == {
        "idea": "a lighthouse",
        "variants": [{"prompt": "One lighthouse, in oil.", "style": "oil"}],
        "written_by": "model",
    }


async def test_the_prompts_are_listed_for_the_user_who_reads_them() -> None:
    result = await run(idea="a lighthouse", variants=2)
    assert result.spoken is not None
    assert result.spoken.startswith("Here are 2 prompts to choose from:\n\n1. A lighthouse")
    assert "\n2. A lighthouse" in result.spoken

from pathlib import Path

import pytest

from antiphon.authoring.testing import Outbox, load_module, make_context
from antiphon.tools.capabilities.images import MadeImage, Shape
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.messages import Image
from antiphon.tools.result import ToolResult
from antiphon.tools.session import NoClient

handler = load_module(Path(__file__).parents[1])
URL = "/images/3q2-7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.png"


class Maker:
    """The images capability, with a service that makes any picture."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Shape | None]] = []

    async def generate(self, prompt: str, shape: Shape | None) -> MadeImage:
        self.asked.append((prompt, shape))
        return MadeImage(URL, "image/png", 1_000, "openai:m")


class NoMaker:
    async def generate(self, prompt: str, shape: Shape | None) -> MadeImage:
        raise ToolError(ErrorType.PERMANENT, "There is no service.")


async def run(maker: object, messaging: object, **args: object) -> ToolResult:
    context = make_context("image_generate", messaging=messaging, granted={"images": maker})  # type: ignore[arg-type]
    result: ToolResult = await handler.execute(args, context)
    return result


async def test_the_picture_is_shown_with_its_prompt_as_the_caption() -> None:
    outbox, maker = Outbox(), Maker()
    result = await run(maker, outbox, prompt="a  lighthouse\nat dusk", size="portrait")
    assert maker.asked == [("a lighthouse at dusk", Shape.PORTRAIT)]
    assert outbox.sent == [Image(url=URL, caption="a lighthouse at dusk")]
    assert result.data["shown"] is True
    assert result.spoken == "Here is your picture."


async def test_a_picture_that_nobody_could_be_shown_is_not_said_to_be_shown() -> None:
    result = await run(Maker(), NoClient(), prompt="a lighthouse")
    assert result.data["shown"] is False
    assert "couldn't show" in (result.spoken or "")


async def test_if_none_is_made_none_is_shown() -> None:
    outbox = Outbox()
    with pytest.raises(ToolError):
        await run(NoMaker(), outbox, prompt="a lighthouse")
    assert outbox.sent == []


async def test_a_long_prompt_is_a_short_caption() -> None:
    outbox = Outbox()
    await run(Maker(), outbox, prompt="a very long lighthouse " * 40)
    (image,) = outbox.sent
    assert isinstance(image, Image)
    assert image.caption is not None
    assert len(image.caption) <= 200
    assert image.caption.endswith("…")


@pytest.mark.parametrize(
    "prompt",
    ["a naked statue", "Blood on the floor", "a GUN on a table", "a forged passport", "self-harm", "an erotic scene"],
)
def test_the_user_is_asked_about_sensitive_pictures(prompt: str) -> None:
    assert handler.needs_confirmation({"prompt": prompt}, False)


@pytest.mark.parametrize(
    "prompt", ["a lighthouse at dusk", "a blue nudge", "a gunnel of a boat", "an essex village", "bloom in spring"]
)
def test_an_ordinary_picture_needs_no_question(prompt: str) -> None:
    assert not handler.needs_confirmation({"prompt": prompt}, False)


def test_any_picture_needs_a_question_when_strangers_have_written_into_the_turn() -> None:
    assert handler.needs_confirmation({"prompt": "a lighthouse"}, True)


@pytest.mark.parametrize(
    "heard",
    [
        ["draw me a lighthouse"],
        ["I'd like a picture of our house", "watercolour, please"],
        ["mal mir einen Leuchtturm"],
        ["dessine un phare"],
        ["hazme un dibujo de un faro"],
        ["画一座灯塔"],
    ],
)
def test_it_is_asked_for_if_one_of_the_latest_messages_is_about_a_picture(heard: list[str]) -> None:
    assert handler.is_asked_for({"prompt": "a lighthouse"}, heard)


@pytest.mark.parametrize("heard", [["what time is it"], ["tell me about lighthouses", "thanks"]])
def test_it_is_not_asked_for_if_none_is(heard: list[str]) -> None:
    assert not handler.is_asked_for({"prompt": "a lighthouse"}, heard)


def test_the_question_names_the_picture() -> None:
    assert handler.preview({"prompt": "a naked statue"}) == "Shall I make a picture of “a naked statue”?"

"""What a recogniser with a price is asked, and what not."""

import pytest

from antiphon.speech.base import SpeechBusy, Urgency
from antiphon.speech.sparing import Sparing


class Priced:
    name = "priced"

    def __init__(self) -> None:
        self.asked: list[Urgency] = []
        self.is_closed = False

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        self.asked.append(urgency)
        return "what time is it"

    async def aclose(self) -> None:
        self.is_closed = True


@pytest.fixture
def priced() -> Priced:
    return Priced()


@pytest.mark.parametrize("urgency", [Urgency.NOW, Urgency.SOON])
async def test_it_is_asked_for_what_somebody_waits_for(priced: Priced, urgency: Urgency) -> None:
    assert await Sparing(priced).recognize(bytes(100), urgency) == "what time is it"
    assert priced.asked == [urgency]


async def test_it_is_not_asked_for_what_is_only_nice_to_have(priced: Priced) -> None:
    with pytest.raises(SpeechBusy):
        await Sparing(priced).recognize(bytes(100), Urgency.IDLE)
    assert priced.asked == []


async def test_it_has_the_name_of_the_recogniser_and_is_closed_with_it(priced: Priced) -> None:
    sparing = Sparing(priced)
    assert sparing.name == "priced"
    await sparing.aclose()
    assert priced.is_closed

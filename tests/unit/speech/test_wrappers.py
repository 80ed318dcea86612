"""Over a synthesiser that counts; that Piper's sounds are the same each time is tested where Piper is."""

from collections.abc import AsyncIterator, Sequence

import pytest

from antiphon.speech.base import Sound, SpeechBusy, Synthesizer, Urgency, Voice
from antiphon.speech.wrappers import Phrases, Sparing


class Counting:
    """Says ten bytes a letter, in two pieces, and notes what it was asked for."""

    name = "counting"
    output_hz = 22_050
    voices: Sequence[Voice] = (Voice("joe", "Joe", "en-US"), Voice("anna", "Anna", "en-US"))

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.finished: list[str] = []
        self.went_on: list[bool] = []
        self.is_busy = False
        self.is_closed = False

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        self.asked.append(text)
        self.went_on.append(goes_on)
        if not text:
            return
        try:
            yield Sound(b"12345" * len(text), 5)
            if self.is_busy:
                raise SpeechBusy("Too many.")
            yield Sound(b"67890" * len(text), 0)
        finally:
            self.finished.append(text)

    async def aclose(self) -> None:
        self.is_closed = True


@pytest.fixture
def engine() -> Counting:
    return Counting()


@pytest.fixture
def phrases(engine: Counting) -> Phrases:
    return Phrases(engine, max_bytes=800)


async def say(phrases: Synthesizer, text: str, voice: str | None = None, speed: float = 1.0) -> list[Sound]:
    return [sound async for sound in phrases.speak(text, voice=voice, speed=speed)]


async def test_what_was_spoken_once_is_not_made_again(phrases: Phrases, engine: Counting) -> None:
    first = await say(phrases, "Hello.")
    assert await say(phrases, "Hello.") == first
    assert engine.asked == ["Hello."]


async def test_pieces_stay_pieces(phrases: Phrases) -> None:
    await say(phrases, "Hi")
    assert await say(phrases, "Hi") == [Sound(b"12345" * 2, 5), Sound(b"67890" * 2, 0)]


@pytest.mark.parametrize(("voice", "speed"), [("anna", 1.0), (None, 1.5)])
async def test_another_voice_or_speed_is_another_phrase(
    phrases: Phrases, engine: Counting, voice: str | None, speed: float
) -> None:
    await say(phrases, "Hello.")
    await say(phrases, "Hello.", voice, speed)
    assert len(engine.asked) == 2


async def test_the_usual_voice_has_many_names(phrases: Phrases, engine: Counting) -> None:
    for voice in (None, "joe", "nobody"):
        await say(phrases, "Hello.", voice)
    assert len(engine.asked) == 1


async def test_warm_phrases_are_there_at_once(phrases: Phrases, engine: Counting) -> None:
    await phrases.warm(["Hello.", "Bye.", "Hello."])
    await say(phrases, "Bye.")
    assert engine.asked == ["Hello.", "Bye."]


async def test_a_warm_phrase_is_there_as_the_clauses_of_an_answer(phrases: Phrases, engine: Counting) -> None:
    await phrases.warm(["**Hi!** How is it?"])
    assert engine.asked == ["Hi!", "How is it?"]


async def test_what_was_not_spoken_for_longest_is_forgotten(phrases: Phrases, engine: Counting) -> None:
    for text in [f"phrase {n:2}" for n in range(8)]:
        await say(phrases, text)
    await say(phrases, "phrase  0")
    await say(phrases, "phrase  8")
    engine.asked.clear()
    for text in ("phrase  0", "phrase  8", "phrase  7", "phrase  1"):
        await say(phrases, text)
    assert engine.asked == ["phrase  1"]


async def test_fixed_phrases_stay_when_others_go(phrases: Phrases, engine: Counting) -> None:
    await phrases.warm(["Just so."])
    for n in range(20):
        await say(phrases, f"phrase {n}")
    engine.asked.clear()
    await say(phrases, "Just so.")
    assert engine.asked == []


async def test_fixed_phrases_go_too_when_there_are_only_such(phrases: Phrases, engine: Counting) -> None:
    await phrases.warm([f"phrase {n}1" for n in range(9)])
    await phrases.warm(["phrase 81", "phrase 01"])
    assert engine.asked[-1] == "phrase 01"


async def test_a_long_text_is_not_kept(phrases: Phrases, engine: Counting) -> None:
    for _ in range(2):
        await say(phrases, "A text that is longer than an eighth.")
    assert len(engine.asked) == 2


async def test_what_was_broken_off_is_made_again(phrases: Phrases, engine: Counting) -> None:
    sounds = phrases.speak("Hello.")
    await anext(sounds)
    await sounds.aclose()  # type: ignore[attr-defined]
    assert engine.finished == ["Hello."]
    await say(phrases, "Hello.")
    assert len(engine.asked) == 2


async def test_what_failed_is_made_again(phrases: Phrases, engine: Counting) -> None:
    engine.is_busy = True
    with pytest.raises(SpeechBusy):
        await say(phrases, "Hello.")
    engine.is_busy = False
    assert len(await say(phrases, "Hello.")) == 2


async def test_nothing_is_nothing(phrases: Phrases) -> None:
    assert await say(phrases, "") == []


async def test_it_tells_what_the_synthesiser_tells(phrases: Phrases, engine: Counting) -> None:
    assert (phrases.name, phrases.output_hz, phrases.voices) == (engine.name, engine.output_hz, engine.voices)


async def test_the_synthesiser_is_closed_with_it(phrases: Phrases, engine: Counting) -> None:
    await phrases.aclose()
    assert engine.is_closed


async def test_the_synthesiser_learns_whether_a_phrase_goes_on(phrases: Phrases, engine: Counting) -> None:
    for goes_on in (False, True):
        assert [sound async for sound in phrases.speak(f"{goes_on}", goes_on=goes_on)]
    assert engine.went_on == [False, True]


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

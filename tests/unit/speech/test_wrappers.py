"""Over a synthesiser that counts; that Piper's sounds are the same each time is tested where Piper is."""

from collections.abc import AsyncIterator, Sequence

import pytest

from antiphon.speech.base import Sound, SpeechBusy, Synthesizer, Urgency, Voice
from antiphon.speech.wrappers import CachingSynthesizer, UrgentOnlyRecognizer


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
def cache(engine: Counting) -> CachingSynthesizer:
    return CachingSynthesizer(engine, max_bytes=800)


async def say(cache: Synthesizer, text: str, voice: str | None = None, speed: float = 1.0) -> list[Sound]:
    return [sound async for sound in cache.speak(text, voice=voice, speed=speed)]


async def test_a_cached_phrase_is_not_synthesized_again(cache: CachingSynthesizer, engine: Counting) -> None:
    first = await say(cache, "Hello.")
    assert await say(cache, "Hello.") == first
    assert engine.asked == ["Hello."]


async def test_cached_audio_keeps_its_chunks(cache: CachingSynthesizer) -> None:
    await say(cache, "Hi")
    assert await say(cache, "Hi") == [Sound(b"12345" * 2, 5), Sound(b"67890" * 2, 0)]


@pytest.mark.parametrize(("voice", "speed"), [("anna", 1.0), (None, 1.5)])
async def test_another_voice_or_speed_is_cached_separately(
    cache: CachingSynthesizer, engine: Counting, voice: str | None, speed: float
) -> None:
    await say(cache, "Hello.")
    await say(cache, "Hello.", voice, speed)
    assert len(engine.asked) == 2


async def test_all_names_of_the_default_voice_share_the_cache(cache: CachingSynthesizer, engine: Counting) -> None:
    for voice in (None, "joe", "nobody"):
        await say(cache, "Hello.", voice)
    assert len(engine.asked) == 1


async def test_warmed_phrases_are_available_at_once(cache: CachingSynthesizer, engine: Counting) -> None:
    await cache.warm(["Hello.", "Bye.", "Hello."])
    await say(cache, "Bye.")
    assert engine.asked == ["Hello.", "Bye."]


async def test_a_warmed_phrase_is_cached_clause_by_clause(cache: CachingSynthesizer, engine: Counting) -> None:
    await cache.warm(["**Hi!** How is it?"])
    assert engine.asked == ["Hi!", "How is it?"]


async def test_the_least_recently_used_phrase_is_evicted(cache: CachingSynthesizer, engine: Counting) -> None:
    for text in [f"phrase {n:2}" for n in range(8)]:
        await say(cache, text)
    await say(cache, "phrase  0")
    await say(cache, "phrase  8")
    engine.asked.clear()
    for text in ("phrase  0", "phrase  8", "phrase  7", "phrase  1"):
        await say(cache, text)
    assert engine.asked == ["phrase  1"]


async def test_fixed_phrases_stay_when_others_are_evicted(cache: CachingSynthesizer, engine: Counting) -> None:
    await cache.warm(["Just so."])
    for n in range(20):
        await say(cache, f"phrase {n}")
    engine.asked.clear()
    await say(cache, "Just so.")
    assert engine.asked == []


async def test_fixed_phrases_are_evicted_when_there_are_no_others(cache: CachingSynthesizer, engine: Counting) -> None:
    await cache.warm([f"phrase {n}1" for n in range(9)])
    await cache.warm(["phrase 81", "phrase 01"])
    assert engine.asked[-1] == "phrase 01"


async def test_a_long_text_is_not_cached(cache: CachingSynthesizer, engine: Counting) -> None:
    for _ in range(2):
        await say(cache, "A text that is longer than an eighth.")
    assert len(engine.asked) == 2


async def test_an_interrupted_phrase_is_not_cached(cache: CachingSynthesizer, engine: Counting) -> None:
    sounds = cache.speak("Hello.")
    await anext(sounds)
    await sounds.aclose()  # type: ignore[attr-defined]
    assert engine.finished == ["Hello."]
    await say(cache, "Hello.")
    assert len(engine.asked) == 2


async def test_a_failed_phrase_is_not_cached(cache: CachingSynthesizer, engine: Counting) -> None:
    engine.is_busy = True
    with pytest.raises(SpeechBusy):
        await say(cache, "Hello.")
    engine.is_busy = False
    assert len(await say(cache, "Hello.")) == 2


async def test_empty_text_gives_no_audio(cache: CachingSynthesizer) -> None:
    assert await say(cache, "") == []


async def test_the_cache_passes_on_the_attributes_of_the_synthesizer(
    cache: CachingSynthesizer, engine: Counting
) -> None:
    assert (cache.name, cache.output_hz, cache.voices) == (engine.name, engine.output_hz, engine.voices)


async def test_closing_the_cache_closes_the_synthesizer(cache: CachingSynthesizer, engine: Counting) -> None:
    await cache.aclose()
    assert engine.is_closed


async def test_the_synthesizer_learns_whether_a_phrase_continues(cache: CachingSynthesizer, engine: Counting) -> None:
    for goes_on in (False, True):
        assert [sound async for sound in cache.speak(f"{goes_on}", goes_on=goes_on)]
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
async def test_a_priced_recognizer_gets_urgent_requests(priced: Priced, urgency: Urgency) -> None:
    assert await UrgentOnlyRecognizer(priced).recognize(bytes(100), urgency) == "what time is it"
    assert priced.asked == [urgency]


async def test_a_priced_recognizer_gets_no_optional_requests(priced: Priced) -> None:
    with pytest.raises(SpeechBusy):
        await UrgentOnlyRecognizer(priced).recognize(bytes(100), Urgency.IDLE)
    assert priced.asked == []


async def test_the_wrapper_has_the_name_of_the_recognizer_and_is_closed_with_it(priced: Priced) -> None:
    recognizer = UrgentOnlyRecognizer(priced)
    assert recognizer.name == "priced"
    await recognizer.aclose()
    assert priced.is_closed

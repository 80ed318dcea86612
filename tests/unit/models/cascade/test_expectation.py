"""What an answer asks for reaches the recogniser, and words that come during an answer complete the request."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from antiphon.models.base import Event, MessageComplete, Prompt, StopReason, TextDelta, TextProfile
from antiphon.models.cascade.end_of_turn import COLLECTING_MS
from antiphon.models.completeness import Completeness
from antiphon.models.expectation import Expectation
from antiphon.models.live import Interrupted, OutputAudio
from antiphon.transcript import UserMessage
from tests.fakes.spoken_call import LONG_ANSWER, talk
from tests.fakes.voice import SILENCES, FakeEngines, Tones, calling


@dataclass
class AskingModel:
    """A model that asks for digits once."""

    profile: TextProfile = field(default_factory=lambda: TextProfile("asking", needs_network=False))

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        asks = len(prompt.messages) == 1
        yield TextDelta("Which number?" if asks else "Thanks.")
        yield MessageComplete(StopReason.DONE, expects=Expectation.DIGITS if asks else Expectation.NOTHING)


@pytest.mark.parametrize("prepares", [True, False])
async def test_an_answer_that_asks_for_digits_allows_long_pauses_in_the_next_turn_only(prepares: bool) -> None:
    fakes = FakeEngines()
    fakes.recognizer.tells_interim = False
    async with calling(fakes.cascade(AskingModel(), Tones(), prepares_answers=prepares), fakes.words.say) as caller:
        await caller.be_silent(500)
        for text in ("please call me", "five five five", "what else is there"):
            await caller.speak(text)
            await caller.be_silent(4_000)
        silences_ms = [round(final.timings.silence_ms) for final in caller.finals if final.timings is not None]
    await fakes.batched_vad.aclose()
    expected_ms = [SILENCES.long_ms, COLLECTING_MS[Expectation.DIGITS], SILENCES.long_ms]
    assert silences_ms == pytest.approx(expected_ms, abs=32)


async def test_words_said_over_the_answer_that_only_complete_the_request_are_answered_together_with_it() -> None:
    async with talk(LONG_ANSWER, "It is nine in Tokyo.") as call:
        call.fakes.known["what time is it"] = Completeness.EXTENDABLE
        call.fakes.known["what time is it in Tokyo"] = Completeness.COMPLETE
        await call.caller.speak("what time is it")
        await call.wait_for_event(OutputAudio)
        await call.caller.speak("in Tokyo")
        await call.caller.be_silent(1_000)
        assert Interrupted(call.caller.finals[0].turn) in call.caller.events
        assert call.caller.heard == ["what time is it", "what time is it in Tokyo"]
        assert call.caller.started[-1].continues is None
        assert call.prompt[-1] == UserMessage("what time is it in Tokyo")

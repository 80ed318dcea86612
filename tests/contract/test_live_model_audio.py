"""What a session may expect of every `LiveModel` with audio input or output."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import pytest

from antiphon.models.base import ModelError
from antiphon.models.live import (
    GenerationComplete,
    InputTranscript,
    Interrupted,
    LiveEvent,
    LiveProfile,
    OutputAudio,
    OutputText,
    TurnComplete,
    TurnStarted,
)
from antiphon.models.providers.openai_realtime import OpenAIRealtime, RealtimeEndpoint
from antiphon.transcript import AssistantMessage, UserMessage
from tests.contract.live_models import (
    FRAME,
    GEMINI_31,
    GEMINI_38,
    HEARING,
    LOUD_SECOND,
    MODELS,
    SECOND,
    Make,
    Subject,
    Turn,
    azure_at,
    gemini,
    listening,
    openai_at,
)
from tests.fakes.paced import Listener, Paced
from tests.fakes.realtime_server import RealtimeServer
from tests.fakes.scripted import ScriptedModel
from tests.fakes.scripted_live import PROFILE, WAITING, Barge, GoOn, Hear, Say, ScriptedLive, Step
from tests.fakes.vendor_answers import Say as Words
from tests.fakes.voice import FakeEngines, Tones
from tests.fakes.with_server import WithServer

NOT_HEARING: Final = [name for name, make in MODELS.items() if not make().model.profile.hears]
SPEAKING: Final = [name for name, make in MODELS.items() if make().model.profile.speaks]
LONG_ANSWER: Final = "One two three four five six seven. Eight nine ten eleven twelve thirteen. And so on and so on."


@pytest.fixture(params=HEARING)
def make_hearing(request: pytest.FixtureRequest) -> Make:
    return HEARING[request.param]


@pytest.mark.parametrize("name", NOT_HEARING)
async def test_a_model_without_audio_input_rejects_audio(name: str) -> None:
    model = MODELS[name]().model
    with pytest.raises(ModelError, match="cannot hear"):
        model.send_audio(FRAME)
    async with listening(model) as talk:
        with pytest.raises(ModelError, match="cannot hear"):
            model.send_audio(FRAME)
        turn = await talk.end_audio()
        assert talk.events == [TurnComplete(turn)]
    with pytest.raises(ModelError, match="cannot hear"):
        model.send_audio(FRAME)


@pytest.mark.parametrize("name", SPEAKING)
async def test_the_audio_has_whole_samples_and_covers_the_text(name: str) -> None:
    async with listening(MODELS[name](Turn.WORDS).model) as talk:
        await talk.ask(Turn.WORDS)
        audio = [event for event in talk.events if isinstance(event, OutputAudio)]
        assert all(piece.pcm and len(piece.pcm) % 2 == 0 for piece in audio)
        assert "".join(piece.text for piece in audio).strip() == talk.text
        assert not any(piece.last for piece in audio[:-1])


def hear(talk: Listener, pcm: bytes) -> None:
    for at in range(0, len(pcm), len(FRAME)):
        talk.model.send_audio(pcm[at : at + len(FRAME)], playing=False)


def finals(talk: Listener) -> list[InputTranscript]:
    return [event for event in talk.events if isinstance(event, InputTranscript) and event.is_final]


def started(talk: Listener) -> list[str]:
    return [event.turn for event in talk.events if isinstance(event, TurnStarted)]


async def test_a_spoken_turn_begins_with_turn_started(make_hearing: Make) -> None:
    subject = make_hearing(Turn.WORDS)
    async with listening(subject.model) as talk:
        hear(talk, subject.speech(Turn.WORDS) + SECOND)
        await talk.settle()
        (turn,) = started(talk)
        assert talk.of(turn) == talk.events
        parts = [event for event in talk.events if not (isinstance(event, InputTranscript) and not event.is_final)]
        assert parts[0] == TurnStarted(turn)
        assert {GenerationComplete(turn), TurnComplete(turn)} <= set(parts)
        assert talk.text


async def test_a_final_transcript_is_emitted_at_most_once(make_hearing: Make) -> None:
    subject = make_hearing(Turn.WORDS)
    async with listening(subject.model) as talk:
        hear(talk, subject.speech(Turn.WORDS) + SECOND)
        await talk.settle()
        told = finals(talk)
        assert [(each.turn, each.text) for each in told] == [(*started(talk), Turn.WORDS)] * len(told)
        assert len(told) <= 1
        assert [entry.turn for entry in talk.transcript] == started(talk) * 2
        assert [type(message) for message in talk.transcript.messages][-1] is AssistantMessage


async def test_a_waiting_model_does_not_answer_before_it_is_asked(make_hearing: Make) -> None:
    subject = make_hearing(Turn.WORDS)
    async with listening(subject.model, answers=False) as talk:
        hear(talk, subject.speech(Turn.WORDS) + SECOND)
        await talk.settle()
        assert (OutputText in talk.kinds) is not subject.model.profile.waits_to_answer
        if subject.model.profile.waits_to_answer:
            (final,) = finals(talk)
            talk.model.respond(final.turn, final.text)
            await talk.settle()
            assert talk.of(final.turn)[-2:] == [GenerationComplete(final.turn), TurnComplete(final.turn)]


async def test_every_spoken_turn_has_its_own_id(make_hearing: Make) -> None:
    subject = make_hearing(Turn.WORDS, Turn.WORDS)
    async with listening(subject.model) as talk:
        for _ in range(2):
            hear(talk, subject.speech(Turn.WORDS) + SECOND)
            await talk.settle()
        assert len(set(started(talk))) == 2
        for turn in started(talk):
            assert TurnComplete(turn) in talk.events


async def test_the_end_of_the_audio_ends_the_users_turn_under_the_sessions_id(make_hearing: Make) -> None:
    subject = make_hearing(Turn.WORDS)
    async with listening(subject.model) as talk:
        hear(talk, subject.speech(Turn.WORDS)[-len(SECOND) // 2 :])
        turn = await talk.end_audio()
        assert {final.turn for final in finals(talk)} <= {turn}
        assert {event.turn for event in talk.events if isinstance(event, OutputText | OutputAudio)} == {turn}
        assert started(talk) == [turn]
        assert [event for event in talk.events if isinstance(event, TurnComplete)] == [TurnComplete(turn)]
        assert talk.text


async def test_the_end_of_the_audio_ends_the_turn_even_if_nothing_was_heard(make_hearing: Make) -> None:
    async with listening(make_hearing(Turn.WORDS).model) as talk:
        turn = await talk.end_audio()
        assert talk.events == [TurnComplete(turn)]


async def test_spoken_words_are_part_of_the_conversation_once(make_hearing: Make) -> None:
    subject = make_hearing(Turn.WORDS)
    async with listening(subject.model) as talk:
        hear(talk, subject.speech(Turn.WORDS) + SECOND)
        await talk.settle()
        assert list(subject.given()).count(UserMessage(Turn.WORDS)) == 1


async def test_words_typed_after_a_spoken_turn_come_after_it(make_hearing: Make) -> None:
    subject = make_hearing(Turn.WORDS, Turn.CALL)
    async with listening(subject.model) as talk:
        hear(talk, subject.speech(Turn.WORDS) + SECOND)
        await talk.settle()
        await talk.ask(Turn.CALL)
        assert [type(message) for message in subject.given()] == [UserMessage, AssistantMessage, UserMessage]
        assert subject.given()[-1] == UserMessage(Turn.CALL)


# A user who continues speaking, or speaks over the answer.


def speaking_user(steps: Sequence[Step], *answers: str) -> dict[str, Make]:
    """Models that hear the user speak twice: scripted models get a script, the others get answers."""

    def cascade(*turns: Turn) -> Subject:
        fakes = FakeEngines()
        paced = Paced(ScriptedModel(list(answers)))
        # A prepared answer is heard at once, and a turn can only be continued before the first audio of the answer.
        model = fakes.cascade(paced, Tones(), prepares_answers=False)
        return Subject(model, lambda: paced.prompts[-1].messages, fakes.words.say)

    def scripted(profile: LiveProfile) -> Subject:
        model = ScriptedLive(steps, profile=profile)
        return Subject(model, lambda: model.prompts[-1])

    return {"cascade": cascade, "scripted": lambda *_: scripted(WAITING), "native": lambda *_: scripted(PROFILE)}


def realtime_user(answer: str) -> dict[str, Make]:
    """Realtime models that hear the user speak. Their servers end a turn at a silence, so no turn is continued."""

    def make(endpoint: Callable[[RealtimeServer], RealtimeEndpoint]) -> Subject:
        server = RealtimeServer(lambda messages, asked: [Words(answer)])
        model = WithServer(OpenAIRealtime(endpoint(server)), server)
        return Subject(model, lambda: server.prompts[-1], lambda text: LOUD_SECOND)

    return {"openai": lambda *_: make(openai_at), "azure": lambda *_: make(azure_at)}


async def sound(talk: Listener, pcm: bytes) -> None:
    """Sends audio at the pace of a microphone."""
    for at in range(0, len(pcm), len(FRAME)):
        talk.model.send_audio(pcm[at : at + len(FRAME)])
        await asyncio.sleep(0.02)


async def sound_until(talk: Listener, kind: type[LiveEvent], times: int = 1) -> None:
    """Sends silence until an event of this type has arrived."""
    async with asyncio.timeout(30):
        while sum(isinstance(event, kind) for event in talk.events) < times:
            await sound(talk, FRAME)


GOES_ON: Final = speaking_user(
    [Hear("what time", after_ms=800), GoOn(40), Hear("what time is it", after_ms=300, continues=True), Say("Noon.")],
    *["It's noon."] * 4,
)
BARGES_IN: Final = {
    **speaking_user([Hear("count", after_ms=800), Say(LONG_ANSWER, audio_ms=9_000), Barge(after_ms=500)], LONG_ANSWER),
    **realtime_user(LONG_ANSWER),
    "gemini 3.8": gemini(GEMINI_38, reply=lambda messages, asked: [Words(LONG_ANSWER)], waits_for_tools=False),
    "gemini 3.1": gemini(GEMINI_31, reply=lambda messages, asked: [Words(LONG_ANSWER)], waits_for_tools=True),
}


@pytest.mark.parametrize("name", GOES_ON)
async def test_a_continued_turn_names_the_turn_it_replaces(name: str) -> None:
    subject = GOES_ON[name]()
    async with listening(subject.model) as talk:
        await sound(talk, SECOND + subject.speech("what time"))
        await sound_until(talk, TurnStarted)
        await sound(talk, subject.speech("is it"))
        await sound_until(talk, TurnStarted, times=2)
        await sound_until(talk, GenerationComplete)
        await talk.settle()
        first, second = (event for event in talk.events if isinstance(event, TurnStarted))
        assert second.continues == first.turn
        assert first.continues is None
        assert GenerationComplete(first.turn) not in talk.events
        assert talk.events.count(TurnComplete(second.turn)) == 1
        assert [final.text for final in finals(talk)][-1] == "what time is it"
        assert [m for m in talk.transcript.messages if isinstance(m, UserMessage)] == [UserMessage("what time is it")]
        assert [m for m in subject.given() if isinstance(m, UserMessage)] == [UserMessage("what time is it")]


@pytest.mark.parametrize("name", BARGES_IN)
async def test_speech_over_the_answer_cancels_it(name: str) -> None:
    subject = BARGES_IN[name](Turn.WORDS)
    async with listening(subject.model) as talk:
        await sound(talk, SECOND + subject.speech("count"))
        await sound_until(talk, OutputAudio)
        await sound(talk, SECOND[: len(SECOND) // 2] + subject.speech("stop it please stop it"))
        await sound_until(talk, Interrupted)
        (turn, *_) = started(talk)
        interrupted = next(event for event in talk.events if isinstance(event, Interrupted))
        assert interrupted == Interrupted(turn)
        await talk.settle()
        after = [event for event in talk.of(turn) if talk.events.index(event) > talk.events.index(interrupted)]
        assert [type(event) for event in after if not isinstance(event, InputTranscript)] in ([], [TurnComplete])
        assert talk.events.count(TurnComplete(turn)) == 1

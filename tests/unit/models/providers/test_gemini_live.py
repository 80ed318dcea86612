"""What Gemini Live says and hears, message by message."""

import asyncio
from typing import Any

import pytest
from google.genai import types

from antiphon.models.base import FailureKind
from antiphon.models.live import (
    GenerationComplete,
    InputTranscript,
    OutputAudio,
    OutputText,
    ResumptionUpdate,
    TurnComplete,
    TurnFailed,
    TurnStarted,
    Usage,
)
from antiphon.models.providers.gemini_connect import send_audio
from antiphon.models.providers.gemini_content import SAY
from tests.fakes.gemini_talk import (
    COMPLETE,
    GEMINI_25,
    GEMINI_31,
    GEMINI_38,
    GEMINI_THINKING,
    GENERATED,
    IDLE,
    PCM,
    audio,
    content,
    hears,
    speaks,
    talking,
    turn_of,
)

ALL = [GEMINI_38, GEMINI_THINKING, GEMINI_31, GEMINI_25, "gemini-of-the-future"]
TURN_TAKING = [GEMINI_38, GEMINI_THINKING, GEMINI_25]


# Answers.


async def test_an_answer_has_words_audio_and_an_end() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Hello "), speaks("there."), GENERATED, COMPLETE)
        assert talk.events == [
            OutputText("t", "Hello "),
            OutputAudio("t", PCM, "Hello "),
            OutputText("t", "there."),
            OutputAudio("t", PCM, "there."),
            GenerationComplete("t"),
            TurnComplete("t"),
        ]


@pytest.mark.parametrize(
    ("name", "sent"),
    [(name, turn_of("hello")) for name in TURN_TAKING] + [(GEMINI_31, {"realtimeInput": {"text": "hello"}})],
)
async def test_typed_text_is_sent_as_the_model_takes_it(name: str, sent: dict[str, Any]) -> None:
    async with talking(name) as talk:
        talk.model.respond("t", "hello")
        assert await talk.sent() == [sent]


@pytest.mark.parametrize("name", ALL)
async def test_given_words_are_said_on_instruction(name: str) -> None:
    async with talking(name) as talk:
        talk.model.say("t", "Good morning.")
        (sent,) = await talk.sent()
        assert SAY.format(words="Good morning.") in str(sent)
        await talk.says(speaks("Good morning."), GENERATED, IDLE)
        assert talk.events[0] == OutputText("t", "Good morning.")
        assert talk.events[-1] == TurnComplete("t")


async def test_thoughts_are_skipped() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        parts = [{"text": "The user greets me.", "thought": True}, *audio()["parts"]]
        await talk.says(content(modelTurn={"parts": parts}, outputTranscription={"text": "Hi."}), COMPLETE)
        assert [event.text for event in talk.events if isinstance(event, OutputText)] == ["Hi."]


async def test_text_is_the_answer_if_there_is_no_transcription() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(content(modelTurn={"parts": [{"text": "Hel"}, {"text": "lo."}]}), COMPLETE)
        assert talk.events == [OutputText("t", "Hello."), GenerationComplete("t"), TurnComplete("t")]


async def test_text_is_not_told_twice_if_there_is_a_transcription() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(content(modelTurn={"parts": [{"text": "Hello."}]}), speaks("Hello."), COMPLETE)
        assert [event.text for event in talk.events if isinstance(event, OutputText)] == ["Hello."]


async def test_one_message_may_carry_everything() -> None:
    async with talking() as talk:
        message = {
            "serverContent": {
                "inputTranscription": {"text": "hello", "finished": True},
                "modelTurn": audio(),
                "outputTranscription": {"text": "Hi."},
                "generationComplete": True,
                "turnComplete": True,
            },
            "usageMetadata": {"promptTokenCount": 12, "responseTokenCount": 3, "thoughtsTokenCount": 4},
            "sessionResumptionUpdate": {"newHandle": "h1", "resumable": True},
        }
        await talk.says(message)
        (turn,) = [event.turn for event in talk.events if isinstance(event, TurnStarted)]
        assert talk.events == [
            ResumptionUpdate("h1"),
            InputTranscript(turn, "hello", is_final=False),
            TurnStarted(turn),
            InputTranscript(turn, "hello", is_final=True),
            OutputText(turn, "Hi."),
            OutputAudio(turn, PCM, "Hi."),
            Usage(turn, 12, 7),
            GenerationComplete(turn),
            TurnComplete(turn),
        ]


async def test_words_may_follow_the_end_of_the_generation() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Hello "), GENERATED, content(outputTranscription={"text": "there."}))
        await talk.says(GENERATED)
        await asyncio.sleep(1)
        assert talk.take()[-3:] == [
            OutputText("t", "there."),
            OutputAudio("t", bytes(960), "there.", last=True),
            GenerationComplete("t"),
        ]
        await talk.says(COMPLETE, content(outputTranscription={"text": " Bye."}))
        assert talk.events == [TurnComplete("t")]


async def test_the_generation_is_complete_before_the_server_thinks_that_it_was_played() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Hello."), GENERATED)
        await asyncio.sleep(1)
        assert talk.take()[-1] == GenerationComplete("t")
        await talk.says(COMPLETE)
        assert talk.events == [TurnComplete("t")]


async def test_an_empty_answer_to_a_question_is_a_failure() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(COMPLETE)
        failed, complete = talk.events
        assert isinstance(failed, TurnFailed)
        assert failed.kind is FailureKind.EMPTY
        assert complete == TurnComplete("t")


async def test_a_rejected_answer_tells_why() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(content(turnComplete=True, turnCompleteReason="PROHIBITED_INPUT_CONTENT"))
        failed, complete = talk.events
        assert isinstance(failed, TurnFailed)
        assert "gave no answer (PROHIBITED_INPUT_CONTENT)" in failed.message
        assert complete == TurnComplete("t")


@pytest.mark.parametrize(("name", "seconds"), [(GEMINI_38, 30), (GEMINI_THINKING, 100)])
async def test_a_model_that_never_answers_is_given_up(name: str, seconds: int) -> None:
    async with talking(name) as talk:
        talk.model.respond("t", "hello")
        await asyncio.sleep(seconds - 1)
        assert talk.events == []
        await asyncio.sleep(2)
        failed, complete = talk.events
        assert isinstance(failed, TurnFailed)
        assert f"did not answer within {seconds} seconds" in failed.message
        assert (failed.kind, complete) == (FailureKind.TIMEOUT, TurnComplete("t"))


async def test_an_answer_that_stops_in_the_middle_is_given_up() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await asyncio.sleep(20)
        await talk.says(speaks("Well, "))
        await asyncio.sleep(20)
        assert talk.kinds == ["OutputText", "OutputAudio"]
        await asyncio.sleep(20)
        assert talk.kinds[2:] == ["TurnFailed", "TurnComplete"]


async def test_extended_thinking_goes_on_until_it_is_idle() -> None:
    async with talking(GEMINI_THINKING) as talk:
        talk.model.respond("t", "hello")
        await talk.says(speaks("Let me see. "), GENERATED, content(turnComplete=True, interactionStatus="IN_PROGRESS"))
        await asyncio.sleep(50)
        await talk.says(speaks("It is 42."), GENERATED, IDLE)
        words = [event.text for event in talk.events if isinstance(event, OutputText)]
        assert words == ["Let me see. ", "It is 42."]
        assert talk.events[-2:] == [GenerationComplete("t"), TurnComplete("t")]
        assert talk.kinds.count("GenerationComplete") == talk.kinds.count("TurnComplete") == 1


async def test_odd_audio_is_joined_to_whole_samples() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        await talk.says(content(modelTurn=audio(b"\1\2\3")), content(modelTurn=audio(b"\4")), COMPLETE)
        assert [event.pcm for event in talk.events if isinstance(event, OutputAudio)] == [b"\1\2", b"\3\4"]


async def test_halves_of_characters_are_joined() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        for half in ('"\\ud83d"', '"\\ude00"'):
            await talk.says('{"serverContent": {"outputTranscription": {"text": ' + half + "}}}")
        await talk.says(COMPLETE)
        assert [event.text for event in talk.events if isinstance(event, OutputText)] == ["😀"]


async def test_an_endless_answer_is_stopped() -> None:
    async with talking() as talk:
        talk.model.respond("t", "hello")
        for _ in range(13):
            await talk.says(content(outputTranscription={"text": "".join(map(str, range(2_500)))}))
        assert talk.kinds[-2:] == ["TurnFailed", "TurnComplete"]
        talk.take()
        await talk.says(speaks("More."), COMPLETE)
        assert talk.events == []


# What is heard.


async def test_a_spoken_turn_begins_with_its_answer() -> None:
    async with talking() as talk:
        await talk.says(hears("What "), hears("time?"), speaks("Noon."), GENERATED)
        await asyncio.sleep(2)
        await talk.says(COMPLETE)
        (turn,) = [event.turn for event in talk.events if isinstance(event, TurnStarted)]
        assert talk.events == [
            InputTranscript(turn, "What", is_final=False),
            InputTranscript(turn, "What time?", is_final=False),
            TurnStarted(turn),
            OutputText(turn, "Noon."),
            OutputAudio(turn, PCM, "Noon."),
            GenerationComplete(turn),
            InputTranscript(turn, "What time?", is_final=True),
            TurnComplete(turn),
        ]


async def test_words_that_come_during_the_answer_belong_to_its_turn() -> None:
    async with talking() as talk:
        await talk.says(hears("What "), speaks("It's "), hears("time?"), speaks("noon."), COMPLETE)
        finals = [event for event in talk.events if isinstance(event, InputTranscript) and event.is_final]
        (turn,) = [event.turn for event in talk.events if isinstance(event, TurnStarted)]
        assert finals == [InputTranscript(turn, "What time?", is_final=True)]


async def test_the_first_words_may_come_after_the_turn() -> None:
    async with talking() as talk:
        await talk.says(speaks("Noon."), COMPLETE)
        (turn,) = [event.turn for event in talk.events if isinstance(event, TurnStarted)]
        talk.take()
        await talk.says(hears("What "), hears("time?"))
        await asyncio.sleep(2)
        assert talk.events[-1] == InputTranscript(turn, "What time?", is_final=True)


async def test_words_long_after_a_turn_without_any_belong_to_the_next() -> None:
    async with talking() as talk:
        await talk.says(speaks("Noon."), COMPLETE)
        (turn,) = [event.turn for event in talk.events if isinstance(event, TurnStarted)]
        talk.take()
        await asyncio.sleep(5)
        await talk.says(hears("And now?"), speaks("Still noon."))
        said, begun, *_ = talk.events
        assert isinstance(begun, TurnStarted)
        assert begun.turn != turn
        assert said == InputTranscript(begun.turn, "And now?", is_final=False)


async def test_a_finished_transcription_is_final_at_once() -> None:
    async with talking() as talk:
        await talk.says(hears("Hi"), speaks("Hello."), hears(" there", finished=True), hears("You"))
        finals = [event.text for event in talk.events if isinstance(event, InputTranscript) and event.is_final]
        assert finals == ["Hi there"]


async def test_speech_that_the_model_does_not_answer_is_kept() -> None:
    async with talking() as talk:
        await talk.says(hears("Not you."), COMPLETE)
        _, begun, *rest = talk.events
        assert isinstance(begun, TurnStarted)
        assert rest == [
            InputTranscript(begun.turn, "Not you.", is_final=True),
            GenerationComplete(begun.turn),
            TurnComplete(begun.turn),
        ]


async def test_uncertain_words_are_shown_and_not_kept() -> None:
    async with talking() as talk:
        await talk.says(
            hears("Turn "), content(interimInputTranscription={"text": "on the lied"}), hears("on the light")
        )
        assert [event.text for event in talk.events if isinstance(event, InputTranscript)] == [
            "Turn",
            "Turn on the lied",
            "Turn on the light",
        ]


async def test_audio_is_sent_as_the_sdk_would_send_it() -> None:
    pcm = bytes(range(256))
    async with talking() as talk:
        session = talk.model._session
        assert session is not None
        await session.send_realtime_input(audio=types.Blob(data=pcm, mime_type="audio/pcm;rate=16000"))
        await send_audio(session, pcm)
        talk.model.send_audio(pcm, playing=True)
        await talk.sent()
        theirs, ours, sent = talk.client.raw[-3:]
        assert theirs == ours == sent
        assert sent["realtime_input"]["audio"]["data"].startswith("AAECAwQ")


async def test_the_end_of_the_audio_is_told_and_names_the_turn() -> None:
    async with talking() as talk:
        talk.model.send_audio(bytes(640))
        talk.model.end_audio("mine")
        assert (await talk.sent())[-1] == {"realtimeInput": {"audioStreamEnd": True}}
        await talk.says(hears("Hello"))
        assert talk.take()[-1] == TurnStarted("mine")
        await talk.says(speaks("Hi."), COMPLETE)
        assert InputTranscript("mine", "Hello", is_final=True) in talk.events
        assert talk.events[-1] == TurnComplete("mine")


async def test_words_heard_before_the_end_of_the_audio_begin_the_turn_at_once() -> None:
    async with talking() as talk:
        talk.model.send_audio(bytes(640))
        await talk.says(hears("Hello"))
        talk.model.end_audio("mine")
        await talk.sent()
        assert talk.events[-1] == TurnStarted("mine")


async def test_audio_in_which_nothing_was_heard_ends_in_an_empty_turn() -> None:
    async with talking() as talk:
        talk.model.send_audio(bytes(640))
        talk.model.end_audio("mine")
        await asyncio.sleep(4)
        assert talk.events == []
        await asyncio.sleep(2)
        assert talk.events == [TurnComplete("mine")]
        await talk.says(speaks("Did you say something?"))
        begun = talk.events[1]
        assert isinstance(begun, TurnStarted)
        assert begun.turn != "mine"


async def test_typed_text_ends_the_wait_for_what_was_heard() -> None:
    async with talking() as talk:
        talk.model.send_audio(bytes(640))
        talk.model.end_audio("mine")
        talk.model.respond("typed", "hello")
        await talk.says(speaks("Hi."), COMPLETE)
        assert talk.events[0] == TurnComplete("mine")
        assert talk.events[-1] == TurnComplete("typed")


# The connection.


@pytest.mark.parametrize(
    ("update", "handle"),
    [
        ({"newHandle": "h1", "resumable": True}, "h1"),
        ({"newHandle": "h1", "resumable": True, "lastConsumedClientMessageIndex": "12"}, "h1"),
        ({"newHandle": "h1"}, None),
        ({"newHandle": "", "resumable": True}, None),
        ({}, None),
    ],
)
async def test_a_handle_counts_only_while_the_session_is_resumable(update: dict[str, Any], handle: str | None) -> None:
    async with talking() as talk:
        await talk.says({"sessionResumptionUpdate": update})
        assert talk.events == [ResumptionUpdate(handle)]


async def test_messages_after_the_end_of_a_turn_are_read() -> None:
    async with talking() as talk:
        for handle in ("h1", "h2"):
            talk.model.respond(handle, "hello")
            update = {"sessionResumptionUpdate": {"newHandle": handle, "resumable": True}}
            await talk.says(speaks("Hi."), COMPLETE, update)
            assert talk.events[-1] == ResumptionUpdate(handle)


async def test_usage_without_an_answer_is_not_told() -> None:
    async with talking() as talk:
        await talk.says({"usageMetadata": {"promptTokenCount": 5}})
        assert talk.events == []


async def test_close_is_quick_even_if_the_server_does_not_answer() -> None:
    async with talking() as talk:
        talk.client.socket.transport.pause_reading()
        started_s = asyncio.get_running_loop().time()
        await talk.model.close()
        assert asyncio.get_running_loop().time() - started_s < 3
        talk.client.socket.transport.abort()

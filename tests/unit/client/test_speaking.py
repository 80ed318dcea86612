"""A spoken turn by program: what goes out when, and where the turn ends."""

import asyncio
from typing import Any

import pytest

from antiphon.client import Disconnected, NoAnswer
from antiphon.client.speaking import (
    FRAME_BYTES,
    MAX_ANSWER_S,
    MAX_HEARING_S,
    QUIET,
    SETTLED_S,
    end_of_speech_ms,
    say,
)
from antiphon.protocol import server_messages as s
from antiphon.protocol.client_messages import Interrupt, PlaybackDone
from antiphon.protocol.codec import wav_base64
from antiphon.protocol.limits import SPEECH_HZ
from tests.unit.client.scripted_session import ScriptedSession

LOUD = (QUIET + 1).to_bytes(2, "little", signed=True)
SECOND = bytes(2 * SPEECH_HZ)
METRICS = s.TurnMetrics(turn=1, total_ms=500.0)


def speech(seconds: float, silence_s: float = 0.0) -> bytes:
    return LOUD * round(16_000 * seconds) + bytes(2 * round(16_000 * silence_s))


def frame(pcm: bytes = SECOND, turn: int = 1) -> s.SpeechFrame:
    return s.SpeechFrame(0, turn, 0, pcm)


def heard(text: str) -> s.Transcript:
    return s.Transcript(text, is_final=True)


def about(expected: Any) -> Any:
    """The virtual clock adds the time that the work itself takes, which is more on a busy machine."""
    return pytest.approx(expected, abs=0.2)


# What goes out.


async def test_speech_is_sent_frame_by_frame_in_real_time() -> None:
    session = ScriptedSession()
    session.come(heard("hi"), METRICS, in_s=2)
    began_s = asyncio.get_running_loop().time()
    await say(session, speech(1))
    sent = [(at_s - began_s, pcm) for at_s, pcm, _ in session.audio[:50]]
    assert b"".join(pcm for _, pcm in sent) == speech(1)
    assert all(at_s >= number * 0.02 - 0.001 for number, (at_s, _) in enumerate(sent))
    assert sent[-1][0] == about(0.98)


async def test_silence_is_sent_while_waiting_for_the_answer() -> None:
    session = ScriptedSession()
    session.come(heard("hi"), METRICS, in_s=2)
    await say(session, speech(1))
    after = [pcm for _, pcm, _ in session.audio[50:]]
    assert len(after) == pytest.approx(50, abs=10)
    assert set(after) == {bytes(FRAME_BYTES)}


async def test_playback_is_reported_when_the_answer_can_have_been_played() -> None:
    session = ScriptedSession()
    session.come(heard("hi"), frame(), in_s=1.5)
    session.come(frame(), s.GenerationComplete(turn=7), in_s=1.7)
    session.come(METRICS, in_s=4)
    began_s = asyncio.get_running_loop().time()
    await say(session, speech(1))
    [(at_s, message)] = session.sent
    assert message == PlaybackDone(7)
    assert at_s - began_s == about(1.5 + 2)


async def test_an_impatient_caller_interrupts_the_answer() -> None:
    session = ScriptedSession()
    session.come(heard("hi"), frame(), s.GenerationComplete(turn=1), in_s=1.5)
    session.come(METRICS, in_s=1.6)
    began_s = asyncio.get_running_loop().time()
    await say(session, speech(1), patient=False)
    [(at_s, message)] = session.sent
    assert message == Interrupt(played_ms=1000)
    assert at_s - began_s == about(1.5)


async def test_an_answer_without_sound_is_not_played() -> None:
    session = ScriptedSession()
    session.come(heard("hi"), s.Response("Hello."), s.GenerationComplete(turn=1), METRICS, in_s=1.5)
    exchange = await say(session, speech(1))
    assert exchange.response == "Hello."
    assert session.sent == []


# What comes.


async def test_times_are_measured_from_the_end_of_speech() -> None:
    session = ScriptedSession()
    session.come(heard("hi"), in_s=1.5)
    session.come(s.ResponseChunk("Hello", is_first=True), in_s=2)
    session.come(s.ResponseChunk(" there", is_first=False), frame(), in_s=3)
    session.come(frame(), METRICS, in_s=4)
    exchange = await say(session, speech(1, silence_s=0.5))
    assert [exchange.transcript_s, exchange.first_word_s, exchange.first_audio_s] == about([0.5, 1.0, 2.0])
    assert exchange.answer_s == about(2)


async def test_speech_in_messages_is_used_without_its_header() -> None:
    session = ScriptedSession()
    session.come(heard("hi"), s.Audio(data=wav_base64(SECOND, SPEECH_HZ), turn=1), METRICS, in_s=1.5)
    assert (await say(session, speech(1))).pcm == SECOND


async def test_every_incoming_message_is_passed_on() -> None:
    session, told = ScriptedSession(), list[object]()
    call = s.ToolCall("calculate", {}, "1")
    result = s.ToolResult("calculate", {"result": 4}, "1")
    question = s.ConfirmationRequest("t", "book", {}, "Book it?", 0)
    session.come(s.Transcript("h", is_final=False), heard("hi"), call, result, question, METRICS, in_s=1.5)
    exchange = await say(session, speech(1), told.append)
    assert told[0] == s.Transcript("h", is_final=False)
    assert told[-1] == METRICS
    assert exchange.interims == ["h"]
    assert (exchange.tools, exchange.results, exchange.questions) == ([call], [result], [question])


# Where a turn ends.


async def test_the_answer_to_a_part_of_the_recording_is_not_its_answer() -> None:
    session = ScriptedSession()
    session.come(heard("what time"), s.ResponseChunk("It", is_first=True), METRICS, in_s=1)
    session.come(heard("what time is it in Tokyo"), s.Response("Noon."), METRICS, in_s=3)
    exchange = await say(session, speech(2))
    assert (exchange.transcript, exchange.response) == ("what time is it in Tokyo", "Noon.")
    assert exchange.first_word_s is None


async def test_the_end_of_an_interrupted_answer_is_not_the_end() -> None:
    session = ScriptedSession()
    session.come(METRICS, in_s=0.5)
    session.come(heard("stop"), s.Response("All right."), METRICS, in_s=6)
    assert (await say(session, speech(2))).response == "All right."


CALL = s.ToolCall("get_current_time", {}, "1")
ANSWER = (CALL, s.ResponseChunk("Noon.", is_first=True, turn=1), s.Response("Noon.", turn=1))


@pytest.mark.parametrize("at", range(4))
async def test_a_late_transcript_belongs_to_the_answer_before_it(at: int) -> None:
    session = ScriptedSession()
    told: list[Any] = list(ANSWER)
    told.insert(at, s.Transcript("what time is it", is_final=True, turn=1))
    session.come(*told, METRICS, in_s=1.5)
    exchange = await say(session, speech(1))
    assert (exchange.transcript, exchange.response, exchange.tools) == ("what time is it", "Noon.", [CALL])


async def test_an_answer_without_a_transcript_is_an_answer() -> None:
    session = ScriptedSession()
    session.come(*ANSWER, METRICS, in_s=1.5)
    exchange = await say(session, speech(1))
    assert (exchange.transcript, exchange.response, exchange.metrics) == ("", "Noon.", METRICS)


async def test_trailing_noise_is_not_waited_for_long() -> None:
    session = ScriptedSession()
    session.come(heard("hi"), s.Response("Hello."), METRICS, in_s=1)
    began_s = asyncio.get_running_loop().time()
    exchange = await say(session, speech(3))
    assert exchange.response == "Hello."
    assert asyncio.get_running_loop().time() - began_s == about(3 + SETTLED_S)


async def test_an_error_is_the_end_when_the_session_listens_again() -> None:
    session = ScriptedSession()
    session.come(heard("hi"), s.Error("It failed."), s.StateChanged(s.State.LISTENING), in_s=1.5)
    assert (await say(session, speech(1))).errors == ["It failed."]


async def test_unrecognized_words_get_no_answer() -> None:
    session = ScriptedSession()
    began_s = asyncio.get_running_loop().time()
    with pytest.raises(NoAnswer, match="No speech"):
        await say(session, speech(1))
    assert asyncio.get_running_loop().time() - began_s == about(1 + MAX_HEARING_S)


async def test_waiting_for_an_answer_times_out() -> None:
    session = ScriptedSession()
    session.come(heard("hi"), in_s=2)
    began_s = asyncio.get_running_loop().time()
    with pytest.raises(NoAnswer, match="'hi'"):
        await say(session, speech(1))
    assert asyncio.get_running_loop().time() - began_s == about(2 + MAX_ANSWER_S)


async def test_a_call_that_the_server_ends_has_no_answer() -> None:
    session = ScriptedSession()
    session.come(s.EndVoiceSession("blocked", None), in_s=1.5)
    with pytest.raises(NoAnswer, match="blocked"):
        await say(session, speech(1))


async def test_an_answer_that_ends_the_call_counts_as_an_answer() -> None:
    session = ScriptedSession()
    session.come(heard("bye"), s.Response("Bye."), METRICS, s.EndVoiceSession("user_request", "Bye."), in_s=0.5)
    assert (await say(session, speech(1))).response == "Bye."


async def test_a_session_that_ends_has_no_answer() -> None:
    session = ScriptedSession()
    session.end()
    with pytest.raises(NoAnswer, match="ended"):
        await say(session, speech(1))


async def test_a_lost_connection_is_reported() -> None:
    session = ScriptedSession()
    session.end(Disconnected("The connection was lost.", come_back=True))
    with pytest.raises(Disconnected):
        await say(session, speech(1))


@pytest.mark.parametrize(
    ("pcm", "ends_ms"),
    [
        (b"", 0),
        (bytes(32_000), 0),
        (QUIET.to_bytes(2, "little") * 100, 0),
        (speech(1), 1_000),
        (speech(0.5, silence_s=3), 500),
        ((-32_768).to_bytes(2, "little", signed=True) * 16, 1),
    ],
)
def test_the_end_of_speech_is_its_last_sound(pcm: bytes, ends_ms: int) -> None:
    assert end_of_speech_ms(pcm) == ends_ms

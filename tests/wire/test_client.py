"""The Python client's `ask`, `speak` and `resolve`, with a real server."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from antiphon import client
from antiphon.client import (
    AnswerFailed,
    ClientError,
    ConfirmationNeeded,
    ConfirmationRequest,
    Disconnected,
    Incoming,
    NoAnswer,
    RecordingError,
    VoiceUnavailable,
    connect,
)
from antiphon.protocol.server_messages import ResponseChunk
from antiphon.sound_format import write_wav
from tests.fakes.scripted_live import Hear, Say, Step
from tests.wire.served import Served, serve
from tests.wire.test_confirmation import DECLINED, DONE, QUESTION, WISH, write_garden

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_garden(tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def served(garden: Path) -> Iterator[Served]:
    with serve(garden.parents[1]) as served:
        yield served


def watered(garden: Path) -> int:
    return len((garden / "watered").read_text().splitlines()) if (garden / "watered").exists() else 0


async def test_an_answer_has_its_text_its_tools_and_its_metrics(served: Served) -> None:
    seen: list[Incoming] = []
    async with connect(served.http) as conversation:
        answer = await conversation.ask("What is 2 plus 3?", tell=seen.append)
        again = await conversation.ask("And 4 plus 5?")
        assert conversation.take_waiting() == []
    assert str(answer) == answer.text == "2 plus 3 is 5."
    assert (answer.question, answer.turn) == ("What is 2 plus 3?", 1)
    [tool] = answer.tools
    assert (tool.name, tool.ok, tool.title) == ("calculate", True, "Calculate")
    assert tool.result["result"] == 5
    assert answer.metrics is not None
    assert answer.metrics.total_ms is not None
    assert "".join(each.text for each in seen if isinstance(each, ResponseChunk)) == answer.text
    assert (again.text, again.turn) == ("4 plus 5 is 9.", 2)
    assert again.conversation_id == answer.conversation_id
    assert answer.wav == b""


def test_a_script_asks_in_one_line_and_continues_the_conversation(served: Served) -> None:
    answer = client.ask(served.http, "What is 2 plus 3?")
    assert answer.text == "2 plus 3 is 5."
    again = client.ask(served.url, "What is 7 plus 1?", conversation_id=answer.conversation_id)
    assert (again.text, again.conversation_id) == ("7 plus 1 is 8.", answer.conversation_id)


async def test_the_line_for_scripts_says_what_to_use_where_a_loop_runs(served: Served) -> None:
    with pytest.raises(ClientError, match=r"An event loop is running here. Use `async with connect"):
        client.ask(served.http, "What is 2 plus 3?")


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_decides_about_calls_that_need_approval(served: Served, garden: Path, is_async: bool) -> None:
    asked: list[ConfirmationRequest] = []

    def approve(request: ConfirmationRequest) -> bool:
        asked.append(request)
        return True

    async def approve_later(request: ConfirmationRequest) -> bool:
        await asyncio.sleep(0)
        return approve(request)

    before = watered(garden)
    async with connect(served.http) as conversation:
        answer = await conversation.ask(WISH, confirm=approve_later if is_async else approve)
        after = await conversation.ask("What is 1 plus 1?")
    assert [each.preview for each in asked] == [QUESTION]
    assert answer.text == DONE
    [tool] = answer.tools
    assert (tool.ok, tool.args, tool.result) == (True, {"place": "garden"}, {"watered": "garden"})
    assert watered(garden) == before + 1
    assert after.text == "1 plus 1 is 2."


async def test_a_no_does_nothing(served: Served, garden: Path) -> None:
    before = watered(garden)
    async with connect(served.http) as conversation:
        answer = await conversation.ask(WISH, confirm=lambda request: False)
    assert answer.text == DECLINED
    assert not answer.tools[0].ok
    assert watered(garden) == before


async def test_without_a_function_the_error_has_the_request(served: Served, garden: Path) -> None:
    before = watered(garden)
    async with connect(served.http) as conversation:
        with pytest.raises(
            ConfirmationNeeded, match=r"water_plants waits for approval: Water the garden\? Nothing was"
        ) as why:
            await conversation.ask(WISH)
        assert watered(garden) == before
        answer = await conversation.resolve(why.value.request, approved=True)
        assert answer.text == DONE
        assert watered(garden) == before + 1
        # Each question can be answered once.
        with pytest.raises(AnswerFailed, match="answered already"):
            await conversation.resolve(why.value.request, approved=True)


@pytest.mark.parametrize(
    ("text", "message"), [(" ", "The question is empty"), ("x" * 8_001, "has 8,001 characters. At most 8,000")]
)
async def test_a_question_that_no_server_takes_is_refused_at_once(served: Served, text: str, message: str) -> None:
    async with connect(served.http) as conversation:
        with pytest.raises(ClientError, match=message):
            await conversation.ask(text)


async def test_an_answer_that_takes_too_long_is_given_up_and_the_next_one_is_its_own(
    served: Served, garden: Path
) -> None:
    (garden / "closed").touch()
    try:
        async with connect(served.http) as conversation:
            with pytest.raises(NoAnswer, match=r"There was no answer to 'water the garden' within 0.5 seconds"):
                await conversation.ask(WISH, confirm=lambda request: True, timeout_s=0.5)
            (garden / "closed").unlink()
            answer = await conversation.ask("What is 2 plus 3?")
    finally:
        (garden / "closed").unlink(missing_ok=True)
    assert "2 plus 3 is 5." in answer.text


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:1", r"no server can be reached at http://127.0.0.1:1"),
        ("127.0.0.1:8000", r"An address looks like"),
        ("ftp://127.0.0.1", r"An address looks like"),
    ],
)
def test_a_server_that_cannot_be_reached_is_explained(url: str, message: str) -> None:
    with pytest.raises(Disconnected, match=message):
        client.ask(url, "hello")


def test_a_missing_token_is_explained(locked: Served, tokens: dict[str, str]) -> None:
    with pytest.raises(ClientError, match=r"token"):
        client.ask(locked.http, "What is 2 plus 3?")
    assert client.ask(locked.http, "What is 2 plus 3?", token=tokens["ann"]).text == "2 plus 3 is 5."


def recording(hz: int = 16_000, seconds: float = 0.1) -> bytes:
    return write_wav(b"\0\0" * int(hz * seconds), hz)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"nothing", r"The recording is not a WAV file"),
        (recording(44_100), r"The recording has 44,100 Hz, 1 channels and 16 bits. It must .* ffmpeg -i"),
        ("missing.wav", r"missing.wav cannot be read: No such file"),
    ],
)
async def test_a_recording_that_cannot_be_spoken_is_explained(served: Served, given: Any, message: str) -> None:
    async with connect(served.http) as conversation:
        with pytest.raises(RecordingError, match=message):
            await conversation.speak(given)


async def test_a_server_without_a_voice_says_so(served: Served) -> None:
    async with connect(served.http) as conversation:
        with pytest.raises(VoiceUnavailable, match=r"Voice is not available"):
            await conversation.speak(recording())


async def test_a_spoken_question_is_answered_with_audio_and_a_typed_one_too(tmp_path: Path) -> None:
    script: list[Step] = [Hear("What time is it?"), Say("It is noon.", audio_ms=900), Say("It is 5.", audio_ms=600)]
    with serve(tmp_path, voice=script) as served:
        async with connect(served.http) as conversation:
            spoken = await conversation.speak(recording(seconds=1.0))
            typed = await conversation.ask("What is 2 plus 3?")
    assert (spoken.question, spoken.text) == ("What time is it?", "It is noon.")
    assert len(spoken.pcm) / 2 / 22_050 == pytest.approx(0.9, abs=0.1)
    assert spoken.wav.startswith(b"RIFF")
    assert spoken.metrics is not None
    assert spoken.metrics.first_audio_ms is not None
    assert typed.text == "It is 5."
    assert len(typed.pcm) / 2 / 22_050 == pytest.approx(0.6, abs=0.1)

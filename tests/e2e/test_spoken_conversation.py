"""A spoken conversation, without any model, in which what is said later refers to what was said before."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.protocol import server_messages as s
from tests.e2e.voices import JOE, SLT, VoiceServer, calling, make_clips, serve

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(180)]

TURNS = (
    (JOE, "What time is it in Tokyo?", r"in Tokyo"),
    (SLT, "And in London?", r"in London"),
    (JOE, "No, I meant Paris.", r"in Paris"),
    (SLT, "What is fifteen percent of eighty?", r"\b12\b|twelve"),
    (JOE, "What about twenty percent?", r"\b16\b|sixteen"),
    (JOE, "Plus ten.", r"\b26\b|twenty-six"),
    (SLT, "Set a timer for five minutes.", r"5 minutes"),
    (JOE, "No, ten minutes.", r"cancelled the one before.*10 minutes"),
    (JOE, "Can you speak a bit faster?", r"speak faster"),
    (JOE, "Goodbye.", r"(?i)bye|see you"),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[VoiceServer]:
    with serve(tmp_path_factory.mktemp("server"), models_dir) as made:
        yield made


def test_ten_spoken_turns_with_follow_ups_and_corrections_are_answered_right(
    server: VoiceServer, models_dir: Path
) -> None:
    clips = make_clips(models_dir, [(voice, text) for voice, text, _ in TURNS])

    async def talk() -> tuple[list[tuple[str, str, str]], list[object]]:
        async with calling(server.url) as person:
            told = []
            for voice, text, expected in TURNS:
                exchange = await person.say(clips[voice, text])
                told.append((exchange.transcript, exchange.response, expected))
            if not any(isinstance(message, s.EndVoiceSession) for message in person.told):
                await person.until(lambda message: isinstance(message, s.EndVoiceSession))
            return told, list(person.told)

    told, messages = asyncio.run(talk())
    wrong = [turn for turn in told if re.search(turn[2], turn[1]) is None]
    assert not wrong, "\n".join(map(str, told))
    # Changed by voice, and the client is told.
    assert [message.voice_speed for message in messages if isinstance(message, s.SettingsUpdated)] == [120]

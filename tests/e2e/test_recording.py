"""A spoken call is recorded: both sides, as they were said and heard."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest

from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import MICROPHONE_HZ, SPEECH_HZ
from tests.e2e.voices import JOE, VoiceServer, calling, make_clips, serve
from tests.fakes.recorded import HZ, decode, find, level

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(180)]

QUESTION = "What time is it in Tokyo?"
LONG = "What can you do?"
"""A question with a long answer."""
PLAYED_MS = 900


def fetch_recordings(server: VoiceServer, conversation_id: str) -> list[dict[str, Any]]:
    recordings: list[dict[str, Any]] = server.get(f"/api/conversations/{conversation_id}/recordings")["recordings"]
    return recordings


async def test_a_call_is_recorded_as_it_was_heard(tmp_path: Path, models_dir: Path) -> None:
    clips = await asyncio.to_thread(make_clips, models_dir, [(JOE, QUESTION)])
    said = clips[JOE, QUESTION]
    with serve(tmp_path, models_dir, ANTIPHON_RECORDING__CALLS="always") as server:
        async with calling(server.url, features=("recording",)) as person:
            first = await person.say(said, patient=True)
            # The second answer is stopped by the person, who has heard less than a second of it.
            await person.session.send(c.TextMessage(LONG))
            await person.until(lambda incoming: isinstance(incoming, s.SpeechFrame))
            stopped = person.told[-1]
            assert isinstance(stopped, s.SpeechFrame)
            await asyncio.sleep(PLAYED_MS / 1000)
            await person.session.send(c.Interrupt(played_ms=PLAYED_MS))
            await person.until_state(s.State.LISTENING)
            await person.send_frames(bytes(2 * MICROPHONE_HZ * 2), playing=False)
            await person.session.send(c.EndVoice())
            await person.until(lambda incoming: isinstance(incoming, s.EndVoiceSession))
        [entry] = await asyncio.to_thread(fetch_recordings, server, person.conversation_id)
        turns = (await asyncio.to_thread(server.get, f"/api/conversations/{person.conversation_id}"))["turns"]
        address = server.url.replace("ws:", "http:").removesuffix("/ws") + entry["url"]
        content = await asyncio.to_thread(lambda: urlopen(address, timeout=20).read())
    frames = decode(content)
    user, assistant = frames[:, 0], frames[:, 1]
    # What was said is on the left, all of it.
    heard_at_s, match = find(said[: 2 * MICROPHONE_HZ], MICROPHONE_HZ, user)
    assert match > 0.9
    # The answer is on the right, after the question.
    answer = np.frombuffer(first.pcm, np.int16)
    assert level(answer) > 100
    spoken_at_s, match = find(first.pcm[: 2 * SPEECH_HZ], SPEECH_HZ, assistant)
    assert match > 0.9
    assert spoken_at_s > heard_at_s + 1
    # The answer that was stopped is there as far as it was heard.
    stopped_at_s, match = find(stopped.pcm[: 2 * SPEECH_HZ * 700 // 1000], SPEECH_HZ, assistant)
    assert match > 0.9
    assert stopped_at_s > spoken_at_s + first.answer_s - 0.5
    ended = round((stopped_at_s + PLAYED_MS / 1000 + 0.05) * HZ)
    assert level(assistant[ended:]) < 10
    # A reader finds the answer of a turn in the file.
    places = {each["seq"]: each["at_ms"] / 1000 for each in entry["turns"]}
    [answered, *_] = [turn["seq"] for turn in turns if turn["message"]["role"] == "assistant"]
    assert places[answered] == pytest.approx(spoken_at_s, abs=1.0)

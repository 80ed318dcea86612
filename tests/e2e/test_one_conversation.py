"""A conversation that is typed, spoken, cut, resumed on another server and typed again is one conversation."""

import asyncio
import re
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from antiphon.protocol.limits import SPEECH_HZ
from antiphon.speech.spoken import speakable
from tests.e2e.questions import JOKE
from tests.e2e.voices import SLT, VoiceServer, engines, make_clips, serve
from tests.fakes.spoken import error_rate, for_ears
from tests.fault.cuts import Listener

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]

TYPED = "what is 17 times 6"
TYPED_LATER = "how many days until Christmas"


async def test_a_cut_conversation_in_text_and_voice_is_exported_as_one(
    voice_server: VoiceServer, voice_folder: Path, models_dir: Path
) -> None:
    clips = await asyncio.to_thread(make_clips, models_dir, [(SLT, JOKE.text)])
    listener = Listener()
    with serve(voice_folder, models_dir) as doomed:
        await listener.connect(doomed, mode="text")
        await listener.ask(TYPED)
        await listener.send("start_voice")
        await listener.until("state", state="listening")
        await listener.play_to(clips[SLT, JOKE.text])
        await listener.until("audio")
        # What a server says is on its disk a moment later.
        await asyncio.sleep(0.1)
        listener.cut()
        doomed.kill()
    [heard_before] = listener.speech.values()

    await listener.resume(voice_server)
    assert listener.session["resumed"] is True
    assert listener.session["mode"] == "voice"
    await listener.listen_out(answers=2)
    [heard] = listener.speech.values()
    assert len(heard) > len(heard_before)
    await listener.send("end_voice")
    await listener.until("end_voice_session")
    await listener.until("state", state="idle")
    await listener.ask(TYPED_LATER)
    conversation_id = listener.conversation_id
    await listener.leave()

    # The export.
    said = voice_server.said(conversation_id)
    assert [(role, is_spoken) for role, _, is_spoken in said] == [
        *(("user", False), ("assistant", False)),
        *(("user", True), ("assistant", True)),
        *(("user", False), ("assistant", False)),
    ]
    texts = [text for _, text, _ in said]
    joke = texts[3]
    assert (texts[0], texts[4]) == (TYPED, TYPED_LATER)
    assert texts[1].endswith("102.")
    assert " days" in texts[5]
    exported = voice_server.get(f"/api/conversations/{conversation_id}")["turns"]
    assert [turn["seq"] for turn in exported] == list(range(1, len(exported) + 1))
    assert [turn["at_ms"] for turn in exported] == sorted(turn["at_ms"] for turn in exported)
    assert called(exported) == ["calculate", "tell_joke", "time_until"], said
    document = get_text(voice_server, f"/api/conversations/{conversation_id}?format=markdown")
    names = {"user": "You", "assistant": "Assistant"}
    assert [line for line in document.splitlines() if line.startswith("**")] == [
        f"**{names[role]}{' (spoken)' if is_spoken else ''}:** {text}" for role, text, is_spoken in said
    ]

    # The client has seen the same.
    assert [(role, text.strip()) for role, text in listener.shown] == [(role, text) for role, text, _ in said]

    # The call, which went over two servers.
    calls = [call for call in voice_server.get("/api/calls")["calls"] if call["conversation_id"] == conversation_id]
    [call] = calls
    assert call["duration_ms"] > 0
    assert "joke" in call["summary"].lower()
    assert [turn["content"].strip() for turn in call["transcript"] if turn["content"]] == texts[2:4]

    # What was heard, in two parts, is the joke, once.
    async with engines(models_dir) as (_, moonshine):
        recognized = await moonshine.recognize(for_ears(heard, SPEECH_HZ))
    # No recogniser can spell the pun at its end. A joke that was heard twice would have twice the words.
    words = len(recognized.split()) / len(speakable(joke).split())
    assert 0.7 < words < 1.4, (joke, recognized)
    assert error_rate([(speakable(joke), recognized)]) < 0.6, (joke, recognized)


def called(exported: list[dict[str, Any]]) -> list[str]:
    """The tools that were called, each once with a result."""
    calls = [call for turn in exported for call in turn["message"].get("calls", ())]
    results = [turn["message"]["call_id"] for turn in exported if turn["message"]["role"] == "tool"]
    assert [call["id"] for call in calls] == results
    return [call["name"] for call in calls]


def get_text(server: VoiceServer, path: str) -> str:
    address = re.sub(r"^ws(.*)/ws$", r"http\1", server.url)
    with urlopen(f"{address}{path}", timeout=20) as answer:
        return str(answer.read().decode())

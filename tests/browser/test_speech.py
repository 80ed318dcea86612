"""The assistant's voice: heard, reported to the server, and silent at once when it is to be."""

import base64
import io
import re
import time
import wave
from typing import Final

from playwright.sync_api import expect

from antiphon.protocol.limits import SPEECH_HZ
from tests.browser.scenes import tone
from tests.browser.scripted import Wire
from tests.browser.visitor import Visitor

SILENT: Final = re.compile(r"--level: ?0(\.000)?;")


def to_wav(pcm: bytes) -> str:
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(SPEECH_HZ)
        written.writeframes(pcm)
    return base64.b64encode(file.getvalue()).decode()


def test_an_answer_takes_its_time_and_is_reported_when_it_was_heard(visitor: Visitor, wire: Wire) -> None:
    begun = time.monotonic()
    wire.tell("state", state="speaking")
    wire.speak(1, 0, tone(400))
    wire.speak(1, 1, tone(300))
    wire.tell("generation_complete", turn=1)
    assert wire.wait_for("playback_done")["turn"] == 1
    assert time.monotonic() - begun >= 0.7
    progress = [each["played_ms"] for each in wire.said("playback", turn=1)]
    assert progress == sorted(progress)
    assert 0 < progress[-1] <= 700
    visitor.sees("Assistant", "Speaking")
    wire.tell("state", state="idle")
    visitor.sees("Assistant", "Idle")


def test_an_answer_that_is_not_complete_is_not_done(visitor: Visitor, wire: Wire) -> None:
    wire.tell("state", state="speaking")
    wire.speak(1, 0, tone(200))
    wire.wait_for("playback", turn=1)
    visitor.page.wait_for_timeout(500)
    assert wire.said("playback_done") == []
    wire.tell("generation_complete", turn=1)
    wire.wait_for("playback_done", turn=1)
    visitor.sees("Assistant", "Speaking")


def test_answers_in_messages_are_heard_as_those_in_frames(visitor: Visitor, wire: Wire) -> None:
    wire.tell("state", state="speaking")
    wire.tell("audio", data=to_wav(tone(300)), turn=1, seq=0, last=True)
    wire.wait_for("playback_done", turn=1)
    visitor.sees("Assistant", "Speaking")


def test_the_button_moves_with_the_sound_that_is_heard(visitor: Visitor, wire: Wire) -> None:
    wire.tell("state", state="speaking")
    wire.speak(1, 0, tone(3000))
    visitor.sees_sound()
    visitor.page.keyboard.press("Escape")
    expect(visitor.page.locator(".orb").first).to_have_attribute("style", SILENT)


def test_a_volume_of_nothing_is_silence(visitor: Visitor, wire: Wire) -> None:
    visitor.open_sheet("Settings").locator("input[type=range]").last.fill("0")
    visitor.page.keyboard.press("Escape")
    wire.tell("state", state="speaking")
    wire.speak(1, 0, tone(500))
    wire.tell("generation_complete", turn=1)
    wire.wait_for("playback_done", turn=1)
    assert "--level" not in (visitor.page.locator(".orb").first.get_attribute("style") or "")


def test_the_sound_stops_before_the_server_agrees(visitor: Visitor, wire: Wire) -> None:
    wire.tell("state", state="speaking")
    for seq in range(10):
        wire.speak(1, seq, tone(1000))
    wire.wait_for("playback", turn=1)
    visitor.sees("Assistant", "Speaking")
    visitor.page.keyboard.press("Escape")
    played_ms = wire.wait_for("interrupt")["played_ms"]
    assert 0 < played_ms < 5000
    reported = len(wire.said("playback"))
    visitor.page.wait_for_timeout(400)
    assert len(wire.said("playback")) == reported
    assert wire.said("playback_done") == []


def test_a_held_answer_waits_and_goes_on_where_it_was(visitor: Visitor, wire: Wire) -> None:
    assert "hold" in wire.hellos[-1]["features"]
    wire.tell("state", state="speaking")
    wire.speak(1, 0, tone(3000))
    wire.wait_for("playback", turn=1)
    wire.tell("hold", turn=1)
    visitor.page.wait_for_timeout(500)
    held_ms = wire.said("playback")[-1]["played_ms"]
    visitor.page.wait_for_timeout(1_000)
    assert wire.said("playback")[-1]["played_ms"] == held_ms < 2_500
    wire.tell("generation_complete", turn=1)
    wire.tell("resume", turn=1)
    wire.wait_for("playback_done", turn=1)


def test_a_held_answer_is_dropped_by_an_interruption(visitor: Visitor, wire: Wire) -> None:
    wire.tell("state", state="speaking")
    wire.speak(1, 0, tone(5000))
    wire.wait_for("playback", turn=1)
    wire.tell("hold", turn=1)
    wire.tell("state", state="interrupted")
    wire.tell("state", state="listening")
    wire.tell("state", state="speaking")
    wire.speak(2, 0, tone(300))
    wire.tell("generation_complete", turn=2)
    wire.wait_for("playback_done", turn=2)
    assert wire.said("playback_done", turn=1) == []


def test_what_comes_after_an_interruption_is_not_heard(visitor: Visitor, wire: Wire) -> None:
    wire.tell("state", state="speaking")
    wire.speak(1, 0, tone(3000))
    wire.wait_for("playback", turn=1)
    visitor.page.keyboard.press("Escape")
    wire.wait_for("interrupt")
    wire.speak(1, 1, tone(200))
    wire.tell("state", state="interrupted")
    wire.tell("state", state="listening")
    wire.tell("state", state="speaking")
    wire.speak(2, 0, tone(200))
    wire.tell("generation_complete", turn=2)
    wire.wait_for("playback_done", turn=2)
    assert wire.said("playback_done", turn=1) == []


def test_frames_say_that_the_assistant_is_being_heard(visitor: Visitor, wire: Wire) -> None:
    visitor.talk_button.click()
    wire.wait_until(lambda: len(wire.sound) > 5, "no sound came")
    wire.tell("state", state="speaking")
    wire.speak(1, 0, tone(600))
    wire.tell("generation_complete", turn=1)
    wire.wait_until(lambda: any(frame[0] & 1 for frame in wire.sound), "no frame says so")
    visitor.click("End call")


def test_typing_silences_the_assistant(visitor: Visitor, wire: Wire) -> None:
    wire.tell("state", state="speaking")
    wire.speak(1, 0, tone(5000))
    wire.wait_for("playback", turn=1)
    visitor.write("Something else")
    wire.wait_for("text_message")
    visitor.page.wait_for_timeout(300)
    assert wire.said("playback")[-1]["played_ms"] < 4000
    assert wire.said("playback_done") == []


def test_sound_that_is_broken_breaks_nothing(visitor: Visitor, wire: Wire) -> None:
    for data in ("", "no base64!", base64.b64encode(b"RIFF but not a wave").decode(), to_wav(b"")):
        wire.tell("audio", data=data, turn=1, seq=0, last=False)
    wire.speak(1, 1, b"\x01")
    wire.tell("response", text="Still here.")
    expect(visitor.answers).to_have_text(["Still here."])

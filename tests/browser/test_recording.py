"""Recorded calls on the page: announced, turned on and off, and played."""

import time
from pathlib import Path
from typing import Final

import httpx2
from playwright.sync_api import expect

from tests.browser.conftest import Invite
from tests.browser.scripted import Wire
from tests.browser.test_accessibility import AXE, find_faults
from tests.browser.visitor import Visitor
from tests.fakes.scripted_live import Hear, Say, Step
from tests.wire.served import Served, serve

HISTORY: Final = "Conversations and calls"
SCRIPT: Final[tuple[Step, ...]] = (Hear("What time is it?", after_ms=2_000), Say("It is noon.", audio_ms=500))
RECORDED: Final = "This call is being recorded."
MODELS: Final = {"models": [{"name": "scripted", "mode": "voice"}]}
PLAYED_FROM: Final = "((played) => (played.length ? played.start(0) : NaN))(document.querySelector('audio').played)"
"""The first place of the recording that was heard so far, in seconds."""


def wait_for_recording(served: Served, *, is_finished: bool) -> None:
    """A recording is listed after the first turn of its call, and finished after it was stopped."""
    give_up_s = time.monotonic() + 20
    while True:
        calls = httpx2.get(f"{served.http}/api/calls", timeout=20).json()["calls"]
        durations = [each["duration_ms"] for call in calls for each in call["recordings"]]
        if durations and (None not in durations or not is_finished):
            return
        assert time.monotonic() < give_up_s, "there is no such recording"
        time.sleep(0.2)


def test_a_recorded_call_is_announced_and_can_be_played(invite: Invite, tmp_path: Path) -> None:
    with serve(tmp_path, voice=SCRIPT, recording={"calls": "ask"}) as served:
        visitor = invite(f"{served.http}/", permissions=["microphone"])
        # The server has a voice that is not one of the settings, so it does not list it.
        visitor.page.route("**/api/models", lambda route: route.fulfill(json=MODELS))
        visitor.open()
        announced = visitor.find("status", "Recording")
        visitor.talk_button.click()
        visitor.click("Record")
        expect(announced).to_have_text(RECORDED)
        expect(visitor.answers).to_have_count(1)
        visitor.evaluate(AXE)
        assert find_faults(visitor) == []
        wait_for_recording(served, is_finished=False)
        visitor.click("Stop recording")
        expect(announced).to_have_text("")
        visitor.click("End call")
        visitor.sees("Microphone", "Mic off")
        wait_for_recording(served, is_finished=True)
        sheet = visitor.open_sheet(HISTORY)
        sheet.get_by_text("Transcript").click()
        sheet.get_by_role("paragraph").filter(has_text="It is noon.").get_by_role("button", name="Play from").click()
        player = sheet.locator("audio")
        expect(player).to_be_visible()
        visitor.page.wait_for_function(f"() => ({PLAYED_FROM}) > 1")
        player.evaluate("(player) => player.pause()")
        sheet.get_by_role("button", name="Play the recording").click()
        visitor.page.wait_for_function(f"() => ({PLAYED_FROM}) < 1")
        player.evaluate("(player) => player.pause()")
        assert find_faults(visitor) == []


def test_a_server_that_records_every_call_says_so_before_the_first(visitor: Visitor, wire: Wire) -> None:
    wire.tell("recording", choice="always", active=False)
    expect(visitor.find("status", "Recording")).to_have_text("This server records every call.")
    visitor.talk_button.click()
    wire.wait_for("start_voice")
    wire.tell("recording", choice="always", active=True)
    expect(visitor.find("status", "Recording")).to_have_text(RECORDED)
    expect(visitor.find("button", "Record", exact=True)).to_have_count(0)

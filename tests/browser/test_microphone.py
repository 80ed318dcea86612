"""The microphone is allowed, refused, missing or forbidden; text always works."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Invite
from tests.browser.scripted import FOREIGN_NAME, Wire
from tests.browser.visitor import Visitor

INSECURE = "Cross-Origin-Opener-Policy"
"""What the browser itself writes of a page without https: it does not heed this header there."""
FAIL = """(name) => { navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("", name)); }"""


def test_a_click_opens_the_microphone_and_starts_a_call(visitor: Visitor, wire: Wire) -> None:
    visitor.talk_button.click()
    assert wire.wait_for("start_voice")["pending_request"] is None
    visitor.sees("Microphone", "Mic on")
    wire.wait_until(lambda: len(wire.sound) >= 50, "no second of sound came")
    # A flag, and 20 ms of 16,000 samples of two bytes a second.
    assert {len(frame) for frame in wire.sound} == {641}
    assert {frame[0] for frame in wire.sound} == {0}
    visitor.click("End call")
    wire.wait_for("end_voice")
    visitor.sees("Microphone", "Mic off")


def test_what_is_heard_is_sound(visitor: Visitor, wire: Wire) -> None:
    visitor.talk_button.click()
    # The browser's microphone beeps once a second.
    wire.wait_until(lambda: any(any(frame[1:]) for frame in wire.sound), "only silence came")
    visitor.click("End call")
    wire.wait_for("end_voice")


def test_a_refusal_is_told_and_can_be_changed(invite: Invite, wire: Wire) -> None:
    visitor = invite().open()
    wire.wait_for_page()
    visitor.talk_button.click()
    visitor.sees("Microphone", "Mic blocked")
    alert = visitor.find("alert").filter(has_text="Microphone access is blocked.")
    expect(alert).to_be_visible()
    assert wire.said("start_voice") == []
    visitor.context.grant_permissions(["microphone"])
    visitor.click("Try again")
    visitor.sees("Microphone", "Mic on")
    expect(alert).to_have_count(0)
    wire.wait_for("start_voice")


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        ("NotFoundError", "No microphone was found."),
        ("NotReadableError", "another program may be using it"),
        ("OverconstrainedError", "No microphone was found."),
    ],
)
def test_a_microphone_that_cannot_be_had_says_why(visitor: Visitor, wire: Wire, problem: str, sentence: str) -> None:
    visitor.evaluate(FAIL, problem)
    visitor.talk_button.click()
    visitor.sees("Microphone", "No mic")
    expect(visitor.find("alert").filter(has_text=sentence)).to_contain_text("type instead")
    visitor.write("In writing, then.")
    wire.wait_for("text_message")


def test_a_page_without_https_says_why_there_is_no_voice_and_takes_text(invite: Invite, wire: Wire) -> None:
    visitor = invite(wire.url.replace("127.0.0.1", FOREIGN_NAME)).open()
    wire.wait_for_page()
    assert visitor.evaluate("() => isSecureContext") is False
    visitor.talk_button.click()
    alert = visitor.find("alert").filter(has_text="not served over https")
    expect(alert).to_contain_text("You can type instead.")
    expect(alert.get_by_role("button", name="Try again")).to_have_count(0)
    visitor.write("In writing, then.")
    wire.wait_for("text_message")
    visitor.forgive(INSECURE)


def test_a_page_without_https_copies_all_the_same(invite: Invite, wire: Wire) -> None:
    visitor = invite(wire.url.replace("127.0.0.1", FOREIGN_NAME)).open()
    wire.wait_for_page()
    wire.tell("response", text="Good morning.")
    visitor.click("Copy conversation")
    expect(visitor.find("button", "Copied")).to_be_visible()
    visitor.forgive(INSECURE)


def test_a_voice_that_the_server_does_not_have_ends_the_call(visitor: Visitor, wire: Wire) -> None:
    visitor.talk_button.click()
    wire.wait_for("start_voice")
    text = "This server has no voice. Writing works."
    wire.tell("notice", kind="warning", text=text, code="voice_unavailable", duration_ms=None)
    visitor.sees("Microphone", "Mic off")
    expect(visitor.toasts).to_contain_text(text)
    expect(visitor.find("button", "End call")).to_have_count(0)


def test_the_assistant_may_begin_a_call(visitor: Visitor, wire: Wire) -> None:
    wire.tell("voice_session_start", session_id="s1", pending_request="the weather")
    assert wire.wait_for("start_voice")["pending_request"] == "the weather"
    visitor.sees("Microphone", "Mic on")


def test_holding_the_button_is_push_to_talk(visitor: Visitor, wire: Wire) -> None:
    visitor.talk_button.hover()
    visitor.page.mouse.down()
    wire.wait_for("start_listening")
    visitor.sees("Microphone", "Mic on")
    visitor.page.mouse.up()
    wire.wait_for("stop_listening")
    assert wire.said("start_voice") == []


def test_the_button_moves_with_the_voice(visitor: Visitor) -> None:
    visitor.talk_button.click()
    visitor.sees("Microphone", "Mic on")
    visitor.sees_sound()

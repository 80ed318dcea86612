"""Reminders, timers and alarms that are due: each is shown once, rings as it should, and can be dismissed."""

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chromium import Chromium
from tests.browser.conftest import Invite
from tests.browser.scenes import in_ms, question
from tests.browser.scripted import Wire
from tests.browser.visitor import Visitor

COUNT_NOTES = """window.notes = 0;
    const start = OscillatorNode.prototype.start;
    OscillatorNode.prototype.start = function (...when) { window.notes += 1; return start.apply(this, when); };"""
# Playwright's own scripts count as the interaction that allows sound, so the page has to tell that it has opened it.
TELL_OPENED = """window.AudioContext = class extends AudioContext {
        constructor(...options) { super(...options); console.debug("sound opened"); }
    };"""
NOTIFICATIONS = """window.shown = [];
    window.Notification = class {
        static permission = "granted";
        static requestPermission = async () => "granted";
        constructor(title, { body }) { window.shown.push(`${title}: ${body}`); }
        close() { window.shown.push("closed"); }
    };
    Document.prototype.hasFocus = () => false;"""


@pytest.fixture
def hearing(invite: Invite, wire: Wire) -> Visitor:
    """A visitor whose browser counts the notes that are played."""
    visitor = invite(permissions=["microphone"])
    visitor.context.add_init_script(COUNT_NOTES)
    visitor.open()
    wire.wait_for_page()
    return visitor


def due(message: str = "Tea is ready", **fields: Any) -> dict[str, Any]:
    return {"type": "reminder", "id": message, "message": message, "due": in_ms(0), "kind": "timer"} | fields


def shown(visitor: Visitor) -> Locator:
    return visitor.page.locator("main .reminder")


def hears(visitor: Visitor, notes: int) -> None:
    visitor.page.wait_for_function("(notes) => window.notes >= notes", arg=notes)
    assert visitor.evaluate("() => window.notes") == notes


def test_a_timer_rings_until_it_is_dismissed(hearing: Visitor, wire: Wire) -> None:
    wire.tell(**due())
    expect(shown(hearing)).to_contain_text("Timer Tea is ready")
    hears(hearing, 3)
    shown(hearing).get_by_role("button", name="Dismiss").click()
    expect(shown(hearing)).to_have_count(0)
    expect(hearing.composer).to_be_focused()
    expect(hearing.thread).to_contain_text("Timer: Tea is ready")
    hearing.page.wait_for_timeout(3500)
    hears(hearing, 3)


def test_it_is_announced_at_once_and_dismissed_by_escape(hearing: Visitor, wire: Wire) -> None:
    wire.tell(**due("One"))
    wire.tell(**due("Two"))
    expect(hearing.find("alert").filter(has_text="One").filter(has_text="Two")).to_be_visible()
    hearing.composer.focus()
    hearing.page.keyboard.press("Escape")
    expect(shown(hearing)).to_have_count(1)
    expect(shown(hearing)).to_contain_text("One")
    hearing.page.keyboard.press("Escape")
    expect(shown(hearing)).to_have_count(0)
    assert wire.said("interrupt") == []


def test_several_are_stacked_and_dismissed_together(hearing: Visitor, wire: Wire) -> None:
    for message in ("One", "Two", "Three"):
        wire.tell(**due(message))
    expect(shown(hearing)).to_have_count(3)
    hearing.click("Dismiss all")
    expect(shown(hearing)).to_have_count(0)


def test_those_that_were_missed_are_listed_as_missed(hearing: Visitor, wire: Wire) -> None:
    wire.tell(**due("Wake up", kind="alarm", missed=True, due=in_ms(-86_400_000)))
    expect(shown(hearing)).to_contain_text("Missed alarm Wake up")
    hears(hearing, 4)


def test_each_is_shown_once_over_reconnections(hearing: Visitor, wire: Wire) -> None:
    message = due()
    wire.tell(**message)
    shown(hearing).get_by_role("button", name="Dismiss").click()
    wire.resumes = False
    wire.close(1012)
    wire.wait_for_page(count=2)
    wire.tell(**message)
    wire.tell(**due("Another"))
    expect(shown(hearing)).to_have_count(1)
    expect(shown(hearing)).to_contain_text("Another")


def test_a_reload_does_not_silence_an_alarm(hearing: Visitor, wire: Wire) -> None:
    wire.tell(**due("Wake up", kind="alarm"))
    expect(shown(hearing)).to_have_count(1)
    hearing.page.reload()
    expect(shown(hearing)).to_contain_text("Alarm Wake up")
    hearing.page.wait_for_function("() => window.notes >= 4")
    hearing.page.keyboard.press("Escape")
    expect(shown(hearing)).to_have_count(0)
    hearing.page.reload()
    hearing.sees("Connection", "Connected")
    expect(shown(hearing)).to_have_count(0)


def test_in_a_call_it_rings_over_speech_only_once(hearing: Visitor, wire: Wire) -> None:
    hearing.talk_button.click()
    wire.wait_for("start_voice")
    wire.tell("state", state="speaking")
    hearing.sees("Assistant", "Speaking")
    wire.tell(**due())
    hears(hearing, 3)
    hearing.page.wait_for_timeout(3500)
    hears(hearing, 3)
    wire.tell("state", state="listening")
    hears(hearing, 6)


def test_it_can_be_dismissed_while_a_dialog_is_open(hearing: Visitor, wire: Wire) -> None:
    sheet = hearing.open_sheet("Settings")
    wire.tell(**due())
    sheet.get_by_role("button", name="Dismiss").click()
    expect(shown(hearing)).to_have_count(0)
    expect(sheet).to_be_visible()
    wire.tell_all(question(), due("Another"))
    hearing.find("alertdialog").get_by_role("button", name="Dismiss").click()
    expect(shown(hearing)).to_have_count(0)


def test_the_title_of_the_window_tells_it(hearing: Visitor, wire: Wire) -> None:
    wire.tell(**due())
    expect(hearing.page).to_have_title("Timer: Tea is ready")
    expect(hearing.page).to_have_title("Antiphon")
    expect(hearing.page).to_have_title("Timer: Tea is ready")
    hearing.page.keyboard.press("Escape")
    expect(hearing.page).to_have_title("Antiphon")


def test_it_is_silent_at_the_volume_0(hearing: Visitor, wire: Wire) -> None:
    slider = hearing.open_sheet("Settings").get_by_role("slider", name="Volume")
    slider.fill("0")
    wire.tell(**due())
    expect(shown(hearing)).to_have_count(1)
    hearing.page.wait_for_timeout(500)
    hears(hearing, 0)


def test_the_system_shows_it_if_the_person_has_allowed_that(invite: Invite, wire: Wire) -> None:
    visitor = invite()
    visitor.context.add_init_script(NOTIFICATIONS)
    visitor.open()
    wire.wait_for_page()
    wire.tell(**due("Too early"))
    expect(shown(visitor)).to_have_count(1)
    assert visitor.evaluate("() => window.shown") == []
    visitor.page.keyboard.press("Escape")
    switch = visitor.open_sheet("Settings").get_by_role("switch", name="Notify me")
    switch.click()
    expect(switch).to_be_checked()
    wire.tell(**due())
    visitor.page.wait_for_function("() => window.shown.length === 1")
    assert visitor.evaluate("() => window.shown") == ["Timer: Tea is ready"]


def test_a_browser_that_refuses_notifications_is_said_to(visitor: Visitor) -> None:
    sheet = visitor.open_sheet("Settings")
    switch = sheet.get_by_role("switch", name="Notify me")
    switch.click()
    expect(sheet.get_by_role("alert").filter(has_text="does not allow this page to notify you")).to_be_visible()
    expect(switch).not_to_be_checked()


def test_where_sound_is_blocked_it_is_shown_and_rings_after_a_click(chromium: Chromium, wire: Wire) -> None:
    browser = chromium.launch(autoplay=False)
    visitor = Visitor(browser.new_context(), wire.url)
    visitor.context.add_init_script(COUNT_NOTES + TELL_OPENED)
    visitor.open()
    wire.wait_for_page()
    with visitor.page.expect_console_message(lambda message: message.text == "sound opened"):
        wire.tell(**due())
    expect(visitor.find("alert").filter(has_text="Your browser blocks sound")).to_be_visible()
    assert visitor.evaluate("() => window.notes") == 0
    visitor.page.mouse.click(5, 300)
    hears(visitor, 3)
    expect(visitor.page.get_by_text("Your browser blocks sound")).to_have_count(0)
    browser.close()
    assert visitor.faults == []

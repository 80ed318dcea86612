"""What a person chooses, where it takes effect, and that it is kept."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Invite
from tests.browser.scripted import Wire
from tests.browser.visitor import KEPT, THEMES, Visitor


def background_of(visitor: Visitor) -> str:
    return str(visitor.evaluate("() => getComputedStyle(document.documentElement).backgroundColor"))


@pytest.mark.parametrize(("system", "theme"), [("dark", "midnight"), ("light", "babyblue")])
def test_the_page_is_as_light_or_dark_as_the_system_unless_a_theme_is_chosen(
    invite: Invite, wire: Wire, system: str, theme: str
) -> None:
    visitor = invite(color_scheme=system).open()
    wire.wait_for_page()
    expect(visitor.page.locator("html")).to_have_attribute("data-theme", theme)
    sheet = visitor.open_sheet("Settings")
    expect(sheet.get_by_role("radio", name="System")).to_be_checked()
    sheet.get_by_role("radio", name="Rose").check(force=True)
    expect(visitor.page.locator("html")).to_have_attribute("data-theme", "rose")
    sheet.get_by_role("radio", name="System").check(force=True)
    expect(visitor.page.locator("html")).to_have_attribute("data-theme", theme)


def test_the_page_follows_the_system_while_it_is_open(invite: Invite, wire: Wire) -> None:
    visitor = invite(color_scheme="light").open()
    wire.wait_for_page()
    expect(visitor.page.locator("html")).to_have_attribute("data-theme", "babyblue")
    visitor.page.emulate_media(color_scheme="dark")
    expect(visitor.page.locator("html")).to_have_attribute("data-theme", "midnight")
    visitor.page.emulate_media(color_scheme="light")
    expect(visitor.page.locator("html")).to_have_attribute("data-theme", "babyblue")


def test_every_theme_can_be_chosen_and_looks_different(visitor: Visitor, wire: Wire) -> None:
    sheet = visitor.open_sheet("Settings")
    names = sheet.get_by_role("radio")
    expect(names).to_have_count(1 + len(THEMES))
    seen = set()
    for number, theme in enumerate(THEMES, 1):
        names.nth(number).check(force=True)
        expect(visitor.page.locator("html")).to_have_attribute("data-theme", theme)
        seen.add(background_of(visitor))
    assert len(seen) == len(THEMES)
    assert {each["theme"] for each in wire.said("settings")} >= set(THEMES)


def test_choices_are_kept_over_a_reload_and_told_to_the_server_again(visitor: Visitor, wire: Wire) -> None:
    sheet = visitor.open_sheet("Settings")
    sheet.get_by_role("radio", name="Rose").check(force=True)
    sheet.get_by_role("slider", name="Speed").fill("150")
    sheet.get_by_role("slider", name="Volume").fill("30")
    sheet.get_by_role("switch", name="Show captions while I speak").uncheck()
    sheet.get_by_role("switch", name="Show timestamps").check()
    wire.wait_for("settings", captions=False)
    visitor.page.reload()
    wire.wait_for_page(count=2)
    expect(visitor.page.locator("html")).to_have_attribute("data-theme", "rose")
    sheet = visitor.open_sheet("Settings")
    expect(sheet.get_by_role("slider", name="Speed")).to_have_value("150")
    expect(sheet.get_by_role("slider", name="Volume")).to_have_value("30")
    expect(sheet.get_by_role("switch", name="Show captions while I speak")).not_to_be_checked()
    expect(sheet.get_by_role("switch", name="Show timestamps")).to_be_checked()
    wire.wait_for("settings", theme="rose", voice_speed=150, volume=30, captions=False)


@pytest.mark.parametrize(
    "kept",
    [
        "{",
        "null",
        "[1]",
        '"rose"',
        json.dumps({"theme": "<img src=x>", "speed": 9000, "volume": "loud", "talkKey": ""}),
    ],
)
def test_kept_choices_that_make_no_sense_are_ignored(invite: Invite, wire: Wire, kept: str) -> None:
    visitor = invite(color_scheme="dark")
    visitor.context.add_init_script(f"localStorage.setItem('{KEPT}', {json.dumps(kept)})")
    visitor.open()
    wire.wait_for_page()
    expect(visitor.page.locator("html")).to_have_attribute("data-theme", "midnight")
    sheet = visitor.open_sheet("Settings")
    expect(sheet.get_by_role("slider", name="Speed")).to_have_value("100")
    expect(sheet.get_by_role("slider", name="Volume")).to_have_value("80")


def test_a_browser_that_keeps_nothing_has_a_page_all_the_same(invite: Invite, wire: Wire) -> None:
    visitor = invite()
    forbid = "{ get() { throw new DOMException('no', 'SecurityError'); } }"
    visitor.context.add_init_script(
        f"for (const kind of ['localStorage', 'sessionStorage']) Object.defineProperty(window, kind, {forbid})"
    )
    visitor.open()
    wire.wait_for_page()
    visitor.open_sheet("Settings").get_by_role("radio", name="Ocean").check(force=True)
    expect(visitor.page.locator("html")).to_have_attribute("data-theme", "ocean")


def test_the_voices_of_the_server_can_be_chosen_and_heard(invite: Invite, wire: Wire) -> None:
    voices = [
        {"id": name.lower(), "name": name, "language": "en-US", "current": name == "Joe"} for name in ("Joe", "Amy")
    ]
    wire.records["/api/voices"] = {"voices": voices}
    visitor = invite().open()
    wire.wait_for_page()
    sheet = visitor.open_sheet("Settings")
    sheet.get_by_role("combobox", name="Voice").select_option("Amy (en-US)")
    wire.wait_for("settings", voice="amy")
    sheet.get_by_role("button", name="Play sample").click()
    wire.wait_for("test_audio", voice="amy")


def test_a_voice_that_is_gone_is_forgotten(invite: Invite, wire: Wire) -> None:
    visitor = invite()
    visitor.context.add_init_script(f"localStorage.setItem('{KEPT}', '{json.dumps({'voice': 'gone'})}')")
    visitor.open()
    wire.wait_for("settings", voice="gone")
    wire.tell("error", message="There is no voice called gone.", code="bad_settings", retryable=False)
    expect(visitor.find("alert").filter(has_text="no voice called gone")).to_be_visible()
    assert json.loads(visitor.evaluate(f"() => localStorage.getItem('{KEPT}')"))["voice"] == ""


def test_microphones_have_their_names_once_one_was_allowed(visitor: Visitor, wire: Wire) -> None:
    visitor.talk_button.click()
    wire.wait_for("start_voice")
    visitor.sees("Microphone", "Mic on")
    choice = visitor.open_sheet("Settings").get_by_role("combobox", name="Microphone")
    expect(choice.get_by_role("option")).not_to_have_count(1)
    expect(choice.get_by_role("option", name=re.compile("Fake"))).not_to_have_count(0)
    choice.select_option(index=1)
    visitor.sees("Microphone", "Mic on")
    assert json.loads(visitor.evaluate(f"() => localStorage.getItem('{KEPT}')"))["input"] != ""


def test_another_key_can_be_chosen_for_push_to_talk(visitor: Visitor, wire: Wire) -> None:
    sheet = visitor.open_sheet("Settings")
    sheet.get_by_role("button", name="Space").click()
    expect(sheet.get_by_role("button", name="Press a key")).to_be_visible()
    visitor.page.keyboard.press("KeyT")
    expect(sheet.get_by_role("button", name="T", exact=True)).to_be_visible()
    visitor.page.keyboard.press("Escape")
    visitor.page.locator("body").focus()
    visitor.evaluate("() => document.activeElement.blur()")
    visitor.page.keyboard.down("KeyT")
    wire.wait_for("start_listening")
    visitor.page.keyboard.up("KeyT")
    wire.wait_for("stop_listening")


def test_motion_can_be_reduced_by_choice(visitor: Visitor) -> None:
    visitor.open_sheet("Settings").get_by_role("switch", name="Reduce motion").check()
    visitor.page.keyboard.press("Escape")
    assert visitor.running_animations() == []

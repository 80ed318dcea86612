"""The first screen: what it invites to, and that what it suggests works."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Invite
from tests.browser.scripted import Wire
from tests.browser.visitor import Visitor
from tests.wire.served import add_token, serve

EXAMPLES = ".examples button"
TEXT_MODEL = {"name": "builtin", "mode": "text", "needs_network": False, "current": True}


@pytest.fixture(scope="module")
def mute_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page of a real server that has no voice."""
    with serve(tmp_path_factory.mktemp("mute")) as served:
        yield f"http://127.0.0.1:{served.port}/"


@pytest.fixture(scope="module")
def locked_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("locked")


@pytest.fixture(scope="module")
def token(locked_folder: Path) -> str:
    """Of a user of the server in that folder."""
    return add_token(locked_folder, "ann")


def test_an_example_is_sent_when_it_is_clicked(visitor: Visitor, wire: Wire) -> None:
    first = visitor.page.locator(EXAMPLES).first
    text = first.inner_text()
    first.click()
    assert wire.wait_for("text_message")["text"] == text
    expect(visitor.said).to_have_text([text])


def test_every_example_is_answered_by_the_offline_assistant(invite: Invite, mute_url: str) -> None:
    visitor = invite(mute_url).open()
    examples = visitor.page.locator(EXAMPLES).all_inner_texts()
    assert len(examples) in (3, 4)
    for number, example in enumerate(examples):
        visitor.open()
        visitor.open_sheet("Conversations and calls").get_by_role("button", name="New conversation").click()
        visitor.page.locator(EXAMPLES).nth(number).click()
        expect(visitor.answers).to_have_count(1)
        # Without a network there is no weather, which the assistant says.
        expected = re.compile("done|failed") if "weather" in example else "done"
        expect(visitor.tools).to_have_attribute("data-status", expected)


def test_a_server_without_a_voice_does_not_invite_to_talk(invite: Invite, mute_url: str) -> None:
    visitor = invite(mute_url, permissions=["microphone"]).open()
    visitor.sees("Microphone", "Text only")
    expect(visitor.talk_button).to_have_count(0)
    expect(visitor.page.get_by_text("Tap the circle")).to_have_count(0)
    visitor.page.keyboard.press("Space")
    visitor.write("fifteen percent of 80")
    expect(visitor.answers).to_contain_text("12")
    expect(visitor.talk_button).to_have_count(0)
    visitor.sees("Microphone", "Text only")


def test_a_voice_that_is_missing_for_a_moment_is_still_offered(visitor: Visitor, wire: Wire) -> None:
    visitor.talk_button.click()
    wire.wait_for("start_voice")
    wire.tell("notice", kind="warning", text="The voice cannot be reached.", code="voice_unavailable", duration_ms=None)
    visitor.sees("Microphone", "Mic off")
    expect(visitor.talk_button).to_be_visible()


def test_a_voice_that_is_gone_is_no_longer_offered(visitor: Visitor, wire: Wire) -> None:
    visitor.talk_button.click()
    wire.wait_for("start_voice")
    wire.records["/api/models"] = {"models": [TEXT_MODEL]}
    wire.tell("notice", kind="warning", text="This server has no voice.", code="voice_unavailable", duration_ms=None)
    expect(visitor.talk_button).to_have_count(0)


def test_in_a_call_a_click_on_the_orb_silences_and_does_not_hang_up(visitor: Visitor, wire: Wire) -> None:
    visitor.talk_button.click()
    wire.wait_for("start_voice")
    wire.tell("state", state="speaking")
    visitor.sees("Assistant", "Speaking")
    visitor.talk_button.click()
    wire.wait_for("interrupt")
    visitor.sees("Microphone", "Mic on")
    expect(visitor.find("button", "End call")).to_be_visible()
    assert wire.said("end_voice") == []
    visitor.click("End call")
    wire.wait_for("end_voice")
    visitor.sees("Microphone", "Mic off")


def test_the_orb_of_a_call_stays_large_until_there_are_words(visitor: Visitor, wire: Wire) -> None:
    visitor.talk_button.click()
    wire.wait_for("start_voice")
    wire.tell("voice_session_start", session_id="s1", pending_request=None)
    expect(visitor.page.get_by_text("Switched to voice.")).to_be_visible()
    expect(visitor.page.locator(".talk-large")).to_be_visible()
    wire.tell("transcript", text="hello", is_final=False)
    expect(visitor.page.locator(".talk-small")).to_be_visible()


def test_a_wrong_token_is_said_to_be_wrong_and_another_can_be_entered(
    invite: Invite, locked_folder: Path, token: str
) -> None:
    with serve(locked_folder, server={"auth": "required"}) as served:
        visitor = invite(f"http://127.0.0.1:{served.port}/").open()
        visitor.sees("Connection", "Token required")
        visitor.page.get_by_label("This server requires a token").fill("not-the-token")
        visitor.click("Connect")
        visitor.sees("Connection", "Wrong token")
        visitor.page.get_by_label("This token was not accepted").fill(token)
        visitor.click("Connect")
        visitor.sees("Connection", "Connected")
        expect(visitor.page.get_by_text("was not accepted")).to_have_count(0)
        visitor.write("fifteen percent of 80")
        expect(visitor.answers).to_contain_text("12")
        visitor.page.reload()
        visitor.sees("Connection", "Connected")


def test_another_token_is_used_at_once(visitor: Visitor, wire: Wire) -> None:
    visitor.sees("Connection", "Connected")
    sheet = visitor.open_sheet("Settings")
    sheet.get_by_text("Access token", exact=True).click()
    sheet.get_by_role("textbox", name="Access token").fill("another")
    sheet.get_by_role("button", name="Use").click()
    wire.wait_for_page(count=2)
    assert wire.hellos[1]["token"] == "another"

"""The connection is lost, and comes back: what the person is told, and what becomes of their words."""

import re
from contextlib import suppress

import pytest
from playwright.sync_api import TimeoutError, expect

from tests.browser.conftest import Invite
from tests.browser.scenes import exchange, in_ms, tool_use
from tests.browser.scripted import Wire
from tests.browser.visitor import Visitor

REFUSED = "WebSocket connection to"
"""What the browser itself writes of a socket that could not be opened."""
HANDLE = "handle-"


def lose(visitor: Visitor, wire: Wire) -> None:
    """The connection goes, and the page sees that there is no other."""
    wire.admits = False
    wire.close(1011)
    visitor.sees("Connection", "Reconnecting")
    expect(visitor.find("button", "Try now", exact=True)).to_be_visible()


def come_back(visitor: Visitor, wire: Wire) -> None:
    wire.admits = True
    # The page may come back by itself before the click.
    with suppress(TimeoutError):
        visitor.find("button", "Try now", exact=True).click(timeout=2_000)
    wire.wait_for_page(count=2)
    visitor.sees("Connection", "Connected")
    visitor.forgive(REFUSED)


def test_the_states_of_the_three_are_told_apart(visitor: Visitor) -> None:
    visitor.sees("Connection", "Connected")
    visitor.sees("Microphone", "Mic off")
    visitor.sees("Assistant", "Idle")


@pytest.mark.parametrize(
    ("state", "shown"),
    [("processing", "Thinking"), ("speaking", "Speaking"), ("idle", "Idle")],
)
def test_what_the_assistant_does_is_said_in_words(visitor: Visitor, wire: Wire, state: str, shown: str) -> None:
    wire.tell("state", state=state)
    visitor.sees("Assistant", shown)


def test_only_an_open_microphone_is_listened_to(visitor: Visitor, wire: Wire) -> None:
    wire.tell("state", state="listening")
    visitor.sees("Assistant", "Idle")
    visitor.talk_button.click()
    visitor.sees("Assistant", "Listening")


def test_a_lost_connection_is_told_with_a_countdown(visitor: Visitor, wire: Wire) -> None:
    lose(visitor, wire)
    expect(visitor.page.get_by_text(re.compile(r"Next attempt in \d+ s"))).to_be_visible()
    come_back(visitor, wire)
    expect(visitor.page.get_by_text("Next attempt in")).to_have_count(0)


def test_a_session_that_goes_on_is_said_to_go_on(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(*exchange("Hello", "Good morning."))
    lose(visitor, wire)
    come_back(visitor, wire)
    expect(visitor.banners).to_have_text(["Back. The conversation goes on."])
    expect(visitor.answers).to_have_text(["Good morning."])
    assert wire.hellos[1]["resume"] == f"{HANDLE}0"
    assert wire.hellos[1]["last_n"] == 7


def test_a_session_that_is_gone_is_said_to_be_a_new_one(visitor: Visitor, wire: Wire) -> None:
    wire.resumes = False
    wire.tell_all(*exchange("Hello", "Good morning."))
    expect(visitor.answers).to_have_count(1)
    lose(visitor, wire)
    come_back(visitor, wire)
    expect(visitor.banners).to_have_text(["This is a new session; the conversation was kept."])
    expect(visitor.toasts).to_have_count(0)


def test_a_tool_whose_session_is_gone_runs_no_longer(visitor: Visitor, wire: Wire) -> None:
    wire.resumes = False
    called, _ = tool_use("get_time", {}, {})
    wire.tell_all(called)
    lose(visitor, wire)
    come_back(visitor, wire)
    expect(visitor.tools).to_contain_text("Outcome unknown: connection lost")


def test_what_is_typed_without_a_connection_is_sent_when_there_is_one(visitor: Visitor, wire: Wire) -> None:
    lose(visitor, wire)
    visitor.write("Are you there?")
    expect(visitor.thread).to_contain_text("Sending…")
    come_back(visitor, wire)
    wire.wait_for("text_message", text="Are you there?")
    wire.tell("transcript", text="Are you there?", is_final=True)
    expect(visitor.thread).not_to_contain_text("Sending…")
    assert len(wire.said("text_message")) == 1


def test_what_was_missed_is_shown_once(visitor: Visitor, wire: Wire) -> None:
    wire.tell("response_chunk", text="One, two, ", is_first=True)
    expect(visitor.answers).to_have_text(["One, two,"])
    lose(visitor, wire)
    come_back(visitor, wire)
    wire.tell("response_chunk", text="three.", is_first=False)
    wire.tell("response", text="One, two, three.")
    expect(visitor.answers).to_have_text(["One, two, three."])


def test_a_handle_is_kept_nowhere_but_in_memory(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(*exchange("Hello", "Good morning."))
    expect(visitor.answers).to_have_count(1)
    kept = visitor.evaluate("() => JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    assert "c1" in kept
    assert HANDLE not in kept


def test_a_reload_goes_on_in_the_conversation_and_resumes_nothing(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(*exchange("Hello", "Good morning."))
    expect(visitor.answers).to_have_count(1)
    visitor.page.reload()
    wire.wait_for_page(count=2)
    assert wire.hellos[1]["conversation_id"] == "c1"
    assert "resume" not in wire.hellos[1]
    turns = [{"role": "user", "content": "Hello", "spoken": False, "at": None}]
    wire.tell("history", conversation_id="c1", turns=turns)
    expect(visitor.said).to_have_text(["Hello"])


def test_a_session_of_which_nothing_was_said_is_forgotten_at_a_reload(visitor: Visitor, wire: Wire) -> None:
    visitor.page.reload()
    wire.wait_for_page(count=2)
    assert "conversation_id" not in wire.hellos[1]


def test_a_server_that_will_go_away_is_announced(visitor: Visitor, wire: Wire) -> None:
    wire.tell("go_away", time_left_ms=20_000, reason="The server restarts for an update.", resume="later")
    visitor.sees("Connection", "Restarting")
    expect(visitor.banners).to_have_count(1)
    expect(visitor.banners).to_have_text(["The server restarts for an update."])
    wire.close(1012)
    wire.wait_for_page(count=2)
    assert wire.hellos[1]["resume"] == "later"
    visitor.sees("Connection", "Connected")
    expect(visitor.banners).to_have_text(["Back. The conversation goes on."])


def test_a_restart_in_a_call_is_told_in_one_place_and_nobody_is_said_to_be_heard(visitor: Visitor, wire: Wire) -> None:
    visitor.talk_button.click()
    wire.wait_for("start_voice")
    wire.tell("state", state="listening")
    visitor.sees("Assistant", "Listening")
    visitor.sees("Microphone", "Mic on")
    wire.tell("go_away", time_left_ms=20_000, reason="The server restarts for an update.", resume="later")
    expect(visitor.banners).to_have_count(1)
    wire.admits = False
    wire.close(1012)
    visitor.sees("Connection", "Reconnecting")
    expect(visitor.banners).to_have_count(1)
    expect(visitor.banners).to_contain_text("Reconnecting… You can't be heard now.")
    expect(visitor.page.locator(".call-controls")).to_contain_text("Mic paused, reconnecting")
    visitor.sees("Microphone", "Mic paused")
    visitor.sees("Assistant", "Call on hold")
    for name in ("Connection", "Microphone", "Assistant"):
        expect(visitor.state(name)).not_to_have_attribute("data-tone", "good")
    expect(visitor.toasts).to_have_count(0)
    come_back(visitor, wire)
    wire.tell("state", state="listening")
    expect(visitor.banners).to_have_text(["Back. The conversation goes on. You can be heard again."])
    expect(visitor.page.locator(".call-controls")).not_to_contain_text("Mic paused")
    expect(visitor.toasts).to_have_count(0)
    visitor.sees("Microphone", "Mic on")
    visitor.sees("Assistant", "Listening")


def test_the_word_that_the_page_is_back_goes_by_itself(invite: Invite, wire: Wire) -> None:
    visitor = invite()
    visitor.page.clock.install()
    visitor.open()
    wire.wait_for_page()
    lose(visitor, wire)
    come_back(visitor, wire)
    expect(visitor.banners).to_have_text(["Back. The conversation goes on."])
    visitor.page.clock.run_for(6000)
    expect(visitor.banners).to_have_count(0)


def test_a_conversation_that_goes_on_elsewhere_is_not_taken_back_unasked(visitor: Visitor, wire: Wire) -> None:
    wire.close(4409)
    expect(visitor.find("alert").filter(has_text="open in another window")).to_be_visible()
    visitor.sees("Connection", "Disconnected")
    visitor.click("Use it here")
    wire.wait_for_page(count=2)
    visitor.sees("Connection", "Connected")


def test_a_server_that_asks_for_a_token_is_given_one_in_the_first_message(visitor: Visitor, wire: Wire) -> None:
    wire.close(4401)
    visitor.sees("Connection", "Token required")
    visitor.page.get_by_label("This server requires a token").fill("secret-token")
    visitor.click("Connect")
    wire.wait_for_page(count=2)
    assert wire.hellos[1]["token"] == "secret-token"
    assert "secret-token" not in visitor.page.url


def test_a_person_who_is_blocked_is_told_how_long(invite: Invite, wire: Wire) -> None:
    visitor = invite()
    visitor.page.clock.install()
    visitor.open()
    wire.wait_for_page()
    wire.tell("timeout", until=in_ms(95_000), duration_seconds=95, message="Let us take a break. Goodbye for now.")
    alert = visitor.find("alert").filter(has_text="Let us take a break")
    expect(alert).to_contain_text("1:3")
    expect(visitor.composer).to_be_disabled()
    expect(visitor.talk_button).to_be_disabled()
    wire.close(4403)
    visitor.page.clock.fast_forward("01:35")
    expect(visitor.composer).to_be_enabled()
    expect(alert).to_have_count(0)
    wire.wait_for_page(count=2)

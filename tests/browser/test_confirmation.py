"""A person is asked before a tool does what cannot be undone."""

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Invite
from tests.browser.scenes import in_ms, question
from tests.browser.scripted import Wire
from tests.browser.visitor import Visitor


def dialog_of(visitor: Visitor) -> Locator:
    return visitor.find("alertdialog")


def test_the_question_shows_exactly_what_would_run(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(question())
    dialog = dialog_of(visitor)
    expect(dialog).to_contain_text("Send an e-mail to Ana.")
    expect(dialog).to_contain_text("Send email")
    expect(dialog.get_by_role("row")).to_have_text(["toana@example.org", "subjectSaturday"])
    expect(dialog.get_by_role("timer")).to_contain_text("0:5")


def test_cancel_has_the_focus(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(question())
    expect(dialog_of(visitor).get_by_role("button", name="Cancel")).to_be_focused()


@pytest.mark.parametrize("key", ["Enter", "Escape", "Space"])
def test_a_key_pressed_without_looking_approves_nothing(visitor: Visitor, wire: Wire, key: str) -> None:
    wire.tell_all(question())
    expect(dialog_of(visitor).get_by_role("button", name="Cancel")).to_be_focused()
    visitor.page.keyboard.press(key)
    assert wire.wait_for("confirm") == {"type": "confirm", "confirmation_token": "tok", "approved": False}
    expect(dialog_of(visitor)).to_have_count(0)


def test_an_approval_is_sent_with_its_token(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(question())
    visitor.click("Approve")
    assert wire.wait_for("confirm") == {"type": "confirm", "confirmation_token": "tok", "approved": True}
    wire.tell("confirmation_resolved", confirmation_token="tok", outcome="approved")
    expect(visitor.thread).to_contain_text("You approved: Send an e-mail to Ana.")


def test_the_focus_stays_in_the_question(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(question())
    expect(dialog_of(visitor).get_by_role("button", name="Cancel")).to_be_focused()
    for _ in range(4):
        visitor.page.keyboard.press("Tab")
        assert visitor.evaluate("() => document.activeElement.closest('dialog, body').tagName") in ("DIALOG", "BODY")
    expect(visitor.composer).not_to_be_focused()


def test_two_questions_are_asked_one_after_the_other(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(question("first", preview="The first thing."), question("second", preview="The second thing."))
    expect(dialog_of(visitor)).to_contain_text("The first thing.")
    visitor.click("Approve")
    expect(dialog_of(visitor)).to_contain_text("The second thing.")
    expect(dialog_of(visitor).get_by_role("button", name="Cancel")).to_be_focused()
    visitor.click("Cancel")
    wire.wait_for("confirm", confirmation_token="first", approved=True)
    wire.wait_for("confirm", confirmation_token="second", approved=False)


def test_a_question_that_was_settled_elsewhere_goes_away(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(question())
    expect(dialog_of(visitor)).to_be_visible()
    wire.tell("confirmation_resolved", confirmation_token="tok", outcome="denied")
    expect(dialog_of(visitor)).to_have_count(0)
    expect(visitor.thread).to_contain_text("Not approved: Send an e-mail to Ana.")


def test_a_question_ends_with_its_time(invite: Invite, wire: Wire) -> None:
    visitor = invite()
    visitor.page.clock.install()
    visitor.open()
    wire.wait_for_page()
    wire.tell_all(question(expires_at=in_ms(30_000)))
    expect(dialog_of(visitor)).to_be_visible()
    visitor.page.clock.fast_forward(31_000)
    expect(dialog_of(visitor)).to_have_count(0)
    expect(visitor.thread).to_contain_text("Not answered in time")
    assert wire.said("confirm") == []


def test_a_question_is_above_a_panel_that_is_open(visitor: Visitor, wire: Wire) -> None:
    visitor.open_sheet("Settings")
    wire.tell_all(question())
    expect(dialog_of(visitor).get_by_role("button", name="Cancel")).to_be_focused()
    visitor.click("Approve")
    wire.wait_for("confirm", approved=True)

"""A person is asked before a tool does what cannot be undone."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Invite
from tests.browser.scenes import in_ms, question, tool_use, wait_for_approval
from tests.browser.scripted import Wire
from tests.browser.visitor import Visitor
from tests.fakes.toolbox import HANDLER, PREVIEW, write_tool
from tests.wire.served import serve


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
    expect(visitor.tools).to_contain_text("Send an e-mail to Ana.")
    expect(visitor.tools).to_contain_text("Approved")


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
    expect(visitor.tools).to_contain_text("Send an e-mail to Ana.")
    expect(visitor.tools).to_contain_text("Declined")


def test_a_question_ends_with_its_time(invite: Invite, wire: Wire) -> None:
    visitor = invite()
    visitor.page.clock.install()
    visitor.open()
    wire.wait_for_page()
    wire.tell_all(question(expires_at=in_ms(30_000)))
    expect(dialog_of(visitor)).to_be_visible()
    visitor.page.clock.fast_forward(31_000)
    expect(dialog_of(visitor)).to_have_count(0)
    expect(visitor.tools).to_contain_text("Expired")
    assert wire.said("confirm") == []


def test_a_question_is_above_a_panel_that_is_open(visitor: Visitor, wire: Wire) -> None:
    visitor.open_sheet("Settings")
    wire.tell_all(question())
    expect(dialog_of(visitor).get_by_role("button", name="Cancel")).to_be_focused()
    visitor.click("Approve")
    wire.wait_for("confirm", approved=True)


def test_a_call_that_waits_is_not_shown_as_failed(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(*wait_for_approval())
    expect(visitor.tools).to_have_count(1)
    expect(visitor.tools).to_have_attribute("data-status", "waiting")
    expect(visitor.tools).to_contain_text("Waiting for approval")
    expect(visitor.tools).to_contain_text("Send an e-mail to Ana.")
    expect(visitor.tools).not_to_contain_text("6 ms")


def test_a_call_that_is_approved_runs_and_is_done_in_the_same_card(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(*wait_for_approval())
    visitor.click("Approve")
    expect(visitor.tools).to_have_attribute("data-status", "approved")
    wire.tell("confirmation_resolved", confirmation_token="tok", outcome="approved")
    expect(visitor.tools).to_contain_text("Approved")
    wire.tell_all(tool_use("send_email", {}, {"sent": True}, duration_ms=1234)[1])
    expect(visitor.tools).to_have_count(1)
    expect(visitor.tools).to_have_attribute("data-status", "done")
    expect(visitor.tools).to_contain_text("Done · 1.2 s")


def test_a_call_that_is_approved_and_fails_says_why(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(*wait_for_approval())
    visitor.click("Approve")
    wire.tell("confirmation_resolved", confirmation_token="tok", outcome="approved")
    wire.tell_all(tool_use("send_email", {}, {"error": {"message": "No such address."}}, ok=False)[1])
    expect(visitor.tools).to_have_attribute("data-status", "failed")
    expect(visitor.tools).to_contain_text("No such address.")


@pytest.mark.parametrize(("outcome", "shown"), [("denied", "Declined"), ("expired", "Expired")])
def test_a_call_that_is_not_approved_is_not_shown_as_failed(
    visitor: Visitor, wire: Wire, outcome: str, shown: str
) -> None:
    wire.tell_all(*wait_for_approval())
    wire.tell("confirmation_resolved", confirmation_token="tok", outcome=outcome)
    expect(visitor.tools).to_have_count(1)
    expect(visitor.tools).to_contain_text(shown)
    expect(visitor.tools).not_to_contain_text("Failed")


def test_a_call_of_a_server_that_does_not_say_which_is_found_by_its_name(visitor: Visitor, wire: Wire) -> None:
    called, asked, refused = wait_for_approval()
    wire.tell_all(called, {**asked, "id": None}, refused)
    visitor.click("Approve")
    wire.tell("confirmation_resolved", confirmation_token="tok", outcome="approved")
    wire.tell_all({**tool_use("send_email", {}, {"sent": True})[1], "id": None})
    expect(visitor.tools).to_have_count(1)
    expect(visitor.tools).to_contain_text("Done")


def test_a_question_that_is_asked_again_elsewhere_is_answered_with_its_new_token(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(*wait_for_approval())
    expect(dialog_of(visitor)).to_be_visible()
    wire.tell_all(*wait_for_approval(token="newer"))
    visitor.click("Approve")
    assert wire.wait_for("confirm")["confirmation_token"] == "newer"
    expect(dialog_of(visitor)).to_have_count(0)
    expect(visitor.tools).to_have_count(1)


def test_a_call_to_a_real_server_is_done_in_one_card_also_after_a_reload(invite: Invite, tmp_path: Path) -> None:
    sentences = 'data:\n  - sentences: ["please greet my friend {name}"]\nlists:\n  name:\n    wildcard: true\n'
    files = {"handler.py": HANDLER + PREVIEW, "sentences.yaml": sentences}
    write_tool(
        tmp_path / "tools",
        files=files,
        category="action",
        sideEffects="writes",
        idempotent=False,
        requiresConfirmation=True,
    )
    with serve(tmp_path) as served:
        visitor = invite(f"http://127.0.0.1:{served.port}/").open()
        visitor.write("please greet my friend Ada")
        expect(dialog_of(visitor)).to_contain_text("Greet ")
        expect(visitor.tools).to_have_attribute("data-status", "waiting")
        visitor.click("Approve")
        expect(visitor.tools).to_have_attribute("data-status", "done")
        expect(visitor.tools).to_have_count(1)
        expect(visitor.answers).to_have_count(2)
        visitor.page.reload()
        expect(visitor.tools).to_have_attribute("data-status", "done")
        expect(visitor.tools).to_have_count(1)

"""A turn that fails: the question stays, with the reason, and can be asked again."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Invite
from tests.browser.scenes import exchange
from tests.browser.scripted import Wire
from tests.browser.slow_model import serve_slow_model
from tests.browser.visitor import Visitor
from tests.wire.served import serve

REASON = "The model cannot be reached. Is it running?"


def fail_turn(wire: Wire, code: str = "model_failed") -> None:
    wire.tell("error", message=REASON, code=code, retryable=True)
    wire.tell("state", state="idle")


@pytest.mark.parametrize("code", ["model_failed", "internal"])
def test_a_question_whose_answer_failed_says_why_and_can_be_asked_again(
    visitor: Visitor, wire: Wire, code: str
) -> None:
    visitor.write("How far is the moon?")
    wire.wait_for("text_message")
    wire.tell("state", state="processing")
    wire.tell("transcript", text="How far is the moon?", is_final=True)
    fail_turn(wire, code)
    question = visitor.page.locator(".bubble")
    expect(question).to_contain_text(REASON)
    expect(visitor.page.get_by_text(REASON)).to_have_count(1)
    question.get_by_role("button", name="Try again").click()
    wire.wait_for("text_message", text="How far is the moon?", count=2)
    wire.tell("state", state="processing")
    wire.tell("transcript", text="How far is the moon?", is_final=True)
    expect(visitor.said).to_have_text(["How far is the moon?"])
    expect(visitor.page.get_by_text(REASON)).to_have_count(0)
    wire.tell("response", text="A light second and a bit.")
    wire.tell("state", state="idle")
    expect(visitor.answers).to_have_text(["A light second and a bit."])
    expect(visitor.find("button", "Try again")).to_have_count(0)


def test_a_message_that_could_not_be_stored_says_why_and_can_be_sent_again(visitor: Visitor, wire: Wire) -> None:
    visitor.write("How far is the moon?")
    wire.wait_for("text_message")
    wire.tell("error", message="The database is locked.", code="unavailable", retryable=True)
    expect(visitor.page.locator(".bubble")).to_contain_text("The database is locked.")
    expect(visitor.page.get_by_text("Sending…")).to_have_count(0)
    visitor.click("Try again")
    wire.wait_for("text_message", text="How far is the moon?", count=2)


def test_an_answer_that_breaks_off_leaves_its_question_to_be_asked_again(visitor: Visitor, wire: Wire) -> None:
    wire.tell("state", state="processing")
    wire.tell("transcript", text="How far is the moon?", is_final=True)
    wire.tell("response_chunk", text="About a ", is_first=True)
    fail_turn(wire)
    expect(visitor.answers).to_have_text(["About a"])
    expect(visitor.page.get_by_text("Not finished")).to_be_visible()
    visitor.click("Try again")
    wire.wait_for("text_message", text="How far is the moon?")
    expect(visitor.said).to_have_text(["How far is the moon?"])


def test_a_question_that_failed_can_be_asked_again_later(visitor: Visitor, wire: Wire) -> None:
    wire.tell("state", state="processing")
    wire.tell("transcript", text="How far is the moon?", is_final=True)
    fail_turn(wire)
    wire.tell_all(*exchange("And the sun?", "Eight light minutes."))
    visitor.click("Try again")
    wire.wait_for("text_message", text="How far is the moon?")
    expect(visitor.said).to_have_text(["And the sun?", "How far is the moon?"])


def test_a_question_to_a_real_server_whose_model_fails_is_asked_again(invite: Invite, tmp_path: Path) -> None:
    with serve_slow_model() as (model, name), serve(tmp_path, model={"text": name}) as served:
        model.may_answer.set()
        model.fails = True
        visitor = invite(f"http://127.0.0.1:{served.port}/").open()
        visitor.write("How far is the moon?")
        expect(visitor.page.locator(".bubble .problem")).not_to_be_empty()
        expect(visitor.banners).to_have_count(0)
        model.fails = False
        visitor.click("Try again")
        expect(visitor.answers).to_have_text(["You asked: How far is the moon?"])
        expect(visitor.said).to_have_text(["How far is the moon?"])
        expect(visitor.find("button", "Try again")).to_have_count(0)

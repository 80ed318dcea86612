"""What is typed while an answer is being made: it waits, and can be taken back."""

from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Locator, expect

from antiphon.session.state import MAX_QUEUED
from tests.browser.conftest import Invite
from tests.browser.scripted import Wire
from tests.browser.slow_model import serve_slow_model
from tests.browser.visitor import Visitor
from tests.wire.served import serve

WAITING = "Queued"


def begin_answer(visitor: Visitor, wire: Wire) -> None:
    wire.tell("state", state="processing")
    wire.tell("transcript", text="How far is the moon?", is_final=True)
    visitor.sees("Assistant", "Thinking")


def tell_queue(wire: Wire, *texts: str) -> None:
    wire.tell("queued", messages=[{"id": f"q-{text}", "text": text} for text in texts])


def waiting(visitor: Visitor) -> Locator:
    """The bubbles of what waits."""
    return visitor.page.locator(".bubble").filter(has_text=WAITING)


def write_all(visitor: Visitor, wire: Wire, texts: Sequence[str]) -> None:
    for count, text in enumerate(texts, 1):
        visitor.write(text)
        wire.wait_for("text_message", text=text)
        tell_queue(wire, *texts[:count])
        expect(waiting(visitor)).to_have_count(count)


def test_what_is_typed_during_an_answer_waits_under_it_and_is_taken_up(visitor: Visitor, wire: Wire) -> None:
    begin_answer(visitor, wire)
    write_all(visitor, wire, ["And the sun?", "And Mars?"])
    expect(visitor.page.get_by_text("Sending…")).to_have_count(0)
    wire.tell("response", text="A light second and a bit.")
    expect(visitor.said).to_have_text(["How far is the moon?", "And the sun?", "And Mars?"])
    wire.tell("state", state="idle")
    tell_queue(wire, "And Mars?")
    wire.tell("transcript", text="And the sun?", is_final=True)
    expect(waiting(visitor)).to_have_count(1)
    expect(visitor.thread).to_contain_text("And the sun?")
    expect(visitor.said).to_have_text(["How far is the moon?", "And the sun?", "And Mars?"])
    assert [each["text"] for each in wire.said("text_message")] == ["And the sun?", "And Mars?"]


def test_what_waits_can_be_taken_back_into_the_field(visitor: Visitor, wire: Wire) -> None:
    begin_answer(visitor, wire)
    write_all(visitor, wire, ["And the sun?", "And Mars?"])
    waiting(visitor).filter(has_text="And Mars?").get_by_role("button", name="Unsend").click()
    assert wire.wait_for("unqueue")["id"] == "q-And Mars?"
    tell_queue(wire, "And the sun?")
    expect(waiting(visitor)).to_have_count(1)
    expect(visitor.composer).to_have_value("And Mars?")


def test_what_is_taken_back_replaces_nothing_that_is_being_typed(visitor: Visitor, wire: Wire) -> None:
    begin_answer(visitor, wire)
    write_all(visitor, wire, ["And the sun?"])
    visitor.composer.fill("Something else")
    visitor.find("button", "Unsend").click()
    wire.wait_for("unqueue")
    tell_queue(wire)
    expect(waiting(visitor)).to_have_count(0)
    expect(visitor.composer).to_have_value("Something else")


def test_what_the_server_does_not_take_is_back_in_the_field_with_the_reason(visitor: Visitor, wire: Wire) -> None:
    begin_answer(visitor, wire)
    write_all(visitor, wire, ["One", "Two"])
    visitor.write("Three")
    wire.wait_for("text_message", text="Three")
    wire.tell("error", message="Too many messages wait already.", code="busy", retryable=True)
    expect(visitor.composer).to_have_value("Three")
    expect(visitor.find("alert").filter(has_text="Too many messages wait already.")).to_be_visible()
    expect(visitor.said).to_have_text(["How far is the moon?", "One", "Two"])
    expect(visitor.page.get_by_text("Sending…")).to_have_count(0)


def test_what_the_server_does_not_take_is_kept_beside_what_is_being_typed(visitor: Visitor, wire: Wire) -> None:
    begin_answer(visitor, wire)
    visitor.write("Three")
    wire.wait_for("text_message", text="Three")
    visitor.composer.fill("Something else")
    wire.tell("error", message="Too many messages wait already.", code="busy", retryable=True)
    refused = visitor.page.locator(".bubble").filter(has_text="Three")
    expect(refused).to_contain_text("Too many messages wait already.")
    expect(visitor.composer).to_have_value("Something else")
    refused.get_by_role("button", name="Try again").click()
    wire.wait_for("text_message", text="Three", count=2)


def test_what_waited_when_the_answer_is_stopped_is_back_in_the_field(visitor: Visitor, wire: Wire) -> None:
    begin_answer(visitor, wire)
    write_all(visitor, wire, ["And the sun?", "And Mars?"])
    visitor.click("Stop the answer")
    wire.wait_for("interrupt")
    tell_queue(wire)
    wire.tell("state", state="interrupted")
    wire.tell("state", state="idle")
    expect(visitor.composer).to_have_value("And the sun?\nAnd Mars?")


def test_what_waited_in_a_session_that_is_gone_can_be_sent_again(visitor: Visitor, wire: Wire) -> None:
    begin_answer(visitor, wire)
    write_all(visitor, wire, ["And the sun?"])
    wire.resumes = False
    wire.close(1011)
    wire.wait_for_page(count=2)
    lost = visitor.page.locator(".bubble").filter(has_text="And the sun?")
    expect(lost).to_contain_text("Not sent")
    lost.get_by_role("button", name="Try again").click()
    wire.wait_for("text_message", text="And the sun?", count=2)


def test_what_waits_is_not_sent_again_after_a_resume(visitor: Visitor, wire: Wire) -> None:
    begin_answer(visitor, wire)
    write_all(visitor, wire, ["And the sun?"])
    wire.close(1011)
    wire.wait_for_page(count=2)
    wire.tell("state", state="idle")
    visitor.sees("Assistant", "Idle")
    expect(waiting(visitor)).to_have_count(1)
    assert len(wire.said("text_message")) == 1


def test_a_real_server_answers_what_waited_in_its_order_and_not_what_was_taken_back(
    invite: Invite, tmp_path: Path
) -> None:
    with serve_slow_model() as (model, name), serve(tmp_path, model={"text": name}) as served:
        visitor = invite(f"http://127.0.0.1:{served.port}/").open()
        for text in ("Say one", "Say two", "Say three", "Say four"):
            visitor.write(text)
        expect(waiting(visitor)).to_have_count(3)
        waiting(visitor).filter(has_text="Say three").get_by_role("button", name="Unsend").click()
        expect(visitor.composer).to_have_value("Say three")
        expect(waiting(visitor)).to_have_count(2)
        model.may_answer.set()
        expect(visitor.answers).to_have_text([f"You asked: Say {number}" for number in ("one", "two", "four")])
        expect(visitor.said).to_have_text(["Say one", "Say two", "Say four"])
        expect(waiting(visitor)).to_have_count(0)
        visitor.sees("Assistant", "Idle")


def test_a_real_server_that_has_no_room_gives_the_message_back(invite: Invite, tmp_path: Path) -> None:
    with serve_slow_model() as (_, name), serve(tmp_path, model={"text": name}) as served:
        visitor = invite(f"http://127.0.0.1:{served.port}/").open()
        visitor.write("Say 0")
        expect(visitor.thread).to_contain_text("Say 0")
        for number in range(1, MAX_QUEUED + 1):
            visitor.write(f"Say {number}")
            expect(waiting(visitor)).to_have_count(number)
        visitor.write("One more")
        expect(visitor.composer).to_have_value("One more")
        expect(visitor.banners).to_have_count(1)
        expect(waiting(visitor)).to_have_count(MAX_QUEUED)

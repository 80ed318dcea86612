"""What the server tells besides the conversation: notices, energy, errors, figures."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Invite
from tests.browser.scripted import Wire
from tests.browser.visitor import Visitor

STATUS = "Models, latency and notices"
KINDS = ["info", "success", "warning", "error"]


def test_notices_of_every_kind_are_shown(visitor: Visitor, wire: Wire) -> None:
    for kind in KINDS:
        wire.tell("notice", kind=kind, text=f"A notice of the kind {kind}", code=None, duration_ms=60_000)
    expect(visitor.toasts).to_have_text([f"A notice of the kind {kind}" for kind in reversed(KINDS)])


def test_a_notice_that_has_passed_is_kept_in_the_list(invite: Invite, wire: Wire) -> None:
    visitor = invite()
    visitor.page.clock.install()
    visitor.open()
    wire.wait_for_page()
    wire.tell("notice", kind="warning", text="Switching to the local model.", code="rate_limited", duration_ms=3000)
    expect(visitor.toasts).to_have_count(1)
    visitor.page.clock.run_for(3100)
    expect(visitor.toasts).to_have_count(0)
    expect(visitor.open_sheet(STATUS)).to_contain_text("Switching to the local model.")


def test_a_notice_can_be_dismissed(visitor: Visitor, wire: Wire) -> None:
    wire.tell("notice", kind="info", text="Passing by", code=None, duration_ms=60_000)
    visitor.toasts.get_by_role("button", name="Dismiss").click()
    expect(visitor.toasts).to_have_count(0)


def test_a_flood_of_notices_leaves_room_for_the_conversation(visitor: Visitor, wire: Wire) -> None:
    for number in range(30):
        wire.tell("notice", kind="info", text=f"Notice {number}", code=None, duration_ms=60_000)
    expect(visitor.toasts).to_have_text([f"Notice {number}" for number in (29, 28, 27, 26)])
    expect(visitor.toasts.first).to_be_in_viewport(ratio=1)


def test_an_error_stands_until_it_is_dismissed(visitor: Visitor, wire: Wire) -> None:
    wire.tell("error", message="The model cannot be reached.", code="model_failed", retryable=True)
    alert = visitor.find("alert").filter(has_text="The model cannot be reached.")
    expect(alert).to_contain_text("Trying again may help")
    alert.get_by_role("button", name="Dismiss").click()
    expect(visitor.page.get_by_text("The model cannot be reached.")).to_have_count(0)
    expect(visitor.open_sheet(STATUS)).to_contain_text("The model cannot be reached.")


def test_energy_is_shown_as_meters(visitor: Visitor) -> None:
    sheet = visitor.open_sheet(STATUS)
    for name, level in (("Voice model quality", "3"), ("Text model quality", "2")):
        meter = sheet.get_by_role("meter", name=name)
        expect(meter).to_have_attribute("aria-valuenow", level)
        expect(meter).to_have_attribute("aria-valuemax", level)


def test_a_server_that_knows_no_energy_shows_none(invite: Invite, wire: Wire) -> None:
    wire.energy = None
    wire.records["/api/energy"] = {"ladders": [], "sessions": []}
    visitor = invite().open()
    wire.wait_for_page()
    expect(visitor.open_sheet(STATUS).get_by_role("meter")).to_have_count(0)


def test_how_long_an_answer_took_is_shown_by_stage(visitor: Visitor, wire: Wire) -> None:
    stages = {"stt_ms": 140, "first_token_ms": 90, "first_audio_ms": 110}
    for turn, total in enumerate((480, 2500, 520), 1):
        wire.tell("turn_metrics", turn=turn, end_of_turn_ms=300, total_ms=total, **stages)
    rows = visitor.open_sheet(STATUS).get_by_role("table").get_by_role("row")
    expect(rows.first).to_have_text("StageLastMedian of 3")
    expect(rows.last).to_have_text("You stopped → it spoke520 ms520 ms")
    expect(rows.nth(2)).to_contain_text("140 ms")


def test_what_is_typed_does_not_count_among_the_waits_of_a_spoken_turn(visitor: Visitor, wire: Wire) -> None:
    heard = {"end_of_turn_ms": 300, "stt_ms": 140}
    typed = {"end_of_turn_ms": None, "stt_ms": None}
    wire.tell("turn_metrics", turn=1, first_token_ms=90, first_audio_ms=110, total_ms=500, **heard)
    for turn in (2, 3, 4):
        wire.tell("turn_metrics", turn=turn, first_token_ms=10, first_audio_ms=None, total_ms=10, **typed)
    rows = visitor.open_sheet(STATUS).get_by_role("table").get_by_role("row")
    expect(rows.last).to_have_text("You stopped → it spoke500 ms500 ms")


@pytest.mark.parametrize("final_message", ["Goodbye, until tomorrow.", None])
def test_the_end_of_a_call_is_told_in_the_thread(visitor: Visitor, wire: Wire, final_message: str | None) -> None:
    wire.tell("end_voice_session", reason="user_goodbye", final_message=final_message)
    expect(visitor.thread).to_contain_text(final_message or "Call ended.")


def test_messages_of_kinds_that_the_page_does_not_know_are_ignored(visitor: Visitor, wire: Wire) -> None:
    wire.tell("horoscope", sign="lion")
    wire.tell("notice", kind="gossip", text="Of an unknown kind", code=None, duration_ms=None)
    wire.tell("energy", mode="voice", level=7, max=0, previous=0, reason="why", model=None)
    wire.tell("state", state="processing")
    visitor.sees("Assistant", "Thinking")
    expect(visitor.toasts).to_have_text("Of an unknown kind")

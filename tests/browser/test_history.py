"""Earlier conversations and calls."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Invite
from tests.browser.scenes import exchange, in_ms
from tests.browser.scripted import Wire
from tests.browser.visitor import Visitor
from tests.wire.served import serve

HISTORY = "Conversations and calls"
CALL = {
    "id": "k1",
    "conversation_id": "c1",
    "started_ms": in_ms(-7_000_000),
    "duration_ms": 184_000,
    "summary": "Asked for the evening train. Open: which one to book.",
    "models": ["cascade"],
    "transcript": [{"role": "user", "content": "Which trains go to Porto?", "spoken": True, "at": None}],
}


def conversation(id: str, title: str) -> dict[str, Any]:
    return {"id": id, "title": title, "created_ms": in_ms(-9000), "updated_ms": in_ms(-9000)}


@pytest.fixture
def sheet(invite: Invite, wire: Wire) -> Locator:
    """The list, with two conversations and a call. The first conversation is the one that is open."""
    conversations = [conversation("c1", "Trains to Porto"), conversation("c2", "Rain in Lisbon")]
    wire.records["/api/conversations"] = {"conversations": conversations, "next": None}
    wire.records["/api/calls"] = {"calls": [CALL]}
    visitor = invite().open()
    wire.wait_for_page()
    wire.tell_all(*exchange("Hello", "Good morning."))
    expect(visitor.answers).to_have_count(1)
    return visitor.open_sheet(HISTORY)


def test_the_conversation_that_is_open_is_marked(sheet: Locator) -> None:
    expect(sheet.get_by_role("listitem").filter(has_text="Trains to Porto")).to_have_attribute("aria-current", "true")
    expect(sheet.get_by_role("listitem").filter(has_text="Trains to Porto")).to_contain_text("current")


def test_an_earlier_conversation_is_loaded(sheet: Locator, wire: Wire) -> None:
    sheet.get_by_role("button", name="Rain in Lisbon").first.click()
    assert wire.wait_for("load_conversation")["conversation_id"] == "c2"
    turns = [
        {"role": "user", "content": "Will it rain?", "spoken": True, "at": in_ms(-9000)},
        {"role": "assistant", "content": "On **Sunday**.", "spoken": True, "at": in_ms(-8000)},
    ]
    wire.tell("history", conversation_id="c2", turns=turns)
    page = sheet.page
    expect(page.get_by_role("log").first).to_contain_text("Will it rain?")
    expect(page.get_by_role("log").first).not_to_contain_text("Good morning.")
    expect(sheet).to_have_count(0)


def test_a_conversation_is_deleted_only_if_the_person_is_sure(sheet: Locator, wire: Wire) -> None:
    sheet.get_by_role("button", name="Delete “Rain in Lisbon”", exact=True).click()
    assert wire.deleted == []
    sheet.get_by_role("button", name="Delete? “Rain in Lisbon”").click()
    expect(sheet.get_by_role("listitem").filter(has_text="Rain in Lisbon")).to_have_count(0)
    assert wire.deleted == ["/api/conversations/c2"]


def test_a_conversation_is_cleared_without_the_calls(sheet: Locator, wire: Wire) -> None:
    sheet.get_by_role("button", name="Clear conversation", exact=True).click()
    sheet.get_by_role("button", name="Clear conversation?").click()
    wire.wait_for("clear_conversation")
    expect(sheet.page.get_by_text("Good morning.")).to_have_count(0)
    assert wire.deleted == []


def test_the_calls_are_cleared_without_the_conversation(sheet: Locator, wire: Wire) -> None:
    sheet.get_by_role("button", name="Clear call history", exact=True).click()
    sheet.get_by_role("button", name="Clear call history?").click()
    expect(sheet).to_contain_text("No calls yet.")
    assert wire.deleted == ["/api/calls"]
    assert wire.said("clear_conversation") == []


def test_a_call_is_listed_with_its_summary_and_its_words(sheet: Locator) -> None:
    expect(sheet).to_contain_text("Asked for the evening train.")
    expect(sheet).to_contain_text("3:04")
    sheet.get_by_text("Transcript").click()
    expect(sheet).to_contain_text("Which trains go to Porto?")


def test_a_conversation_goes_on_from_a_call(sheet: Locator, wire: Wire) -> None:
    sheet.get_by_role("button", name="Continue from here").click()
    wire.wait_for_page(count=2)
    (brought,) = wire.hellos[1]["initial_messages"]
    assert "Open: which one to book." in brought["content"]
    assert "conversation_id" not in wire.hellos[1]
    expect(sheet.page.get_by_text("Good morning.")).to_have_count(0)


def test_a_call_that_changed_models_says_so(sheet: Locator, wire: Wire) -> None:
    changed = CALL | {"models": ["best", "standard", "cascade"], "energy_path": [3, 2, 1]}
    wire.records["/api/calls"] = {"calls": [changed, CALL | {"id": "k0", "energy_path": [3]}]}
    sheet.get_by_role("button", name="Close").click()
    sheet.page.get_by_role("button", name=HISTORY, exact=True).click()
    entries = sheet.locator(".call")
    expect(entries.first).to_contain_text("best, standard, cascade · model quality 3 → 2 → 1")
    expect(entries.last).not_to_contain_text("model quality")


def test_a_call_without_a_summary_goes_on_from_its_words(invite: Invite, wire: Wire) -> None:
    wire.records["/api/calls"] = {"calls": [CALL | {"summary": "Summary unavailable."}]}
    visitor = invite().open()
    wire.wait_for_page()
    sheet = visitor.open_sheet(HISTORY)
    expect(sheet.locator(".call .quiet").last).to_have_text("Summary unavailable.")
    sheet.get_by_role("button", name="Continue from here").click()
    wire.wait_for_page(count=2)
    assert wire.hellos[1]["initial_messages"] == [{"role": "user", "content": "Which trains go to Porto?"}]


def test_a_summary_that_is_being_written_is_shown_when_it_is_there(invite: Invite, wire: Wire) -> None:
    ended = CALL | {"started_ms": in_ms(-5000), "duration_ms": 4000, "summary": ""}
    wire.records["/api/calls"] = {"calls": [ended]}
    visitor = invite().open()
    wire.wait_for_page()
    sheet = visitor.open_sheet(HISTORY)
    expect(sheet).to_contain_text("The summary is being written…")
    wire.records["/api/calls"] = {"calls": [ended | {"summary": "You asked for the time."}]}
    expect(sheet).to_contain_text("You asked for the time.")


def test_a_call_that_goes_on_cannot_be_continued(invite: Invite, wire: Wire) -> None:
    wire.records["/api/calls"] = {"calls": [CALL | {"duration_ms": None, "summary": ""}]}
    visitor = invite().open()
    wire.wait_for_page()
    sheet = visitor.open_sheet(HISTORY)
    expect(sheet).to_contain_text("The summary is written when the call ends.")
    expect(sheet.get_by_role("button", name="Continue from here")).to_have_count(0)


def test_a_conversation_that_goes_on_from_a_call_is_there_after_reloads(invite: Invite, tmp_path: Path) -> None:
    """Before anything is said in it, and after."""
    summary = "Summary of our earlier call: Asked for the evening train. Open: which one to book."
    with serve(tmp_path) as served:
        visitor = invite(f"http://127.0.0.1:{served.port}/")
        visitor.page.route("**/api/calls", lambda route: route.fulfill(json={"calls": [CALL]}))
        visitor.open().open_sheet(HISTORY).get_by_role("button", name="Continue from here").click()
        expect(visitor.answers).to_have_text([summary])
        visitor.page.reload()
        expect(visitor.answers).to_have_text([summary])
        visitor.write("fifteen percent of 80")
        expect(visitor.answers.last).to_contain_text("12")
        visitor.page.reload()
        expect(visitor.answers.first).to_have_text(summary)
        expect(visitor.answers.last).to_contain_text("12")


def test_a_new_conversation_begins_empty(sheet: Locator, wire: Wire) -> None:
    sheet.get_by_role("button", name="New conversation").click()
    wire.wait_for_page(count=2)
    assert "conversation_id" not in wire.hellos[1]
    assert "resume" not in wire.hellos[1]
    expect(sheet.page.get_by_text("Good morning.")).to_have_count(0)


def test_a_list_that_cannot_be_had_says_why(visitor: Visitor, wire: Wire) -> None:
    visitor.context.set_offline(True)
    expect(visitor.open_sheet(HISTORY).get_by_role("alert").first).to_contain_text("The server cannot be reached.")
    visitor.forgive("ERR_INTERNET_DISCONNECTED", "Failed to load resource")
    assert wire.deleted == []


def test_the_cards_of_tools_are_there_after_a_reload(invite: Invite, tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        visitor = invite(f"http://127.0.0.1:{served.port}/").open()
        visitor.write("fifteen percent of 80")
        expect(visitor.answers).to_contain_text("12")
        before = visitor.tools.locator("summary").inner_text()
        visitor.page.reload()
        expect(visitor.answers).to_contain_text("12")
        expect(visitor.tools).to_have_count(1)
        expect(visitor.tools).to_have_attribute("data-status", "done")
        visitor.tools.locator("summary").click()
        expect(visitor.tools.locator("pre")).to_contain_text("12")
        assert visitor.tools.locator("summary").inner_text().splitlines()[0] == before.splitlines()[0]


def test_cards_of_a_history_say_how_each_call_ended(visitor: Visitor, wire: Wire) -> None:
    unconfirmed = {"error": {"type": "CONFIRMATION_REQUIRED", "message": "This needs confirmation."}}
    calls = [
        {"id": "a", "name": "get_time", "args": {}, "result": {"time": "9:00"}, "ok": True},
        {"id": "b", "name": "open_page", "args": {}, "result": {"error": {"message": "No such page."}}, "ok": False},
        {"id": "c", "name": "send_email", "args": {}, "result": unconfirmed, "ok": False},
        {"id": "d", "name": "book_train", "args": {}, "result": None, "ok": None},
        {"id": "e", "name": "send_text", "args": {}, "result": unconfirmed, "ok": False},
    ]
    approved = [{"id": "e", "name": "send_text", "args": {}, "result": {"sent": True}, "ok": True}]
    turns = [
        {"role": "user", "content": "Do it all", "spoken": False, "at": None, "calls": []},
        {"role": "assistant", "content": "I tried.", "spoken": False, "at": None, "calls": calls},
        {"role": "assistant", "content": "It is sent.", "spoken": False, "at": None, "calls": approved},
    ]
    wire.tell("history", conversation_id="c1", turns=turns)
    expect(visitor.tools).to_have_count(5)
    statuses = [each.get_attribute("data-status") for each in visitor.tools.all()]
    assert statuses == ["done", "failed", "expired", "lost", "done"]
    expect(visitor.answers).to_have_text(["I tried.", "It is sent."])

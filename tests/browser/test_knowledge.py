"""The panel of the knowledge base, and the sources of answers that lead to it."""

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Invite
from tests.browser.knowledge import BOILER, PASSWORD
from tests.browser.scenes import exchange
from tests.browser.scripted import Wire
from tests.browser.test_injection import ADDRESSES, PAYLOADS, POISON, assert_inert
from tests.browser.visitor import Visitor

KNOWLEDGE = "Knowledge base"


@pytest.fixture
def sheet(visitor: Visitor) -> Locator:
    sheet = visitor.open_sheet(KNOWLEDGE)
    expect(hits(sheet)).to_have_count(2)
    return sheet


def hits(sheet: Locator) -> Locator:
    return sheet.get_by_role("list", name="Records").get_by_role("button")


def cite(text: str, *citations: dict[str, Any]) -> list[dict[str, Any]]:
    """A question, and an answer with these sources."""
    *before, answer, after = exchange("What do we know?", text)
    return [*before, answer | {"citations": list(citations)}, after]


def test_without_a_query_the_newest_records_are_listed(sheet: Locator) -> None:
    expect(hits(sheet).first).to_contain_text("Guest wifi")
    expect(hits(sheet).first).to_contain_text("Document · Only me ·")
    expect(hits(sheet).first).to_contain_text("2026")
    expect(hits(sheet).first.locator(".tag")).to_have_text(["house", "network"])
    expect(sheet.get_by_role("searchbox")).to_be_focused()


def test_records_are_found_as_a_person_types_and_the_hits_are_marked(sheet: Locator, wire: Wire) -> None:
    before = len(wire.knowledge.searches)
    sheet.page.keyboard.type("password", delay=10)
    expect(hits(sheet)).to_have_count(1)
    expect(hits(sheet).locator("mark")).to_have_text(["password"])
    expect(sheet.get_by_role("status")).to_have_text("1 record")
    asked = wire.knowledge.searches[before:]
    assert asked[-1]["query"] == "password"
    assert len(asked) < len("password"), "every key was a request"


def test_words_that_no_record_has_are_answered_kindly(sheet: Locator) -> None:
    sheet.get_by_role("searchbox").fill("zeppelin")
    expect(sheet.get_by_role("status")).to_have_text("No record matches. Try other words.")


def test_a_record_is_read_and_left_by_keyboard(sheet: Locator) -> None:
    hits(sheet).nth(1).focus()
    sheet.page.keyboard.press("Enter")
    heading = sheet.get_by_role("heading", name="Boiler manual")
    expect(heading).to_be_focused()
    expect(sheet).to_contain_text("Press the reset button")
    expect(sheet.get_by_role("link", name="https://boiler.example/manual")).to_have_attribute(
        "rel", "noopener noreferrer"
    )
    sheet.get_by_role("button", name="All records").press("Enter")
    expect(hits(sheet).nth(1)).to_be_focused()


def test_the_text_of_a_record_is_shown_as_answers_are(sheet: Locator) -> None:
    hits(sheet).first.click()
    expect(sheet.locator(".markdown strong")).to_have_text("password")
    expect(sheet.locator(".markdown li")).to_have_text(["It changes in May.", "Ask Ana."])


def test_a_tag_leads_to_the_records_that_have_it(sheet: Locator) -> None:
    hits(sheet).first.click()
    sheet.get_by_role("list", name="Tags").get_by_role("button", name="network").click()
    expect(hits(sheet)).to_have_count(1)
    sheet.get_by_role("button", name="Tag: network").click()
    expect(hits(sheet)).to_have_count(2)


def test_more_records_are_shown_when_asked_for(invite: Invite, wire: Wire) -> None:
    wire.knowledge.records = [PASSWORD | {"id": f"r{number}"} for number in range(30)]
    visitor = invite().open()
    sheet = visitor.open_sheet(KNOWLEDGE)
    expect(hits(sheet)).to_have_count(20)
    expect(sheet.get_by_role("status")).to_have_text("30 records")
    sheet.get_by_role("button", name="Show more").click()
    expect(hits(sheet)).to_have_count(30)
    expect(sheet.get_by_role("button", name="Show more")).to_have_count(0)


def test_a_record_is_added_and_shown(sheet: Locator, wire: Wire) -> None:
    sheet.get_by_role("button", name="Add").click()
    expect(sheet.get_by_label("Title")).to_be_focused()
    sheet.get_by_label("Title").fill("Bins")
    sheet.get_by_label("Text").fill("They are emptied on **Mondays**.")
    sheet.get_by_label("Tags").fill("house, street")
    sheet.get_by_label("Type").select_option("Process")
    sheet.get_by_label("Who may read it").select_option("Everybody here")
    sheet.get_by_role("button", name="Add record").click()
    expect(sheet.get_by_role("heading", name="Bins")).to_be_visible()
    (posted,) = wire.knowledge.posted
    text = "They are emptied on **Mondays**."
    tags = ["house", "street"]
    assert posted == {"title": "Bins", "body": text, "tags": tags, "type": "process", "namespace": "studio"}
    sheet.get_by_role("button", name="All records").click()
    expect(hits(sheet)).to_have_count(3)


def test_a_record_without_a_text_is_not_sent(sheet: Locator, wire: Wire) -> None:
    sheet.get_by_role("button", name="Add").click()
    sheet.get_by_label("Title").fill("Bins")
    sheet.get_by_role("button", name="Add record").click()
    expect(sheet.get_by_role("alert")).to_have_text("A record needs a title and a text.")
    assert wire.knowledge.posted == []


def test_a_record_that_is_refused_can_be_corrected_and_is_not_lost(
    sheet: Locator, visitor: Visitor, wire: Wire
) -> None:
    sheet.get_by_role("button", name="Add").click()
    sheet.get_by_label("Title").fill("Bins")
    sheet.get_by_label("Text").fill("On Mondays.")
    wire.knowledge.refusal = "You may add personal records only."
    sheet.get_by_role("button", name="Add record").click()
    expect(sheet.get_by_role("alert")).to_have_text(wire.knowledge.refusal)
    visitor.page.keyboard.press("Escape")
    wire.knowledge.refusal = None
    again = visitor.open_sheet(KNOWLEDGE)
    again.get_by_role("button", name="Add").click()
    expect(again.get_by_label("Text")).to_have_value("On Mondays.")
    visitor.forgive("503")


def test_a_record_is_deleted_only_if_the_person_is_sure(sheet: Locator, wire: Wire) -> None:
    hits(sheet).first.click()
    sheet.get_by_role("button", name="Delete record", exact=True).click()
    assert wire.knowledge.records == [PASSWORD, BOILER]
    sheet.get_by_role("button", name="Delete record?").click()
    expect(hits(sheet)).to_have_count(1)
    assert wire.knowledge.records == [BOILER]


def test_what_belongs_to_others_cannot_be_deleted(invite: Invite, wire: Wire) -> None:
    wire.knowledge.records = [PASSWORD | {"namespace": "studio", "writable": False}]
    sheet = invite().open().open_sheet(KNOWLEDGE)
    hits(sheet).first.click()
    expect(sheet.get_by_role("heading", name="Guest wifi")).to_be_visible()
    expect(sheet.get_by_role("button", name="Delete record")).to_have_count(0)


def test_a_failed_search_says_why_and_can_be_repeated(visitor: Visitor, wire: Wire) -> None:
    wire.knowledge.refusal = "The database cannot be reached. Try again."
    sheet = visitor.open_sheet(KNOWLEDGE)
    expect(sheet.get_by_role("alert")).to_have_text(wire.knowledge.refusal)
    wire.knowledge.refusal = None
    sheet.get_by_role("button", name="Try again").click()
    expect(hits(sheet)).to_have_count(2)
    visitor.forgive("503")


def test_the_search_goes_on_when_the_network_is_back(visitor: Visitor, wire: Wire) -> None:
    visitor.context.set_offline(True)
    sheet = visitor.open_sheet(KNOWLEDGE)
    expect(sheet.get_by_role("alert").filter(has_text="The server cannot be reached")).to_be_visible()
    visitor.context.set_offline(False)
    wire.close(1012)
    expect(hits(sheet)).to_have_count(2)
    visitor.forgive("ERR_INTERNET_DISCONNECTED", "Failed to load resource")


def test_an_answer_shows_its_sources_in_order(visitor: Visitor, wire: Wire) -> None:
    record = {"id": "r1", "title": "Guest wifi", "url": None}
    web = {"id": "w1", "title": "The manual", "url": "https://boiler.example/manual"}
    wire.tell_all(*cite("It is tulip-meadow.", web, record))
    sources = visitor.find("list", "Sources").get_by_role("listitem")
    expect(sources).to_have_text(["The manual", "Guest wifi"])
    link = sources.first.get_by_role("link")
    expect(link).to_have_attribute("href", "https://boiler.example/manual")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    sources.last.get_by_role("button").press("Enter")
    sheet = visitor.find("dialog", KNOWLEDGE)
    expect(sheet.get_by_role("heading", name="Guest wifi")).to_be_focused()
    visitor.page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    expect(sources.last.get_by_role("button")).to_be_focused()


def test_a_source_that_is_gone_says_so(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(*cite("It was there.", {"id": "r9", "title": "Old note", "url": None}))
    visitor.find("button", "Old note").click()
    expect(visitor.find("dialog", KNOWLEDGE).get_by_role("alert")).to_contain_text("There is no such record.")
    visitor.forgive("404")


def test_words_of_records_and_sources_are_inert(invite: Invite, wire: Wire) -> None:
    evil = PASSWORD | {"title": POISON, "body": POISON, "tags": [POISON], "type": POISON, "namespace": POISON}
    wire.knowledge.records = [evil | {"id": str(number), "url": url} for number, url in enumerate(ADDRESSES)]
    visitor = invite().open()
    wire.wait_for_page()
    wire.tell_all(*cite(POISON, *({"id": "0", "title": POISON, "url": url} for url in ADDRESSES)))
    expect(visitor.find("list", "Sources").get_by_role("link")).to_have_count(0)
    visitor.find("list", "Sources").get_by_role("button").first.click()
    sheet = visitor.find("dialog", KNOWLEDGE)
    expect(sheet.get_by_role("heading").nth(1)).to_contain_text(PAYLOADS[1])
    assert_inert(visitor)
    sheet.get_by_role("button", name="All records").click()
    sheet.get_by_role("searchbox").fill("img")
    expect(hits(sheet)).to_have_count(len(ADDRESSES))
    assert_inert(visitor)

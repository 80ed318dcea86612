"""The operator's page, on a real server: who may enter, every view by keys alone, in every theme and on a phone."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser import operator
from tests.browser.conftest import Invite
from tests.browser.test_accessibility import AXE, find_faults
from tests.browser.visitor import THEMES, Visitor
from tests.wire.served import UNLIMITED, Served, add_token, serve

VIEWS = ("Sessions", "Conversations", "Audit", "Users", "Tokens", "Energy", "Tools", "Knowledge base")
WHERE = """() => {
    const element = document.activeElement;
    const label = element.labels?.[0]?.textContent ?? element.getAttribute("aria-label") ?? element.textContent;
    return label.replace(/\\s+/g, " ").trim();
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("operator")


@pytest.fixture(scope="module")
def token(folder: Path) -> str:
    return operator.fill(folder)


@pytest.fixture(scope="module")
def plain_token(folder: Path) -> str:
    """The token of a user who is not an operator."""
    return add_token(folder, "tomas")


@pytest.fixture(scope="module")
def server(folder: Path, token: str, plain_token: str) -> Iterator[Served]:
    with serve(folder, limits=UNLIMITED) as served:
        yield served


def tab_to(visitor: Visitor, name: str, *, most: int = 150) -> None:
    """Goes on with the Tab key until something with this name has the focus."""
    for _ in range(most):
        visitor.page.keyboard.press("Tab")
        if re.match(name, str(visitor.evaluate(WHERE))):
            return
    raise AssertionError(f"Tab does not lead to {name!r}")


def press(visitor: Visitor, name: str, key: str = "Enter") -> None:
    tab_to(visitor, name)
    visitor.page.keyboard.press(key)


def sees_view(visitor: Visitor, title: str) -> None:
    """The view is open, and the focus is at its beginning."""
    heading = visitor.find("heading", title, level=1, exact=True)
    expect(heading).to_be_focused()
    expect(visitor.page).to_have_title(f"{title} · Antiphon admin")


def enter(visitor: Visitor, token: str) -> Visitor:
    visitor.open("/admin")
    visitor.page.get_by_label("Admin token").fill(token)
    visitor.page.keyboard.press("Enter")
    sees_view(visitor, "Sessions")
    return visitor


@pytest.fixture
def admin(invite: Invite, server: Served, token: str) -> Visitor:
    return enter(invite(server.http, reduced_motion="reduce"), token)


def go(visitor: Visitor, view: str) -> None:
    visitor.find("navigation", "Views").get_by_role("link", name=view, exact=True).click()
    sees_view(visitor, view)


def test_without_an_admin_token_nothing_is_shown(invite: Invite, server: Served, plain_token: str) -> None:
    visitor = invite(server.http).open("/admin")
    expect(visitor.find("heading", "Antiphon admin")).to_be_visible()
    expect(visitor.page.get_by_text("antiphon token new --admin")).to_be_visible()
    expect(visitor.find("navigation")).to_have_count(0)
    visitor.page.get_by_label("Admin token").fill("apn_wrong")
    visitor.page.keyboard.press("Enter")
    expect(visitor.find("alert")).to_contain_text("An admin token is required")
    visitor.page.get_by_label("Admin token").fill(plain_token)
    visitor.page.keyboard.press("Enter")
    expect(visitor.find("alert")).to_contain_text("This is not an admin token")
    expect(visitor.find("navigation")).to_have_count(0)
    visitor.forgive("401", "403")


def test_everything_is_done_by_keys_alone(invite: Invite, server: Served, token: str) -> None:
    visitor = invite(server.http, reduced_motion="reduce").open("/admin")
    tab_to(visitor, "Admin token")
    visitor.page.keyboard.type(token)
    visitor.page.keyboard.press("Enter")
    sees_view(visitor, "Sessions")
    for view in (*VIEWS[1:], VIEWS[0]):
        press(visitor, f"{view}$")
        sees_view(visitor, view)

    press(visitor, "Conversations$")
    sees_view(visitor, "Conversations")
    press(visitor, "Which trains go to Porto")
    sees_view(visitor, "Which trains go to Porto tomorrow morning?")
    press(visitor, "Arguments of find_trains")
    expect(visitor.page.get_by_role("region", name="Arguments of find_trains")).to_contain_text('"Porto"')

    press(visitor, "Audit of this conversation")
    sees_view(visitor, "Audit")
    tab_to(visitor, "Tool$")
    visitor.page.keyboard.type("book_ticket")
    visitor.page.keyboard.press("Enter")
    rows = visitor.page.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("approved by the user")

    press(visitor, "Users$")
    sees_view(visitor, "Users")
    press(visitor, "Unblock mallory")
    visitor.page.keyboard.press("Enter")
    expect(visitor.page.get_by_text("mallory is no longer blocked.")).to_be_visible()
    expect(visitor.find("button", "Unblock mallory")).to_have_count(0)
    expect(visitor.find("heading", "Users")).to_be_focused()

    press(visitor, "Tokens$")
    sees_view(visitor, "Tokens")
    expect(visitor.find("button", "Revoke the token 77d0a3b5")).to_be_visible()
    before = visitor.page.locator("tbody tr").count()
    press(visitor, "Revoke the token 77d0a3b5")
    visitor.page.keyboard.press("Enter")
    expect(visitor.page.get_by_text("The token 77d0a3b5 of mallory is revoked.")).to_be_visible()
    expect(visitor.page.locator("tbody tr")).to_have_count(before - 1)

    press(visitor, "Sign out")
    expect(visitor.page.get_by_label("Admin token")).to_be_visible()


def test_the_content_can_be_reached_without_the_navigation(admin: Visitor) -> None:
    admin.page.reload()
    expect(admin.find("heading", "Sessions")).to_be_visible()
    admin.page.keyboard.press("Tab")
    assert admin.evaluate(WHERE) == "Skip to the content"
    admin.page.keyboard.press("Enter")
    expect(admin.find("main")).to_be_focused()
    assert admin.page.url.endswith("/admin")


def test_a_reload_needs_no_new_token_and_stays_where_it_was(admin: Visitor) -> None:
    go(admin, "Users")
    admin.page.reload()
    expect(admin.find("heading", "Users")).to_be_visible()


def test_the_timeline_shows_calls_tools_latencies_and_changes_of_the_model(admin: Visitor) -> None:
    admin.open(f"/admin#/conversations/{operator.TRAINS}")
    timeline = admin.find("list", "Timeline")
    expect(timeline.locator(".words").first).to_have_text("Which trains go to Porto tomorrow morning?")
    kinds = timeline.locator(".moment").evaluate_all("(all) => all.map((each) => each.dataset.kind)")
    assert kinds == [
        *("call", "said", "tool", "said", "latency", "said", "tool", "tool", "said", "latency"),
        *("energy", "upstream", "said", "tool", "said", "latency"),
    ]
    expect(
        timeline.get_by_text("Energy of voice lowered from 3 to 2 of 3 (rate limit exceeded): cascade")
    ).to_be_visible()
    expect(timeline.get_by_text("456 ms")).to_be_visible()
    asked, booked = timeline.locator(".moment").filter(has_text="book_ticket").all()
    expect(asked).to_contain_text("approval requested")
    expect(booked).to_contain_text("approved by the user")
    expect(booked.get_by_text("Result")).to_be_visible()


def test_a_recorded_call_is_played_from_the_place_of_a_turn_and_audited_once(admin: Visitor) -> None:
    admin.open(f"/admin#/conversations/{operator.TRAINS}")
    timeline, player = admin.find("list", "Timeline"), admin.page.locator("audio")
    expect(timeline.locator(".play-from")).to_have_count(len(operator.PLACES))
    expect(player).to_have_count(0)
    press(admin, "Play from 0:18")
    expect(timeline.get_by_role("button", name="Pause")).to_be_focused()
    expect(player).to_have_attribute("aria-label", "The recording of the call")
    expect(player).to_be_in_viewport()
    assert 18.2 <= player.evaluate("(player) => player.currentTime") < 30
    assert player.evaluate("(player) => player.duration") == pytest.approx(41, abs=0.1)
    admin.page.keyboard.press("Enter")
    expect(timeline.get_by_role("button", name="Pause")).to_have_count(0)
    assert player.evaluate("(player) => player.paused")
    admin.evaluate(AXE)
    assert find_faults(admin) == []
    timeline.get_by_role("button", name="Play the recording").click()
    expect(player).to_have_js_property("paused", False)
    assert player.evaluate("(player) => player.currentTime") < 10
    admin.find("link", "Audit of this conversation").click()
    expect(admin.page.locator("tbody tr").filter(has_text="admin heard recording")).to_have_count(1)


def test_a_server_that_is_gone_is_told_and_what_was_loaded_stays(admin: Visitor) -> None:
    expect(admin.page.locator("tbody tr")).to_have_count(3)
    admin.context.set_offline(True)
    expect(admin.page.get_by_text("The server cannot be reached.")).to_be_visible(timeout=20_000)
    expect(admin.page.locator("tbody tr")).to_have_count(3)
    admin.context.set_offline(False)
    expect(admin.page.get_by_text("The server cannot be reached.")).to_have_count(0, timeout=20_000)
    admin.forgive("ERR_INTERNET_DISCONNECTED")


def test_a_filter_narrows_a_list_and_says_how_many_are_left(admin: Visitor) -> None:
    go(admin, "Conversations")
    admin.find("searchbox", "Filter conversations").fill("tomas")
    expect(admin.page.locator("tbody tr")).to_have_count(2)
    expect(admin.find("status").filter(has_text="2 conversations")).to_be_visible()
    admin.find("searchbox", "Filter conversations").fill("nothing like that")
    expect(admin.page.get_by_text("No conversation matches the filter.")).to_be_visible()


PLACES = (
    *(
        f"#/{name}"
        for name in ("sessions", "conversations", "audit", "users", "tokens", "energy", "tools", "knowledge")
    ),
    f"#/conversations/{operator.TRAINS}",
)


def settle(visitor: Visitor) -> None:
    expect(visitor.page.get_by_text("Loading…")).to_have_count(0)


@pytest.mark.parametrize("place", PLACES)
def test_no_view_breaks_a_rule_gravely(admin: Visitor, place: str) -> None:
    admin.open(f"/admin{place}")
    settle(admin)
    admin.evaluate(AXE)
    faults = {}
    # The timeline has all colours. That each can be read on each background is tested with the themes.
    for theme in THEMES if operator.TRAINS in place else ("midnight", "babyblue"):
        admin.evaluate("(theme) => { document.documentElement.dataset.theme = theme }", theme)
        if found := find_faults(admin):
            faults[theme] = found
    assert faults == {}


def test_signing_in_breaks_no_rule_gravely(invite: Invite, server: Served) -> None:
    visitor = invite(server.http).open("/admin")
    visitor.page.get_by_label("Admin token").fill("apn_wrong")
    visitor.page.keyboard.press("Enter")
    expect(visitor.find("alert")).to_be_visible()
    visitor.evaluate(AXE)
    assert find_faults(visitor) == []
    visitor.forgive("401")


def test_on_a_phone_nothing_is_cut_off_and_everything_is_large_enough(
    invite: Invite, server: Served, token: str
) -> None:
    visitor = enter(invite(server.http, viewport={"width": 360, "height": 780}, has_touch=True, is_mobile=True), token)
    small = """() => [...document.querySelectorAll("button, select, summary, input, nav a, a.button")]
        .map((element) => [element.textContent || element.type, element.getBoundingClientRect()])
        .filter(([, box]) => box.height < 43.9)
        .map(([name, box]) => `${name}: ${box.width} x ${box.height}`)"""
    wide = """() => [...document.querySelectorAll("main *")]
        .filter((element) => !element.closest(".visually-hidden, thead"))
        .filter((element) => element.getBoundingClientRect().right > innerWidth)
        .map((element) => element.outerHTML.slice(0, 120))"""
    for place in PLACES:
        visitor.open(f"/admin{place}")
        settle(visitor)
        assert (place, visitor.evaluate("document.documentElement.scrollWidth")) == (place, 360)
        assert (place, visitor.evaluate(wide)) == (place, [])
        assert (place, visitor.evaluate(small)) == (place, [])

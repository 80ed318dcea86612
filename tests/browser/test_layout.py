"""The page on small screens, at large sizes, without motion, and in the system's own colours."""

from typing import Final

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.browser.conftest import Invite
from tests.browser.scenes import CODE, DIALOGUE, SENTENCE, exchange, question
from tests.browser.scripted import Wire
from tests.browser.visitor import Visitor

NARROW: Final = {"width": 320, "height": 640}
ZOOMED: Final = {"width": 640, "height": 400}
WIDE: Final = {"width": 1280, "height": 800}
PANELS: Final = (
    "Conversations and calls",
    "Knowledge base",
    "Models, latency and notices",
    "Settings",
    "Keyboard shortcuts",
)
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
"""How far the page can be scrolled sideways, in pixels."""
OUTSIDE = """() => [...document.querySelectorAll("button, textarea, select, input, dialog[open] *")]
    .filter((element) => element.checkVisibility({ visibilityProperty: true }))
    .filter((element) => !element.closest("pre, .table-wrap, .visually-hidden, svg"))
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
    .map((element) => element.outerHTML.slice(0, 120))"""
"""What sticks out at the right, though nothing there can be scrolled."""
COVERED = """() => [...document.querySelectorAll("button, a[href], select, summary, textarea, [role=separator]")]
    .filter((element) => element.checkVisibility() && !element.closest(".toasts"))
    .filter((element) => {
        const { left, right, top, bottom } = element.getBoundingClientRect();
        const [x, y] = [(left + right) / 2, (top + bottom) / 2];
        const window = element.closest(".thread")?.getBoundingClientRect();
        const isScrolledAway = window !== undefined && (y < window.top || y > window.bottom);
        return !isScrolledAway && document.elementFromPoint(x, y)?.closest(".toasts") != null;
    })
    .map((element) => element.outerHTML.slice(0, 120))"""
"""Controls that lie under something that passes by."""
SCROLLED = """() => [...document.querySelectorAll("*")]
    .filter((element) => element.scrollHeight > element.clientHeight)
    .filter((element) => element === document.documentElement ||
        ["auto", "scroll"].includes(getComputedStyle(element).overflowY))
    .map((element) => element.className || element.tagName)"""
"""What has a scrollbar at its right."""
EXTENTS = """() => [...document.querySelectorAll(".state")].map((element) => {
    const range = document.createRange();
    range.selectNode(element.lastChild);
    const { left, right } = range.getBoundingClientRect();
    return [left, right];
})"""
"""Where the words of the three states begin and end."""
LONG: Final = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 3


def assert_fits(visitor: Visitor) -> None:
    assert visitor.evaluate(OVERFLOW) <= 0
    assert visitor.evaluate(OUTSIDE) == []


@pytest.fixture
def narrow(invite: Invite, wire: Wire) -> Visitor:
    visitor = invite(viewport=NARROW, reduced_motion="reduce").open()
    wire.wait_for_page()
    return visitor


def test_the_first_screen_fits_into_320_pixels(narrow: Visitor) -> None:
    expect(narrow.talk_button).to_be_in_viewport(ratio=1)
    expect(narrow.composer).to_be_in_viewport(ratio=1)
    assert_fits(narrow)


def test_a_busy_thread_fits_into_320_pixels(narrow: Visitor, wire: Wire) -> None:
    wire.tell_all(*DIALOGUE, *exchange(LONG, f"{LONG}\n\n`{LONG}`\n\n```\n{LONG}\n```\n\n| a | {LONG} |\n|---|---|"))
    wire.tell("tool_call", id="t9", name=LONG, args={LONG: LONG})
    wire.tell("notice", kind="info", text=LONG, code=None, duration_ms=60_000)
    wire.tell("error", message=LONG, code="model_failed", retryable=True)
    wire.tell("reminder", id="r1", message=LONG, due=0)
    expect(narrow.find("alert").filter(has_text=LONG).first).to_be_visible()
    assert_fits(narrow)
    expect(narrow.composer).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_fits_into_320_pixels(narrow: Visitor, panel: str) -> None:
    narrow.open_sheet(panel)
    assert_fits(narrow)


def test_a_question_fits_into_320_pixels(narrow: Visitor, wire: Wire) -> None:
    wire.tell_all(question(args={"subject_of_the_message": LONG}, preview=LONG * 4))
    expect(narrow.find("button", "Cancel")).to_be_in_viewport(ratio=1)
    expect(narrow.find("button", "Approve")).to_be_in_viewport(ratio=1)
    assert_fits(narrow)


def test_a_flyout_fits_into_320_pixels(narrow: Visitor, wire: Wire) -> None:
    wire.tell("flyout", flyout_type="code", content=f"{CODE}{LONG}", language="python", title=LONG)
    expect(narrow.find("button", "Close panel")).to_be_in_viewport(ratio=1)
    assert_fits(narrow)


def test_the_page_fits_at_twice_the_size(invite: Invite, wire: Wire) -> None:
    """As a browser zooms: half as many pixels of the page, each twice as large."""
    visitor = invite(viewport=ZOOMED, device_scale_factor=2).open()
    wire.wait_for_page()
    expect(visitor.composer).to_be_in_viewport(ratio=1)
    expect(visitor.talk_button).to_be_in_viewport(ratio=1)
    expect(visitor.page.get_by_text("or type below")).to_be_in_viewport(ratio=1)
    wire.tell_all(*DIALOGUE)
    expect(visitor.answers.last).to_be_visible()
    assert_fits(visitor)
    expect(visitor.composer).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("viewport", [WIDE, ZOOMED, NARROW])
def test_what_passes_by_covers_no_control(invite: Invite, wire: Wire, viewport: ViewportSize) -> None:
    visitor = invite(viewport=viewport).open()
    wire.wait_for_page()
    wire.tell_all(*DIALOGUE)
    for number in range(4):
        wire.tell("notice", kind="error", text=f"Notice {number}. {SENTENCE}", code=None, duration_ms=60_000)
    expect(visitor.toasts).to_have_count(4)
    assert visitor.evaluate(COVERED) == []
    expect(visitor.composer).to_be_in_viewport(ratio=1)
    wire.tell("flyout", flyout_type="code", content=CODE, language="python", title="greet.py")
    expect(visitor.find("button", "Close panel")).to_be_in_viewport(ratio=1)
    expect(visitor.toasts.first).to_be_in_viewport()
    assert visitor.evaluate(COVERED) == []


@pytest.mark.parametrize("viewport", [WIDE, ZOOMED, NARROW])
def test_what_passes_by_moves_no_line_that_is_read(invite: Invite, wire: Wire, viewport: ViewportSize) -> None:
    visitor = invite(viewport=viewport).open()
    wire.wait_for_page()
    for number in range(20):
        wire.tell_all(*exchange(f"Question {number}", SENTENCE * 3))
    line = visitor.said.nth(10)
    line.evaluate("(line) => line.scrollIntoView({ block: 'end' })")
    expect(line).to_be_in_viewport()
    before = line.bounding_box()
    wire.tell("notice", kind="info", text="Passing by", code=None, duration_ms=60_000)
    expect(visitor.toasts).to_be_in_viewport()
    assert line.bounding_box() == before
    visitor.toasts.get_by_role("button", name="Dismiss").click()
    expect(visitor.toasts).to_have_count(0)
    assert line.bounding_box() == before


@pytest.mark.parametrize("viewport", [WIDE, ZOOMED, NARROW])
def test_the_states_stand_evenly_and_no_word_moves_another(invite: Invite, wire: Wire, viewport: ViewportSize) -> None:
    visitor = invite(viewport=viewport, permissions=["microphone"]).open()
    wire.wait_for_page()
    visitor.sees("Connection", "Connected")
    connection, microphone, _ = visitor.evaluate(EXTENTS)
    wire.tell("state", state="processing")
    wire.tell("tool_call", id="t1", name="get_time", args={})
    visitor.sees("Assistant", "Using a tool")
    assert visitor.evaluate(EXTENTS)[:2] == [connection, microphone]
    wire.tell("go_away", time_left_ms=60_000, reason="A new version.", resume="h")
    visitor.sees("Connection", "Restarting")
    visitor.talk_button.click()
    visitor.sees("Microphone", "Mic on")
    visitor.page.keyboard.press("m")
    visitor.sees("Microphone", "Mic muted")
    left, middle, right = visitor.evaluate(EXTENTS)
    assert left[1] < middle[0]
    assert middle[1] < right[0]
    assert sum(middle) / 2 == pytest.approx(viewport["width"] / 2, abs=12)


@pytest.mark.parametrize("viewport", [WIDE, ZOOMED, NARROW])
def test_there_is_one_scrollbar_at_most(invite: Invite, wire: Wire, viewport: ViewportSize) -> None:
    visitor = invite(viewport=viewport).open()
    wire.wait_for_page()
    assert visitor.evaluate(SCROLLED) == []
    for number in range(20):
        wire.tell_all(*exchange(f"Question {number}", SENTENCE * 3))
    expect(visitor.answers).to_have_count(20)
    assert visitor.evaluate(SCROLLED) == ["thread"]
    visitor.composer.fill("\n".join(map(str, range(40))))
    assert visitor.evaluate(SCROLLED) == ["thread", "composer-box"]


def test_letters_can_be_twice_as_large(invite: Invite, wire: Wire) -> None:
    """As a person sets it in the browser, for all pages."""
    visitor = invite(viewport=WIDE)
    visitor.instruct("Page.setFontSizes", fontSizes={"standard": 32, "fixed": 26})
    visitor.open()
    wire.wait_for_page()
    wire.tell_all(*DIALOGUE)
    expect(visitor.answers.last).to_be_visible()
    assert visitor.evaluate("() => getComputedStyle(document.querySelector('textarea')).fontSize") == "32px"
    assert_fits(visitor)
    expect(visitor.composer).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("state", ["idle", "listening", "processing", "speaking"])
def test_nothing_moves_where_the_system_asks_for_rest(invite: Invite, wire: Wire, state: str) -> None:
    visitor = invite(reduced_motion="reduce").open()
    wire.wait_for_page()
    wire.tell("transcript", text="Hello", is_final=True)
    wire.tell("state", state=state)
    wire.tell("tool_call", id="t1", name="get_time", args={})
    expect(visitor.tools).to_be_visible()
    assert visitor.running_animations() == []


def test_states_are_told_apart_in_the_systems_own_colours(invite: Invite, wire: Wire) -> None:
    visitor = invite(forced_colors="active", reduced_motion="reduce").open()
    wire.wait_for_page()
    wire.tell_all(*DIALOGUE)
    expect(visitor.answers.last).to_be_visible()
    sheet = visitor.open_sheet("Settings")
    edges = """(selector) => [...document.querySelectorAll(selector)]
        .filter((element) => element.checkVisibility())
        .filter((element) => getComputedStyle(element).borderStyle === "none")
        .map((element) => element.outerHTML.slice(0, 120))"""
    assert visitor.evaluate(edges, "dialog .button, dialog select, .bubble, .composer, [role=switch]") == []
    expect(sheet.get_by_role("switch").first).to_be_visible()


def test_the_focus_can_be_seen_in_the_systems_own_colours(invite: Invite, wire: Wire) -> None:
    visitor = invite(forced_colors="active").open()
    wire.wait_for_page()
    outline = "() => getComputedStyle(document.activeElement).outlineStyle"
    for _ in range(5):
        visitor.page.keyboard.press("Tab")
        assert visitor.evaluate(outline) != "none"


def test_a_long_word_stays_in_its_bubble(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(*exchange(LONG, SENTENCE))
    expect(visitor.said).to_have_count(1)
    assert visitor.evaluate(OVERFLOW) <= 0

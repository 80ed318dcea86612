"""What a tool shows beside the conversation."""

import pytest
from playwright.sync_api import Locator, ViewportSize, expect

from tests.browser.conftest import Invite
from tests.browser.scenes import CODE, exchange
from tests.browser.scripted import FRAMED, Wire
from tests.browser.visitor import Visitor

PHONE: ViewportSize = {"width": 390, "height": 844}


def panel_of(visitor: Visitor, title: str) -> Locator:
    return visitor.find("complementary", title)


def test_code_is_shown_with_the_numbers_of_its_lines(visitor: Visitor, wire: Wire) -> None:
    wire.tell("flyout", flyout_type="code", content=CODE, language="python", title="greet.py")
    panel = panel_of(visitor, "greet.py")
    expect(panel.get_by_role("code")).to_have_text(CODE)
    expect(panel.locator(".line-numbers")).to_have_text("1\n2\n3")


def test_a_terminal_is_added_to(visitor: Visitor, wire: Wire) -> None:
    wire.tell("flyout", flyout_type="terminal", content="$ make test", language=None, title=None)
    wire.tell("flyout", flyout_type="terminal", content="4 passed\n", language=None, title=None)
    wire.tell("flyout", flyout_type="terminal", content="$ exit", language=None, title=None)
    terminal = panel_of(visitor, "Terminal").get_by_role("log")
    expect(terminal).to_have_text("$ make test\n4 passed\n$ exit")
    expect(visitor.find("complementary")).to_have_count(1)


def test_a_page_is_shown_in_a_sandbox(visitor: Visitor, wire: Wire) -> None:
    wire.tell("flyout", flyout_type="browser", content=f"{wire.url}framed", language=None, title="A page")
    panel = panel_of(visitor, "A page")
    frame = panel.locator("iframe")
    expect(frame.content_frame.get_by_text(FRAMED)).to_be_visible()
    assert "allow-same-origin" not in (frame.get_attribute("sandbox") or "allow-same-origin")
    assert visitor.evaluate("() => window.xss") is None
    # The framed page has a script, which tried to reach its parent.
    assert any("Blocked a frame" in fault for fault in visitor.faults)
    visitor.forgive("Blocked a frame")


def test_a_page_that_refuses_to_be_framed_can_be_opened_by_a_link(visitor: Visitor, wire: Wire) -> None:
    address = f"{wire.url}unframed"
    wire.tell("flyout", flyout_type="browser", content=address, language=None, title="A page")
    panel = panel_of(visitor, "A page")
    expect(panel).to_contain_text(
        "If this stays empty, the site does not allow embedding. Open it in a new tab instead."
    )
    link = panel.get_by_role("link")
    expect(link).to_have_attribute("href", address)
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(panel.locator("iframe").content_frame.get_by_text("Alone or not at all")).to_have_count(0)
    visitor.page.wait_for_timeout(200)
    visitor.forgive("Refused to display", "Framing", "chrome-error:")


@pytest.mark.parametrize("address", ["javascript:window.xss=1", "data:text/html,<p>hello", "file:///etc/passwd", "no"])
def test_an_address_that_is_no_page_is_not_framed(visitor: Visitor, wire: Wire, address: str) -> None:
    wire.tell("flyout", flyout_type="browser", content=address, language=None, title="A page")
    expect(panel_of(visitor, "A page")).to_contain_text("This address cannot be shown")
    expect(visitor.page.locator("iframe")).to_have_count(0)
    expect(panel_of(visitor, "A page").get_by_role("link")).to_have_count(0)


def test_a_panel_is_closed_by_key_and_opened_again_from_the_thread(visitor: Visitor, wire: Wire) -> None:
    wire.tell("flyout", flyout_type="code", content=CODE, language="python", title="greet.py")
    expect(panel_of(visitor, "greet.py")).to_be_visible()
    visitor.page.keyboard.press("Escape")
    expect(panel_of(visitor, "greet.py")).to_have_count(0)
    visitor.thread.get_by_role("button", name="greet.py").click()
    expect(panel_of(visitor, "greet.py")).to_be_visible()
    visitor.click("Close panel")
    expect(panel_of(visitor, "greet.py")).to_have_count(0)


def test_of_several_panels_one_is_chosen(visitor: Visitor, wire: Wire) -> None:
    wire.tell("flyout", flyout_type="code", content="one", language=None, title="first.txt")
    wire.tell("flyout", flyout_type="code", content="two", language=None, title="second.txt")
    expect(panel_of(visitor, "second.txt").get_by_role("code")).to_have_text("two")
    visitor.find("combobox", "Panel").select_option("first.txt")
    expect(panel_of(visitor, "first.txt").get_by_role("code")).to_have_text("one")


def test_a_panel_is_made_wider_by_key_and_by_hand(visitor: Visitor, wire: Wire) -> None:
    wire.tell("flyout", flyout_type="code", content=CODE, language="python", title="greet.py")
    panel = panel_of(visitor, "greet.py")
    divider = visitor.find("separator", "Panel width")
    before = width_of(panel)
    divider.press("ArrowLeft")
    expect(divider).to_have_attribute("aria-valuenow", "46")
    after_key = width_of(panel)
    assert after_key > before
    box = divider.bounding_box()
    assert box is not None
    visitor.page.mouse.move(box["x"] + box["width"] / 2, 300)
    visitor.page.mouse.down()
    visitor.page.mouse.move(box["x"] - 100, 300)
    visitor.page.mouse.up()
    assert width_of(panel) > after_key + 50


def width_of(panel: Locator) -> float:
    box = panel.bounding_box()
    assert box is not None
    return box["width"]


@pytest.mark.parametrize("width", [1280, 390])
def test_a_panel_can_be_used_while_notices_pass_by(invite: Invite, wire: Wire, width: int) -> None:
    visitor = invite(viewport={"width": width, "height": 844}, permissions=["clipboard-write"]).open()
    wire.wait_for_page()
    for number in range(4):
        wire.tell("notice", kind="error", text=f"Notice {number}", code=None, duration_ms=60_000)
    wire.tell("flyout", flyout_type="code", content="one", language=None, title="first.txt")
    wire.tell("flyout", flyout_type="code", content=CODE, language="python", title="greet.py")
    expect(visitor.toasts.first).to_be_in_viewport(ratio=1)
    panel = panel_of(visitor, "greet.py")
    panel.get_by_role("button", name="Copy all").click(timeout=2000)
    expect(panel.get_by_role("button", name="Copied")).to_be_visible()
    panel.get_by_role("combobox", name="Panel").click(timeout=2000)
    visitor.page.keyboard.press("Escape")
    visitor.find("button", "Close panel").click(timeout=2000)
    expect(visitor.find("complementary")).to_have_count(0)
    visitor.page.get_by_text("Download").click(timeout=2000)
    visitor.find("button", "Settings", exact=True).click(timeout=2000)
    expect(visitor.find("dialog", "Settings")).to_be_visible()
    assert visitor.toasts.count() == 4


@pytest.mark.parametrize("width", [1280, 390])
def test_the_buttons_of_a_panel_do_not_move_when_a_notice_comes(invite: Invite, wire: Wire, width: int) -> None:
    visitor = invite(viewport={"width": width, "height": 844}).open()
    wire.wait_for_page()
    wire.tell("flyout", flyout_type="code", content=CODE, language="python", title="greet.py")
    close = visitor.find("button", "Close panel")
    before = close.bounding_box()
    wire.tell("notice", kind="info", text="Passing by", code=None, duration_ms=60_000)
    expect(visitor.toasts).to_be_in_viewport(ratio=1)
    assert close.bounding_box() == before


def test_a_panel_is_a_half_sheet_on_a_phone_and_covers_no_control_of_a_call(invite: Invite, wire: Wire) -> None:
    visitor = invite(viewport=PHONE, has_touch=True, is_mobile=True, permissions=["microphone"]).open()
    wire.wait_for_page()
    visitor.talk_button.click()
    wire.wait_for("start_voice")
    wire.tell_all(*exchange("Show me how to greet", "Here it is."))
    wire.tell("flyout", flyout_type="code", content=CODE, language="python", title="greet.py")
    panel = panel_of(visitor, "greet.py")
    box = panel.bounding_box()
    assert box is not None
    assert box["width"] == PHONE["width"]
    assert 0.3 < box["height"] / PHONE["height"] < 0.6
    expect(visitor.answers.last).to_be_in_viewport(ratio=1)
    expect(visitor.composer).to_be_in_viewport(ratio=1)
    visitor.find("button", "Mute").click(timeout=2000)
    visitor.sees("Microphone", "Mic muted")
    visitor.find("button", "End call").click(timeout=2000)
    wire.wait_for("end_voice")
    visitor.click("Close panel")
    expect(panel).to_have_count(0)


@pytest.mark.parametrize(
    "name",
    ["Conversations and calls", "Knowledge base", "Settings", "Models, latency and notices", "Keyboard shortcuts"],
)
def test_a_call_can_be_muted_and_ended_while_a_sheet_is_open(invite: Invite, wire: Wire, name: str) -> None:
    visitor = invite(viewport=PHONE, has_touch=True, is_mobile=True, permissions=["microphone"]).open()
    wire.wait_for_page()
    visitor.talk_button.click()
    wire.wait_for("start_voice")
    sheet = visitor.open_sheet(name)
    sheet.get_by_role("button", name="Mute").click(timeout=2000)
    visitor.sees("Microphone", "Mic muted")
    sheet.get_by_role("button", name="End call").click(timeout=2000)
    wire.wait_for("end_voice")
    expect(sheet.get_by_role("button", name="End call")).to_have_count(0)
    expect(sheet).to_be_visible()

"""Everything can be done with keys alone."""

import pytest
from playwright.sync_api import expect

from tests.browser.scenes import exchange, question
from tests.browser.scripted import Wire
from tests.browser.visitor import Visitor

FOCUS = """() => {
    const element = document.activeElement;
    return element === document.body ? "" : element.getAttribute("aria-label") ?? element.textContent.trim();
}"""


def walk(visitor: Visitor, key: str = "Tab", *, most: int = 30) -> list[str]:
    """What the key leads to, until it leads out of the page or round."""
    names: list[str] = []
    for _ in range(most):
        visitor.page.keyboard.press(key)
        name = str(visitor.evaluate(FOCUS))
        if name == "" or name in names:
            break
        names.append(name)
    return names


def test_tab_leads_through_the_first_screen_in_the_order_of_reading(visitor: Visitor) -> None:
    panels = [
        "Conversations and calls",
        "Knowledge base",
        "Models, latency and notices",
        "Settings",
        "Keyboard shortcuts",
    ]
    names = walk(visitor)
    assert names[:5] == panels
    assert names[5].startswith("Start a hands-free call")
    assert names[6] == "Set a timer for five minutes"
    assert names[10] == "Message"


def test_tab_leads_to_everything_in_a_busy_thread(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(*exchange("Write a greeting", "```python\nprint(1)\n```\n\n[more](https://example.org/)"))
    wire.tell("tool_call", id="t1", name="get_time", args={})
    wire.tell("flyout", flyout_type="code", content="x", language=None, title="x.txt")
    expect(visitor.find("complementary")).to_be_visible()
    names = walk(visitor)
    for wanted in ("Conversation", "Copy code", "more", "Message", "Panel width", "Close panel"):
        assert wanted in names


def test_the_focus_can_be_seen(visitor: Visitor) -> None:
    visible = """() => {
        const style = getComputedStyle(document.activeElement);
        const around = getComputedStyle(document.activeElement.closest("form") ?? document.activeElement);
        const rings = [style, around].filter((each) => each.outlineStyle !== "none" || each.boxShadow !== "none");
        return rings.length > 0;
    }"""
    for _ in range(6):
        visitor.page.keyboard.press("Tab")
        assert visitor.evaluate(visible), f"no ring around {visitor.evaluate(FOCUS)}"


def test_space_held_is_push_to_talk(visitor: Visitor, wire: Wire) -> None:
    visitor.page.keyboard.down("Space")
    wire.wait_for("start_listening")
    visitor.sees("Microphone", "Mic on")
    wire.wait_until(lambda: len(wire.sound) > 5, "no sound came")
    visitor.page.keyboard.up("Space")
    wire.wait_for("stop_listening")


def test_space_is_a_space_in_a_message(visitor: Visitor, wire: Wire) -> None:
    visitor.composer.press("a")
    visitor.composer.press("Space")
    visitor.composer.press("b")
    expect(visitor.composer).to_have_value("a b")
    assert wire.said("start_listening") == []


def test_a_window_that_loses_the_focus_stops_listening(visitor: Visitor, wire: Wire) -> None:
    visitor.page.keyboard.down("Space")
    wire.wait_for("start_listening")
    visitor.evaluate("() => window.dispatchEvent(new Event('blur'))")
    wire.wait_for("stop_listening")
    visitor.page.keyboard.up("Space")


def test_slash_leads_to_the_message(visitor: Visitor) -> None:
    visitor.page.keyboard.press("/")
    expect(visitor.composer).to_be_focused()
    expect(visitor.composer).to_have_value("")
    visitor.page.keyboard.type("and/or")
    expect(visitor.composer).to_have_value("and/or")


def test_a_question_mark_shows_the_keys(visitor: Visitor) -> None:
    visitor.page.keyboard.press("?")
    sheet = visitor.find("dialog", "Keyboard shortcuts")
    for key in ("Hold Space", "Escape", "/", "?", "M"):
        expect(sheet.get_by_text(key, exact=True)).to_be_visible()
    visitor.page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)


@pytest.mark.parametrize("state", ["processing", "speaking"])
def test_escape_stops_an_answer(visitor: Visitor, wire: Wire, state: str) -> None:
    wire.tell("state", state=state)
    visitor.sees("Assistant", "Thinking" if state == "processing" else "Speaking")
    visitor.page.keyboard.press("Escape")
    wire.wait_for("interrupt")


def test_escape_in_a_message_stops_an_answer_too(visitor: Visitor, wire: Wire) -> None:
    wire.tell("state", state="processing")
    visitor.sees("Assistant", "Thinking")
    visitor.composer.press("Escape")
    wire.wait_for("interrupt")


def test_escape_stops_nothing_where_there_is_nothing_to_stop(visitor: Visitor, wire: Wire) -> None:
    visitor.page.keyboard.press("Escape")
    visitor.write("on")
    wire.wait_for("text_message")
    assert wire.said("interrupt") == []


def test_m_mutes_the_microphone_and_pauses_nothing(visitor: Visitor, wire: Wire) -> None:
    visitor.talk_button.click()
    visitor.sees("Microphone", "Mic on")
    wire.wait_until(lambda: len(wire.sound) > 5, "no sound came")
    visitor.page.keyboard.press("m")
    visitor.sees("Microphone", "Mic muted")
    before = len(wire.sound)
    visitor.page.wait_for_timeout(300)
    assert len(wire.sound) - before <= 2
    assert wire.said("interrupt") == wire.said("end_voice") == wire.said("stop_listening") == []
    visitor.page.keyboard.press("m")
    visitor.sees("Microphone", "Mic on")


def test_keys_of_the_page_rest_while_a_dialog_is_open(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(question())
    expect(visitor.find("alertdialog")).to_be_visible()
    visitor.page.keyboard.press("?")
    visitor.page.keyboard.press("/")
    expect(visitor.find("dialog", "Keyboard shortcuts")).to_have_count(0)
    expect(visitor.composer).not_to_be_focused()


def test_a_closed_panel_gives_the_focus_back(visitor: Visitor) -> None:
    button = visitor.find("button", "Settings")
    button.focus()
    visitor.page.keyboard.press("Enter")
    expect(visitor.find("dialog", "Settings")).to_be_visible()
    visitor.page.keyboard.press("Escape")
    expect(button).to_be_focused()


def test_a_long_message_has_lines(visitor: Visitor, wire: Wire) -> None:
    visitor.composer.press("a")
    visitor.composer.press("Shift+Enter")
    visitor.composer.press("b")
    visitor.composer.press("Enter")
    assert wire.wait_for("text_message")["text"] == "a\nb"
    expect(visitor.composer).to_be_focused()

"""What the page weighs, and that it stays calm."""

import gzip
import re
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import ViewportSize, expect

from antiphon.server.page import STATIC, read_files
from tests.browser.chromium import Chromium
from tests.browser.conftest import Invite
from tests.browser.real import record
from tests.browser.scenes import FORECAST, SENTENCE, exchange, tone, tool_use
from tests.browser.scripted import Wire
from tests.browser.visitor import Visitor

MAX_PAGE_BYTES: Final = 60 * 1024
"""Of all its files together, as they are compressed."""
MAX_ADMIN_BYTES: Final = 26 * 1024
"""The limit for the operator's page. It includes the files that both pages load."""
MAX_SHIFT: Final = 0.01
IDLE_S: Final = 3
MAX_IDLE_SHARE: Final = 0.05
"""Of one core. Threads that play, hear and draw are counted too."""
RESULT: Final = {"sources": [{"title": "The weather office", "url": "https://weather.example/"}]}
CHUNKS: Final = 100
WATCH_SHIFTS: Final = """() => {
    window.shifts = [];
    const note = (entries) => window.shifts.push(...entries.map((entry) => entry.value));
    const observer = new PerformanceObserver((list) => note(list.getEntries()));
    observer.observe({ type: "layout-shift", buffered: false });
    window.noteShifts = () => note(observer.takeRecords());
}"""
SHIFT: Final = """() => new Promise((tell) => requestAnimationFrame(() => setTimeout(() => {
    window.noteShifts();
    tell(window.shifts.reduce((sum, shift) => sum + shift, 0));
})))"""
"""How far things jumped since then, once all that has come is drawn."""
COUNT_FRAMES: Final = """() => {
    window.frames_drawn = 0;
    const ask = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (draw) => ask((now) => { window.frames_drawn += 1; draw(now); });
}"""


def weigh(prefixes: tuple[str, ...], *, others: bool = False) -> dict[str, int]:
    """The compressed sizes of the files whose names begin like this, or of all others. No page loads declarations."""
    files = {name: file.body for name, file in read_files(STATIC).items() if not name.endswith(".d.ts")}
    return {
        name: len(gzip.compress(body, 9)) for name, body in files.items() if name.startswith(prefixes) is not others
    }


def test_the_page_is_light() -> None:
    weights = weigh(("admin.",), others=True)
    assert sum(weights.values()) <= MAX_PAGE_BYTES, weights


def test_the_operators_page_is_light() -> None:
    weights = weigh(("admin.", "base."))
    assert len(weights) >= 5
    assert sum(weights.values()) <= MAX_ADMIN_BYTES, weights


def test_the_page_loads_nothing_from_elsewhere(visitor: Visitor, wire: Wire) -> None:
    loaded = visitor.evaluate("() => performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert len(loaded) >= 3
    assert all(name.startswith(wire.url) for name in loaded), loaded


def test_the_page_is_there_before_the_server_has_answered(invite: Invite, wire: Wire) -> None:
    wire.greets = False
    visitor = invite().open()
    expect(visitor.talk_button).to_be_visible()
    visitor.sees("Connection", "Connecting")
    visitor.write("Can I write already?")
    expect(visitor.said).to_have_text(["Can I write already?"])
    assert visitor.evaluate("() => performance.getEntriesByName('first-contentful-paint').length") == 1


def test_the_page_is_there_without_a_socket(invite: Invite, wire: Wire) -> None:
    wire.admits = False
    visitor = invite().open()
    expect(visitor.composer).to_be_enabled()
    visitor.sees("Connection", "Reconnecting")
    visitor.forgive("WebSocket connection to")


def test_nothing_jumps_while_an_answer_is_streamed(visitor: Visitor, wire: Wire) -> None:
    wire.tell("transcript", text="Tell me about trains", is_final=True)
    wire.tell("response_chunk", text="Well. ", is_first=True)
    expect(visitor.answers).to_have_count(1)
    visitor.evaluate(WATCH_SHIFTS)
    for _ in range(CHUNKS):
        wire.tell("response_chunk", text=SENTENCE, is_first=False)
    expect(visitor.answers).to_have_text(f"Well. {SENTENCE * CHUNKS}".strip())
    assert visitor.evaluate(SHIFT) < MAX_SHIFT


@pytest.mark.parametrize("turns", [1, 8])
@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 800}, {"width": 390, "height": 844}])
def test_nothing_jumps_while_tools_come_and_go(invite: Invite, wire: Wire, turns: int, viewport: ViewportSize) -> None:
    """In a thread that fits on the screen, and in one that is scrolled."""
    visitor = invite(viewport=viewport).open()
    wire.wait_for_page()
    wire.tell_all(*exchange("Good morning", SENTENCE))
    expect(visitor.answers).to_have_count(1)
    for turn in range(turns):
        visitor.evaluate(WATCH_SHIFTS)
        wire.tell("state", state="processing")
        wire.tell("transcript", text="What will the weekend be like?", is_final=True)
        wire.tell("response_chunk", text="Let me look. ", is_first=True)
        called, finished = tool_use("get_forecast", {"location": "Lisbon"}, RESULT, call_id=f"t{turn}")
        wire.tell_all(called)
        expect(visitor.tools.last).to_contain_text("Running")
        wire.tell_all(finished)
        expect(visitor.tools.last).to_contain_text("Done")
        for chunk in re.findall(r"\S+\s*", FORECAST):
            wire.tell("response_chunk", text=chunk, is_first=False)
        wire.tell("response", text=f"Let me look. {FORECAST}")
        wire.tell("state", state="idle")
        visitor.sees("Assistant", "Idle")
        expect(visitor.answers.last).to_contain_text("Shall I remind you")
        assert visitor.evaluate(SHIFT) < MAX_SHIFT


def test_only_the_bubble_of_what_is_being_said_grows_to_the_left(invite: Invite, wire: Wire) -> None:
    visitor = invite(viewport={"width": 390, "height": 844}).open()
    wire.wait_for_page()
    wire.tell_all(*exchange("Good morning", SENTENCE))
    expect(visitor.answers).to_have_count(1)
    visitor.evaluate(WATCH_SHIFTS)
    for words in ("What", "What will the", "What will the weekend", "What will the weekend be like?"):
        wire.tell("transcript", text=words, is_final=False)
        expect(visitor.said.last).to_have_text(words)
    wire.tell("transcript", text="What will the weekend be like?", is_final=True)
    assert visitor.evaluate(SHIFT) < 2 * MAX_SHIFT


def test_the_page_keeps_up_with_a_long_conversation(visitor: Visitor, wire: Wire) -> None:
    turns = [
        {"role": role, "content": SENTENCE * 3, "spoken": False, "at": None} for role in ("user", "assistant") * 250
    ]
    wire.tell("history", conversation_id="c1", turns=turns)
    expect(visitor.answers).to_have_count(250)
    wire.tell("response_chunk", text="Well. ", is_first=True)
    before = visitor.metric("ScriptDuration")
    for _ in range(CHUNKS):
        wire.tell("response_chunk", text=SENTENCE, is_first=False)
    expect(visitor.answers.last).to_have_text(f"Well. {SENTENCE * CHUNKS}".strip())
    assert visitor.metric("ScriptDuration") - before < 1.0


def test_an_idle_page_takes_hardly_any_time_of_the_processor(visitor: Visitor) -> None:
    visitor.sees("Connection", "Connected")
    visitor.page.wait_for_timeout(500)
    before = visitor.processor_seconds()
    visitor.page.wait_for_timeout(IDLE_S * 1000)
    assert (visitor.processor_seconds() - before) / IDLE_S < MAX_IDLE_SHARE


def test_nothing_is_drawn_while_nobody_speaks_in_a_call(chromium: Chromium, wire: Wire, tmp_path: Path) -> None:
    browser = chromium.launch(microphone=record(tmp_path / "silence.wav", 1.0))
    visitor = Visitor(browser.new_context(permissions=["microphone"]), wire.url).open()
    wire.wait_for_page()
    visitor.talk_button.click()
    wire.wait_for("start_voice")
    wire.tell("state", state="listening")
    visitor.sees("Assistant", "Listening")
    wire.wait_until(lambda: len(wire.sound) >= 50, "no second of sound came")
    visitor.evaluate(COUNT_FRAMES)
    visitor.page.wait_for_timeout(1000)
    assert visitor.evaluate("() => window.frames_drawn") == 0
    assert visitor.running_animations() == []
    wire.tell("state", state="speaking")
    wire.speak(1, 0, tone(2000))
    visitor.sees_sound()
    assert visitor.evaluate("() => window.frames_drawn") > 0
    assert visitor.faults == []
    browser.close()

"""What the page weighs, and that it stays calm."""

import gzip
from typing import Final

from playwright.sync_api import expect

from antiphon.server.page import STATIC, read_files
from tests.browser.conftest import Invite
from tests.browser.scenes import SENTENCE
from tests.browser.scripted import Wire
from tests.browser.visitor import Visitor

MAX_PAGE_BYTES: Final = 60 * 1024
"""Of all its files together, as they are compressed."""
MAX_SHIFT: Final = 0.01
CHUNKS: Final = 100
WATCH_SHIFTS: Final = """() => {
    window.shift = 0;
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.shift += entry.value;
    }).observe({ type: "layout-shift", buffered: false });
}"""


def test_the_page_is_light() -> None:
    weights = {name: len(gzip.compress(file.body, 9)) for name, file in read_files(STATIC).items()}
    assert sum(weights.values()) <= MAX_PAGE_BYTES, weights


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
    assert visitor.evaluate("() => window.shift") < MAX_SHIFT


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
    before = visitor.metric("TaskDuration")
    visitor.page.wait_for_timeout(2000)
    assert (visitor.metric("TaskDuration") - before) / 2 < 0.05

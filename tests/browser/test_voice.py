"""A spoken conversation: the real server and the real engines, heard and answered through the browser."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.chromium import Chromium
from tests.browser.real import RealServer, record
from tests.browser.visitor import KEPT, Visitor

QUESTION: Final = "what time is it in Tokyo?"
LONG_QUESTION: Final = "What can you do?"
"""Its answer takes eight seconds and more."""
WATCH: Final = """
    window.statuses = [];
    new MutationObserver(() => {
        for (const bubble of document.querySelectorAll(".bubble")) {
            const status = bubble.dataset.status;
            if (window.statuses.at(-1) !== status) window.statuses.push(status);
        }
    }).observe(document, { subtree: true, childList: true, attributes: true });
"""
WATCH_STATES: Final = """() => {
    window.seen = [];
    const words = (element) => element.lastChild.textContent;
    new MutationObserver(() => window.seen.push({
        told: [...document.querySelectorAll(".banner, .toast")].map((element) => element.textContent),
        states: [...document.querySelectorAll(".state")].map(words),
    })).observe(document, { subtree: true, childList: true, characterData: true });
}"""
"""Keeps what the page says of its states, and what it tells above the thread, whenever something changes."""
MARK_WORDS: Final = 3
"""The page knows how much was played, and not which words stand where in it: it goes by their letters."""
CUT: Final = "WebSocket connection to"
"""What the browser itself writes of a server that is gone."""

BACK: Final = "Back. The conversation goes on. You can be heard again."

Caller = Callable[[Path], Visitor]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[RealServer]:
    server = RealServer(tmp_path_factory.mktemp("real"), models_dir)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def visit(chromium: Chromium, server: RealServer) -> Iterator[Caller]:
    """Gives a function that opens the page, for somebody who says this file. There is no greeting."""
    browsers: list[Browser] = []
    visitors: list[Visitor] = []

    def visit(microphone: Path) -> Visitor:
        browsers.append(chromium.launch(microphone=microphone))
        visitor = Visitor(browsers[-1].new_context(permissions=["microphone"]), server.url)
        visitors.append(visitor)
        visitor.context.add_init_script(WATCH)
        kept = json.dumps(json.dumps({"greeting": False}))
        visitor.context.add_init_script(f"localStorage.setItem('{KEPT}', {kept})")
        visitor.open()
        visitor.sees("Connection", "Connected")
        return visitor

    yield visit
    faults = [fault for visitor in visitors for fault in visitor.faults]
    for browser in browsers:
        browser.close()
    assert not faults, f"the page had errors: {faults}"


@pytest.fixture
def call(visit: Caller) -> Caller:
    """Gives a function that begins a call in which this file is said."""

    def call(microphone: Path) -> Visitor:
        visitor = visit(microphone)
        visitor.talk_button.click()
        visitor.sees("Microphone", "Mic on")
        return visitor

    return call


def rows_of_latency(visitor: Visitor) -> list[str]:
    sheet = visitor.open_sheet("Models, latency and notices")
    return sheet.get_by_role("table").get_by_role("row").all_inner_texts()


def test_a_spoken_question_is_heard_and_answered_aloud(call: Caller, tmp_path: Path) -> None:
    visitor = call(record(tmp_path / "question.wav", 1.0, QUESTION, 1.0))
    visitor.sees("Assistant", "Listening")
    visitor.sees("Assistant", "Speaking", timeout_s=20)
    expect(visitor.said).to_have_text(["What time is it in Tokyo?"])
    assert visitor.evaluate("() => window.statuses") == ["interim", "final"]
    expect(visitor.tools).to_contain_text("Current time")
    expect(visitor.tools).to_contain_text("Done")
    expect(visitor.answers).to_contain_text("in Tokyo")
    # The server listens again once the page has told it that the last sample was played.
    visitor.sees("Assistant", "Listening", timeout_s=15)
    expect(visitor.page.get_by_text("Interrupted")).to_have_count(0)
    assert rows_of_latency(visitor)[-1].startswith("You stopped → it spoke")


def test_a_person_who_cuts_in_is_heard_and_answered(call: Caller, tmp_path: Path) -> None:
    visitor = call(record(tmp_path / "cut.wav", 1.0, LONG_QUESTION, 6.0, QUESTION, 1.0))
    visitor.sees("Assistant", "Speaking", timeout_s=20)
    expect(visitor.said).to_have_text([LONG_QUESTION])
    expect(visitor.page.get_by_text("Interrupted")).to_be_visible(timeout=20_000)
    assert visitor.page.locator(".unheard").first.inner_text() != ""
    expect(visitor.said).to_have_text([LONG_QUESTION, "What time is it in Tokyo?"], timeout=20_000)
    expect(visitor.answers).to_have_count(2)
    expect(visitor.answers.last).to_contain_text("in Tokyo")
    visitor.sees("Assistant", "Listening", timeout_s=15)


def test_the_mark_is_where_the_server_says_that_the_person_stopped_hearing(call: Caller, tmp_path: Path) -> None:
    visitor = call(record(tmp_path / "silence.wav", 1.0))
    visitor.write(LONG_QUESTION)
    visitor.sees("Assistant", "Speaking", timeout_s=20)
    visitor.page.wait_for_timeout(3000)
    visitor.page.keyboard.press("Escape")
    expect(visitor.page.get_by_text("Interrupted")).to_be_visible()
    whole = visitor.answers.inner_text().split()
    unheard = visitor.page.locator(".unheard").all_inner_texts()
    marked = len(whole) - len(" ".join(unheard).split())
    assert 0 < marked < len(whole)
    # After a reload, only what was heard is left: the server has kept no more.
    visitor.page.reload()
    expect(visitor.page.locator(".unheard")).to_have_count(0)
    heard = visitor.answers.inner_text().split()
    assert whole[: len(heard)] == heard
    assert abs(marked - len(heard)) <= MARK_WORDS, (whole[:marked], heard)


def test_an_answer_to_push_to_talk_that_is_stopped_leaves_nobody_listening(visit: Caller, tmp_path: Path) -> None:
    visitor = visit(record(tmp_path / "pressed.wav", 0.5, LONG_QUESTION, 1.0))
    states: list[str] = []
    visitor.page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: note_state(states, frame)))
    visitor.page.reload()
    visitor.sees("Connection", "Connected")
    visitor.page.keyboard.down("Space")
    expect(visitor.said).to_have_text([LONG_QUESTION], timeout=10_000)
    visitor.page.keyboard.up("Space")
    visitor.sees("Assistant", "Speaking", timeout_s=20)
    visitor.page.keyboard.press("Escape")
    visitor.sees("Assistant", "Idle")
    # The microphone is open for the next press: it is the server that has stopped listening.
    visitor.sees("Microphone", "Mic on")
    assert states[-3:] == ["interrupted", "listening", "idle"]


def note_state(states: list[str], frame: str | bytes) -> None:
    if isinstance(frame, str) and (told := json.loads(frame))["type"] == "state":
        states.append(told["state"])


def test_an_answer_survives_a_server_that_dies_while_it_speaks(
    call: Caller, server: RealServer, tmp_path: Path
) -> None:
    visitor = call(record(tmp_path / "silence.wav", 1.0))
    visitor.write(LONG_QUESTION)
    visitor.sees("Assistant", "Speaking", timeout_s=20)
    expect(visitor.answers).to_have_count(1)
    server.kill()
    visitor.sees("Connection", "Reconnecting")
    server.start()
    visitor.sees("Connection", "Connected", timeout_s=40)
    expect(visitor.banners).to_have_text([BACK])
    visitor.sees("Assistant", "Listening", timeout_s=30)
    expect(visitor.said).to_have_text([LONG_QUESTION])
    expect(visitor.answers).to_have_count(1)
    expect(visitor.answers).to_contain_text("For example, say")
    visitor.write("fifteen percent of 80")
    expect(visitor.answers.last).to_contain_text("12", timeout=15_000)
    expect(visitor.answers).to_have_count(2)
    visitor.forgive(CUT, "ERR_CONNECTION")


def test_a_restart_of_the_server_during_a_call_is_told_in_one_place(
    call: Caller, server: RealServer, tmp_path: Path
) -> None:
    visitor = call(record(tmp_path / "silence.wav", 1.0))
    visitor.write("fifteen percent of 90")
    expect(visitor.answers).to_contain_text("13.5", timeout=15_000)
    visitor.sees("Assistant", "Listening", timeout_s=15)
    visitor.evaluate(WATCH_STATES)
    server.restart()
    visitor.sees("Connection", "Connected", timeout_s=40)
    visitor.sees("Assistant", "Listening")
    seen = visitor.evaluate("() => window.seen")
    assert all(len(each["told"]) <= 1 for each in seen)
    lines = [told for each in seen for told in each["told"]]
    # One line, whose words change: what comes again is only the countdown to the next attempt.
    steps = [line.split(" You can't be heard now")[0] for line in lines]
    assert list(dict.fromkeys(steps)) == ["The server is restarting.", "Reconnecting…", BACK]
    assert steps == sorted(steps, key=list(dict.fromkeys(steps)).index)
    gone = [each["states"] for each in seen if each["states"][0] == "Reconnecting…"]
    assert gone
    assert {(microphone, assistant) for _, microphone, assistant in gone} == {("Mic paused", "Call on hold")}
    visitor.write("fifteen percent of 80")
    expect(visitor.answers.last).to_contain_text("12", timeout=15_000)
    visitor.forgive(CUT, "ERR_CONNECTION")


def test_a_model_that_starts_anew_during_a_call_knows_what_was_said(call: Caller, tmp_path: Path) -> None:
    visitor = call(record(tmp_path / "silence.wav", 1.0))
    visitor.write("fifteen percent of 40")
    expect(visitor.answers).to_contain_text("6", timeout=15_000)
    visitor.sees("Assistant", "Listening", timeout_s=15)
    sheet = visitor.open_sheet("Models, latency and notices")
    expect(sheet.locator(".meter-row").first).to_contain_text("Voice3 of 3")
    sheet.get_by_role("button", name="New session, same context").click()
    expect(sheet).to_have_count(0)
    expect(visitor.banners).to_have_text(["The model was started anew, and knows the conversation."])
    visitor.sees("Assistant", "Listening")
    visitor.write("fifteen percent of 80")
    expect(visitor.answers.last).to_contain_text("12", timeout=15_000)
    expect(visitor.answers).to_have_count(2)


def test_a_quality_that_the_operator_lowers_is_shown_during_the_call(
    call: Caller, server: RealServer, tmp_path: Path
) -> None:
    visitor = call(record(tmp_path / "silence.wav", 1.0))
    visitor.sees("Assistant", "Listening")

    def lower(level: int) -> None:
        answer = visitor.page.request.put(f"{server.url}api/energy", data={"mode": "voice", "level": level})
        assert answer.ok, answer.text()

    lower(2)
    expect(visitor.page.locator(".energy")).to_have_text("Model quality: 2 of 3, set by the operator")
    visitor.write("fifteen percent of 20")
    expect(visitor.answers.last).to_contain_text("3", timeout=15_000)
    lower(0)
    expect(visitor.banners).to_have_text([re.compile("^No model (can answer by voice right|answers by voice) now")])
    expect(visitor.toasts).to_have_count(0)
    visitor.sees("Microphone", "Mic off")


def test_a_conversation_that_goes_on_from_a_call_survives_a_server_that_dies(
    call: Caller, server: RealServer, tmp_path: Path
) -> None:
    visitor = call(record(tmp_path / "silence.wav", 1.0))
    visitor.write("fifteen percent of 60")
    expect(visitor.answers).to_contain_text("9", timeout=15_000)
    visitor.click("End call")
    visitor.sees("Microphone", "Mic off")
    newest = visitor.open_sheet("Conversations and calls").locator(".call").first
    expect(newest).to_contain_text("fifteen percent of 60", timeout=15_000)
    newest.get_by_role("button", name="Continue from here").click()
    expect(visitor.answers).to_contain_text("Summary of our earlier call: ")
    expect(visitor.answers).to_contain_text("fifteen percent of 60")
    server.kill()
    visitor.sees("Connection", "Reconnecting")
    server.start()
    visitor.sees("Connection", "Connected", timeout_s=40)
    expect(visitor.banners).to_have_text(["This is a new session; the conversation was kept."])
    expect(visitor.answers).to_have_count(1)
    expect(visitor.answers).to_contain_text("fifteen percent of 60")
    visitor.write("fifteen percent of 80")
    expect(visitor.answers.last).to_contain_text("12", timeout=15_000)
    visitor.forgive(CUT, "ERR_CONNECTION")


def test_a_typed_conversation_is_there_after_a_reload_and_in_the_list(browser: Browser, server: RealServer) -> None:
    visitor = Visitor(browser.new_context(), server.url).open()
    # Nobody else asks this: the list has the calls of other tests too.
    visitor.write("fifteen percent of 70")
    expect(visitor.answers).to_contain_text("10.5")
    visitor.page.reload()
    expect(visitor.said).to_have_text(["fifteen percent of 70"])
    expect(visitor.answers).to_contain_text("10.5")
    listed = visitor.open_sheet("Conversations and calls").get_by_role("listitem")
    expect(listed.filter(has_text="fifteen percent of 70")).to_have_attribute("aria-current", "true")
    assert visitor.faults == []
    visitor.context.close()


def test_a_voice_can_be_tried(browser: Browser, server: RealServer) -> None:
    visitor = Visitor(browser.new_context(), server.url).open()
    visitor.open_sheet("Settings").get_by_role("button", name="Play sample").click()
    visitor.sees_sound()
    assert visitor.faults == []
    visitor.context.close()

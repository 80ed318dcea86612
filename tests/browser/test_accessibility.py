"""The page can be used by everybody: rules that a program can check, in every theme, and those of size and motion."""

import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any, Final

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Invite
from tests.browser.scenes import DIALOGUE, SENTENCE, question, wait_for_approval
from tests.browser.scripted import Wire
from tests.browser.visitor import THEMES, Visitor

AXE: Final = (files("axe_playwright_python") / "axe.min.js").read_text()
GRAVE: Final = ("serious", "critical")
PANELS: Final = (
    "Conversations and calls",
    "Knowledge base",
    "Models, latency and notices",
    "Settings",
    "Keyboard shortcuts",
)


def show_nothing(visitor: Visitor, wire: Wire) -> None:
    """The first screen."""


def show_thread(visitor: Visitor, wire: Wire) -> None:
    """A thread with everything in it."""
    wire.tell_all(*DIALOGUE)
    wire.tell("transcript", text="and what about", is_final=False)
    for kind in ("info", "success", "warning", "error"):
        wire.tell("notice", kind=kind, text=f"A notice of the kind {kind}", code=None, duration_ms=60_000)
    wire.tell("error", message="The model cannot be reached.", code="model_failed", retryable=True)
    wire.tell("reminder", id="r1", message="Pack the umbrella", due=0, kind="reminder", missed=False)
    wire.tell("reminder", id="r2", message="Wake up", due=0, kind="alarm", missed=True)
    sources = [{"id": "r1", "title": "Guest wifi", "url": None}, {"id": "w", "title": "Web", "url": "https://e.org/"}]
    wire.tell("response", text="It is in the notes.", citations=sources)
    wire.tell("image", url="/images/picture.png", caption="A single dot")
    expect(visitor.find("img", "A single dot")).to_be_visible()


def show_waiting(visitor: Visitor, wire: Wire) -> None:
    """A question that failed, calls that were not approved and are running, a message that waits, and a recording."""
    wire.tell("transcript", text="How far is the moon?", is_final=True)
    wire.tell("error", message="The model cannot be reached.", code="model_failed", retryable=True)
    for token, outcome in (("no", "denied"), ("late", "expired"), ("yes", "approved")):
        wire.tell_all(*wait_for_approval(token, token))
        wire.tell("confirmation_resolved", confirmation_token=token, outcome=outcome)
    wire.tell("state", state="processing")
    wire.tell("recording", choice="always", active=True)
    wire.tell("queued", messages=[{"id": "q1", "text": "And the sun?"}])
    expect(visitor.find("button", "Unsend")).to_be_visible()
    expect(visitor.find("button", "Try again")).to_be_visible()
    expect(visitor.find("alertdialog")).to_have_count(0)


def show_settings(visitor: Visitor, wire: Wire) -> None:
    visitor.open_sheet("Settings")


def show_records(visitor: Visitor, wire: Wire) -> None:
    """Records with a hit that is marked."""
    sheet = visitor.open_sheet("Knowledge base")
    sheet.get_by_role("searchbox").fill("password")
    expect(sheet.locator("mark")).to_be_visible()


def show_record(visitor: Visitor, wire: Wire) -> None:
    sheet = visitor.open_sheet("Knowledge base")
    sheet.get_by_role("button", name="Boiler manual").click()
    expect(sheet.get_by_role("link")).to_be_visible()


def show_form(visitor: Visitor, wire: Wire) -> None:
    """A new record that is not complete."""
    sheet = visitor.open_sheet("Knowledge base")
    sheet.get_by_role("button", name="Add").click()
    sheet.get_by_role("button", name="Add record").click()
    expect(sheet.get_by_role("alert").filter(has_text="needs a title")).to_be_visible()


def show_picture(visitor: Visitor, wire: Wire) -> None:
    wire.tell("image", url="/images/picture.png", caption="A single dot")
    visitor.find("button", "Show in full size: A single dot").click()
    expect(visitor.find("dialog", "A single dot")).to_be_visible()


SCENES: Final[dict[str, Callable[[Visitor, Wire], None]]] = {
    "first screen": show_nothing,
    "busy thread": show_thread,
    "waiting thread": show_waiting,
    "settings": show_settings,
    "records": show_records,
    "new record": show_form,
}
MORE_SCENES: Final[dict[str, Callable[[Visitor, Wire], None]]] = {"record": show_record, "picture": show_picture}
"""With parts that the other scenes have too, so that one theme is enough."""


ANIMATED: Final = """() => Promise.all(
  document.getAnimations().filter((each) => each.effect.getComputedTiming().endTime !== Infinity)
    .map((each) => each.finished.catch(() => null)))"""
"""Returns when everything that moves has come to rest, but for what never does."""


def find_faults(visitor: Visitor) -> list[str]:
    """What breaks a rule gravely, and where."""
    # What fades in has too little contrast until it is there.
    visitor.evaluate(ANIMATED)
    found: Mapping[str, Any] = visitor.evaluate(
        "(options) => axe.run(document, options)", {"resultTypes": ["violations"]}
    )
    return [
        f"{violation['id']}: {json.dumps([node['html'][:160] for node in violation['nodes']])}"
        for violation in found["violations"]
        if violation["impact"] in GRAVE
    ]


@pytest.mark.parametrize("scene", SCENES)
def test_no_theme_breaks_a_rule_gravely(invite: Invite, wire: Wire, scene: str) -> None:
    visitor = invite(reduced_motion="reduce").open()
    wire.wait_for_page()
    SCENES[scene](visitor, wire)
    visitor.evaluate(AXE)
    faults = {}
    for theme in THEMES:
        visitor.evaluate("(theme) => { document.documentElement.dataset.theme = theme }", theme)
        if found := find_faults(visitor):
            faults[theme] = found
    assert faults == {}


@pytest.mark.parametrize("scene", MORE_SCENES)
def test_no_scene_breaks_a_rule_gravely(visitor: Visitor, wire: Wire, scene: str) -> None:
    MORE_SCENES[scene](visitor, wire)
    visitor.evaluate(AXE)
    assert find_faults(visitor) == []


@pytest.mark.parametrize("panel", PANELS)
def test_no_panel_breaks_a_rule_gravely(visitor: Visitor, wire: Wire, panel: str) -> None:
    wire.tell("turn_metrics", turn=1, end_of_turn_ms=300, stt_ms=1, first_token_ms=1, first_audio_ms=1, total_ms=480)
    visitor.open_sheet(panel)
    visitor.evaluate(AXE)
    assert find_faults(visitor) == []


def test_a_question_breaks_no_rule_gravely(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(question())
    expect(visitor.find("alertdialog")).to_be_visible()
    visitor.evaluate(AXE)
    assert find_faults(visitor) == []


@pytest.mark.parametrize("kind", ["code", "terminal"])
def test_no_flyout_breaks_a_rule_gravely(visitor: Visitor, wire: Wire, kind: str) -> None:
    wire.tell("flyout", flyout_type=kind, content=SENTENCE * 30, language=None, title="Beside it")
    expect(visitor.find("complementary")).to_be_visible()
    visitor.evaluate(AXE)
    assert find_faults(visitor) == []


def test_what_is_said_is_a_log_and_the_states_are_one_status(visitor: Visitor, wire: Wire) -> None:
    wire.tell("response", text="Good morning.")
    expect(visitor.find("log")).to_have_count(1)
    expect(visitor.find("status", "Status")).to_have_count(1)
    expect(visitor.find("status", "Status")).to_contain_text("Connected")
    expect(visitor.find("status", "Status")).to_contain_text("Idle")


@pytest.mark.parametrize("scene", [*SCENES, *MORE_SCENES])
def test_what_is_touched_is_large_enough(invite: Invite, wire: Wire, scene: str) -> None:
    visitor = invite(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).open()
    wire.wait_for_page()
    (SCENES | MORE_SCENES)[scene](visitor, wire)
    small = """() => [...document.querySelectorAll("button, select, summary, textarea, input, a.button")]
        .map((element) => element.matches("[type=radio], [type=checkbox]") ? element.closest("label") : element)
        .filter((element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest("[inert]"))
        .map((element) => [element.getAttribute("aria-label") ?? element.textContent, element.getBoundingClientRect()])
        .filter(([, box]) => box.width < 43.9 || box.height < 43.9)
        .map(([name, box]) => `${name}: ${box.width} x ${box.height}`)"""
    assert visitor.evaluate(small) == []

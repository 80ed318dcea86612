"""Pictures of the page in every theme, on a desk and on a phone, and of the operator's page:
`python -m tests.browser.screenshots [FOLDER]`.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, expect

from tests.browser import operator
from tests.browser.chromium import Chromium
from tests.browser.scenes import DIALOGUE
from tests.browser.scripted import ScriptedServer, Wire, serve_scripted
from tests.browser.visitor import KEPT, THEMES, Visitor
from tests.wire.served import UNLIMITED, serve

FOLDER: Final = Path(__file__).parents[2] / "docs" / "images"
FORMS: Final[dict[str, dict[str, Any]]] = {
    "desktop": {"viewport": {"width": 1280, "height": 800}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}
SETTLED_MS: Final = 500
"""How long it takes until everything has faded in."""
ADMIN: Final = {
    "admin-timeline": (f"#/conversations/{operator.TRAINS}", "desktop", "midnight"),
    "admin-audit": ("#/audit", "desktop", "babyblue"),
    "admin-phone": (f"#/conversations/{operator.TRAINS}", "phone", "midnight"),
}
"""The view, the form and the theme of each picture of the operator's page."""
GOING_ON: Final = "Yes, at nine in the morning, and tell me"


def begin_call(visitor: Visitor, wire: Wire) -> None:
    visitor.talk_button.click()
    wire.wait_for("start_voice")
    wire.tell_all(*DIALOGUE, {"type": "state", "state": "listening"})
    wire.tell("transcript", text=GOING_ON, is_final=False)
    expect(visitor.said.last).to_have_text(GOING_ON)
    visitor.sees("Assistant", "Listening")


def take_picture(browser: Browser, server: ScriptedServer, theme: str, form: str, *, of_a_call: bool = True) -> bytes:
    wire = server.begin()
    visitor = Visitor(browser.new_context(permissions=["microphone"], **FORMS[form]), wire.url)
    visitor.context.add_init_script(f"localStorage.setItem('{KEPT}', '{json.dumps({'theme': theme})}')")
    visitor.open()
    wire.wait_for_page()
    visitor.sees("Connection", "Connected")
    if of_a_call:
        begin_call(visitor, wire)
    visitor.page.wait_for_timeout(SETTLED_MS)
    picture = visitor.page.screenshot()
    visitor.context.close()
    return picture


def hear_turn(visitor: Visitor) -> None:
    """Plays the recording of the call from a turn on, and pauses it."""
    visitor.find("button", "Play from 0:09").click()
    visitor.find("button", "Pause", exact=True).click()


def take_admin_pictures(browser: Browser, folder: Path) -> int:
    """Takes pictures of the operator's page on a real server, and returns how many."""
    with tempfile.TemporaryDirectory() as made:
        token = operator.fill(Path(made))
        with serve(Path(made), limits=UNLIMITED) as served:
            for name, (place, form, theme) in ADMIN.items():
                visitor = Visitor(browser.new_context(**FORMS[form]), served.http)
                visitor.context.add_init_script(f"localStorage.setItem('{KEPT}', '{json.dumps({'theme': theme})}')")
                visitor.open(f"/admin{place}")
                visitor.page.get_by_label("Admin token").fill(token)
                visitor.page.keyboard.press("Enter")
                expect(visitor.find("heading", level=1)).to_be_visible()
                expect(visitor.page.get_by_text("Loading…")).to_have_count(0)
                expect(visitor.page.get_by_text("Signed in as")).to_be_visible()
                if form == "desktop" and operator.TRAINS in place:
                    hear_turn(visitor)
                visitor.page.wait_for_timeout(SETTLED_MS)
                (folder / f"{name}.png").write_bytes(visitor.page.screenshot())
                visitor.context.close()
    return len(ADMIN)


def main(folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    chromium = Chromium()
    with serve_scripted() as server, chromium.while_used():
        browser = chromium.launch()
        for form in FORMS:
            (folder / f"first-{form}.png").write_bytes(take_picture(browser, server, THEMES[0], form, of_a_call=False))
            for theme in THEMES:
                (folder / f"{theme}-{form}.png").write_bytes(take_picture(browser, server, theme, form))
        admin = take_admin_pictures(browser, folder)
        browser.close()
    chromium.stop()
    print(f"{len(FORMS) * (len(THEMES) + 1) + admin} pictures are in {folder}.")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))

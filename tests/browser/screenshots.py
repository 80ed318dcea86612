"""Pictures of the page in every theme, on a desk and on a phone: `python -m tests.browser.screenshots`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, expect

from tests.browser.chromium import Chromium
from tests.browser.scenes import exchange, tool_use
from tests.browser.scripted import Message, ScriptedServer, serve_scripted
from tests.browser.visitor import THEMES, Visitor

FOLDER: Final = Path(__file__).parents[2] / "docs" / "images"
FORMS: Final[dict[str, dict[str, Any]]] = {
    "desktop": {"viewport": {"width": 1280, "height": 800}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}
FORECAST_ANSWER: Final = (
    "**Saturday** is dry and mild, up to 21 °C. On *Sunday* showers are likely after four, so the morning is the better "
    "half.\n\n| Day | High | Rain |\n|---|---|---|\n| Saturday | 21 °C | 10 % |\n| Sunday | 18 °C | 60 % |\n\n"
    "Shall I remind you of the umbrella on Sunday?"
)
CODE_ANSWER: Final = (
    "Here is one, with a function around it:\n\n```python\nDATE = re.compile(r\"\\d{4}-\\d{2}-\\d{2}\")\n\n\n"
    "def find_dates(text: str) -> list[str]:\n    return DATE.findall(text)\n```"
)
DIALOGUE: Final[Sequence[Message]] = (
    *exchange("Write me a regular expression for dates", CODE_ANSWER),
    {"type": "state", "state": "processing"},
    {"type": "transcript", "text": "What will the weekend in Lisbon be like?", "is_final": True},
    *tool_use(
        "get_forecast",
        {"location": "Lisbon", "days": 2},
        {"sources": [{"title": "Instituto Português do Mar e da Atmosfera", "url": "https://www.ipma.pt/"}]},
    ),
)
FORECAST: Final[Message] = {"type": "response", "text": FORECAST_ANSWER}


def picture(browser: Browser, server: ScriptedServer, theme: str, form: str) -> bytes:
    wire = server.begin()
    visitor = Visitor(browser.new_context(reduced_motion="reduce", permissions=["microphone"], **FORMS[form]), wire.url)
    visitor.context.add_init_script(f"localStorage.setItem('antiphon.settings', '{{\"theme\": \"{theme}\"}}')")
    visitor.open()
    wire.wait_for_page()
    wire.tell_all(*DIALOGUE, FORECAST, {"type": "state", "state": "listening"})
    expect(visitor.answers.last).to_contain_text("Shall I remind you")
    visitor.page.wait_for_timeout(300)
    shot = visitor.page.screenshot()
    visitor.context.close()
    return shot


def main(folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    chromium = Chromium()
    with serve_scripted() as server, chromium.while_used():
        browser = chromium.launch()
        for theme in THEMES:
            for form in FORMS:
                (folder / f"{theme}-{form}.png").write_bytes(picture(browser, server, theme, form))
                print(f"{theme}-{form}.png")
        browser.close()
    chromium.stop()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

"""A person at the page: what they see, and what they do."""

from typing import Any, Final

from playwright.sync_api import BrowserContext, CDPSession, ConsoleMessage, Locator, Page, expect

STATES: Final = ("Connection", "Microphone", "Assistant")
KEPT: Final = "antiphon.settings"
"""The key under which the browser stores the person's settings."""
THEMES: Final = (
    "midnight",
    "redroom",
    "pink",
    "babyblue",
    "teal",
    "emerald",
    "sunset",
    "cyberpunk",
    "ocean",
    "rose",
)

AUDIBLE: Final = 0.1
"""The level of the talk button while there is something to hear."""


class Visitor:
    """Records the errors of the page, so that no test overlooks them."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.page: Page = context.new_page()
        self.url = url
        self.faults: list[str] = []
        self._tools: CDPSession | None = None
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._read_console)

    def _read_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.faults.append(f"{message.text} ({message.location.get('url')})")

    def forgive(self, *parts: str) -> None:
        """Forgets errors that the browser itself reports because of what the test does."""
        self.faults = [fault for fault in self.faults if not any(part in fault for part in parts)]

    def open(self, path: str = "") -> "Visitor":
        self.page.goto(self.url + path)
        return self

    def find(self, role: Any, name: str | None = None, **options: Any) -> Locator:
        return self.page.get_by_role(role, name=name, **options)

    def click(self, name: str) -> None:
        self.find("button", name, exact=True).click()

    def write(self, text: str) -> None:
        self.composer.fill(text)
        self.composer.press("Enter")

    @property
    def composer(self) -> Locator:
        return self.find("textbox", "Message")

    @property
    def talk_button(self) -> Locator:
        return self.page.locator("button.talk")

    @property
    def thread(self) -> Locator:
        return self.page.get_by_role("log").first

    @property
    def said(self) -> Locator:
        """The bubbles with what the person has said."""
        return self.page.locator(".bubble-text")

    @property
    def answers(self) -> Locator:
        return self.page.locator(".answer .markdown")

    @property
    def tools(self) -> Locator:
        return self.page.locator(".tool")

    @property
    def banners(self) -> Locator:
        return self.page.locator(".banner")

    @property
    def toasts(self) -> Locator:
        return self.page.get_by_role("status", name="Notices").locator(".toast")

    def state(self, name: str) -> Locator:
        """One of the three states, as text."""
        return self.page.get_by_role("status", name="Status").locator(f".state:nth-child({STATES.index(name) + 1})")

    def sees(self, name: str, text: str, *, timeout_s: float = 10) -> None:
        expect(self.state(name)).to_contain_text(text, timeout=timeout_s * 1000)

    def sees_sound(self, *, timeout_s: float = 10) -> None:
        """Waits until the talk button moves. Every frame is looked at, since a sound may be short."""
        script = """([audible, deadline_ms]) => new Promise((resolve) => {
            const began = performance.now();
            let highest = 0;
            function look() {
                const orb = document.querySelector('.orb');
                highest = Math.max(highest, Number(orb?.style.getPropertyValue('--level') ?? 0));
                const isOver = highest >= audible || performance.now() - began > deadline_ms;
                isOver ? resolve(highest) : requestAnimationFrame(look);
            }
            look();
        })"""
        highest = self.evaluate(script, [AUDIBLE, timeout_s * 1000])
        assert highest >= AUDIBLE, f"the talk button rose to {highest} only"

    def open_sheet(self, name: str) -> Locator:
        """One of the panels behind the buttons at the top."""
        self.click(name)
        sheet = self.find("dialog", name)
        expect(sheet).to_be_visible()
        return sheet

    def evaluate(self, script: str, argument: Any = None) -> Any:
        return self.page.evaluate(script, argument)

    def running_animations(self) -> list[str]:
        """The animations that run for longer than an eye would notice."""
        script = """() => document.getAnimations()
            .filter((each) => each.playState === 'running' && each.effect.getComputedTiming().activeDuration > 50)
            .map((each) => each.animationName ?? each.transitionProperty)"""
        return list(self.evaluate(script))

    def metric(self, name: str) -> float:
        """One of the browser's own metrics of the page, such as the seconds that its tasks have taken."""
        self.instruct("Performance.enable")
        found = self.instruct("Performance.getMetrics")["metrics"]
        return next(float(each["value"]) for each in found if each["name"] == name)

    def processor_seconds(self) -> float:
        """The processor time that pages have used so far, for scripts, sound and drawing."""
        assert self.context.browser is not None
        tools = self.context.browser.new_browser_cdp_session()
        found = tools.send("SystemInfo.getProcessInfo")["processInfo"]
        tools.detach()
        return sum(float(each["cpuTime"]) for each in found if each["type"] in ("renderer", "GPU"))

    def instruct(self, method: str, **parameters: Any) -> Any:
        """Sends a command of the developer tools protocol."""
        if self._tools is None:
            self._tools = self.context.new_cdp_session(self.page)
        return self._tools.send(method, parameters)

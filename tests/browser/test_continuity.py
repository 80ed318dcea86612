"""What the person sees of models that change, are limited or start anew: the line, the meters and the warning."""

from typing import Any, Final

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Invite
from tests.browser.scripted import Wire
from tests.browser.visitor import THEMES, Visitor

STATUS: Final = "Models, latency and notices"
RENEW: Final = "New session, same context"
RENEW_PATH: Final = "/api/sessions/s1/renew"


def lower(wire: Wire, level: int, **changed: Any) -> None:
    """A rate limit has lowered the quality of the voice."""
    told = {
        "mode": "voice",
        "max": 3,
        "previous": 3,
        "reason": "rate-limit-exceeded",
        "model": "standard-voice" if level else None,
        "resumable": True,
        "requires_fallback": False,
        "again_in_s": 40.0,
    }
    wire.tell("energy", **(told | {"level": level} | changed))


def notify(wire: Wire, code: str, text: str, kind: str = "info") -> None:
    wire.tell("notice", kind=kind, text=text, code=code, duration_ms=None)


def begin_call(visitor: Visitor, wire: Wire) -> None:
    visitor.talk_button.click()
    wire.wait_for("start_voice")
    wire.tell("state", state="listening")
    visitor.sees("Assistant", "Listening")


@pytest.fixture
def timed(invite: Invite, wire: Wire) -> Visitor:
    """A visitor whose clock the test moves."""
    visitor = invite(permissions=["microphone"])
    visitor.page.clock.install()
    visitor.open()
    wire.wait_for_page()
    return visitor


def pass_time(visitor: Visitor, seconds: int) -> None:
    """Moves the page's clock in steps: the server must have time to answer the page's pings."""
    for _ in range(seconds):
        visitor.page.clock.run_for(1000)
        visitor.page.wait_for_timeout(10)


def warning(visitor: Visitor) -> Locator:
    return visitor.page.locator(".energy")


def test_a_limited_model_is_shown_beside_the_talk_button_with_the_time_until_it_is_back(
    timed: Visitor, wire: Wire
) -> None:
    begin_call(timed, wire)
    expect(warning(timed)).to_have_count(0)
    lower(wire, 2)
    expect(warning(timed)).to_have_text("Model quality: 2 of 3, rate-limited, back in 40 s")
    pass_time(timed, 15)
    expect(warning(timed)).to_have_text("Model quality: 2 of 3, rate-limited, back in 25 s")
    pass_time(timed, 30)
    expect(warning(timed)).to_have_text("Model quality: 2 of 3, rate-limited, better again with your next call")
    lower(wire, 3, previous=2, reason="session-reset", model="best-voice", again_in_s=None)
    expect(warning(timed)).to_have_count(0)


def test_the_countdown_of_a_limited_model_is_not_read_out(visitor: Visitor, wire: Wire) -> None:
    begin_call(visitor, wire)
    lower(wire, 2)
    timer = warning(visitor).get_by_role("timer")
    expect(timer).to_have_attribute("aria-live", "off")
    expect(timer).to_contain_text("back in")


def test_a_limited_voice_does_not_concern_those_who_type_once_it_has_recovered(timed: Visitor, wire: Wire) -> None:
    lower(wire, 2)
    expect(warning(timed)).to_have_text("Voice quality: 2 of 3, rate-limited, back in 40 s")
    pass_time(timed, 41)
    expect(warning(timed)).to_have_count(0)


def test_the_warning_leads_to_the_meters(visitor: Visitor, wire: Wire) -> None:
    begin_call(visitor, wire)
    lower(wire, 2)
    warning(visitor).click()
    sheet = visitor.find("dialog", STATUS)
    meter = sheet.get_by_role("meter", name="Voice model quality")
    expect(meter).to_have_attribute("aria-valuenow", "2")
    expect(meter).to_have_attribute("aria-valuemax", "3")
    expect(meter).to_have_attribute("aria-valuetext", "2 of 3, rate-limited, standard-voice")
    expect(sheet).to_contain_text("2 of 3, rate-limited, back in")


def test_the_models_in_use_are_named(visitor: Visitor, wire: Wire) -> None:
    sheet = visitor.open_sheet(STATUS)
    rows = sheet.locator(".meter-row")
    expect(rows).to_have_text(["Voice3 of 3best-voice", "Text2 of 2best-text"])
    lower(wire, 1, model="another-voice", again_in_s=None)
    expect(rows.first).to_have_text("Voice1 of 3, rate-limitedanother-voice")


def test_a_mode_without_any_model_says_so_and_when_to_try_again(timed: Visitor, wire: Wire) -> None:
    begin_call(timed, wire)
    lower(wire, 0)
    notify(wire, "energy_exhausted", "All models are limited. Try again in 40 s.", "warning")
    timed.sees("Microphone", "Mic off")
    expect(timed.find("button", "End call")).to_have_count(0)
    sentence = "No model can answer by voice right now. Try again in"
    expect(timed.banners).to_have_text([f"{sentence} 40 s."])
    pass_time(timed, 2)
    expect(timed.banners).to_have_text([f"{sentence} 38 s."])
    expect(warning(timed)).to_have_count(0)
    pass_time(timed, 12)
    expect(timed.banners).to_have_count(0)
    expect(warning(timed)).to_have_text(f"{sentence} 26 s.")
    pass_time(timed, 28)
    expect(warning(timed)).to_have_count(0)
    sheet = timed.open_sheet(STATUS)
    expect(sheet.get_by_role("meter", name="Voice model quality")).to_have_attribute("aria-valuenow", "0")


def test_the_steps_of_one_change_of_models_are_one_line(timed: Visitor, wire: Wire) -> None:
    begin_call(timed, wire)
    steps = [
        ("reconnecting", "Reconnecting to the model.", "info"),
        ("could_not_resume", "Could not resume, continuing in a new session.", "warning"),
        ("model_switched", "Rate limited, switching to standard-voice.", "warning"),
        ("reconnected", "The model is back.", "success"),
    ]
    for code, text, kind in steps:
        notify(wire, code, text, kind)
        notify(wire, code, text, kind)
        expect(timed.banners).to_have_text([text])
    expect(timed.toasts).to_have_count(0)
    pass_time(timed, 5)
    expect(timed.banners).to_have_count(0)
    rows = timed.open_sheet(STATUS).locator(".notice-row > span")
    expect(rows).to_have_text([text for _, text, _ in reversed(steps)])


def test_a_model_that_stays_away_is_told_until_it_is_back(timed: Visitor, wire: Wire) -> None:
    notify(wire, "reconnecting", "Reconnecting to the model.")
    pass_time(timed, 30)
    expect(timed.banners).to_have_text(["Reconnecting to the model."])
    notify(wire, "reconnected", "The model is back.", "success")
    expect(timed.banners).to_have_text(["The model is back."])


def test_the_line_is_read_out_as_a_status(visitor: Visitor, wire: Wire) -> None:
    notify(wire, "local_model", "The provider cannot be reached. The local model answers.")
    line = visitor.find("status", "Connection and model")
    expect(line).to_have_text("The provider cannot be reached. The local model answers.")


def test_a_model_is_started_anew_on_request(visitor: Visitor, wire: Wire) -> None:
    sheet = visitor.open_sheet(STATUS)
    expect(sheet).to_contain_text("The conversation is kept.")
    sheet.get_by_role("button", name=RENEW).click()
    wire.wait_until(lambda: wire.posted == [RENEW_PATH], "nothing was posted")
    expect(sheet).to_have_count(0)
    notify(wire, "new_upstream", "New session with the model, same conversation.", "success")
    expect(visitor.banners).to_have_text(["New session with the model, same conversation."])


def test_a_model_that_cannot_be_started_anew_says_why(visitor: Visitor, wire: Wire) -> None:
    wire.refusals[RENEW_PATH] = "This session has ended. Reload the page."
    sheet = visitor.open_sheet(STATUS)
    sheet.get_by_role("button", name=RENEW).click()
    expect(sheet.get_by_role("alert")).to_have_text("This session has ended. Reload the page.")
    expect(sheet.get_by_role("button", name=RENEW)).to_be_enabled()
    visitor.forgive("409")


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_line_and_the_warning_fit_on_every_screen(invite: Invite, wire: Wire, width: int) -> None:
    visitor = invite(viewport={"width": width, "height": 700}, permissions=["microphone"]).open()
    wire.wait_for_page()
    begin_call(visitor, wire)
    lower(wire, 0)
    wire.tell("go_away", time_left_ms=9000, reason="The server is restarting.", resume="later")
    wire.admits = False
    wire.close(1012)
    expect(visitor.find("button", "Try now", exact=True)).to_be_in_viewport(ratio=1)
    expect(warning(visitor)).to_be_in_viewport(ratio=1)
    expect(visitor.composer).to_be_in_viewport(ratio=1)
    assert visitor.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    visitor.forgive("WebSocket connection to")


def test_the_talk_button_is_still_while_nobody_is_heard(visitor: Visitor, wire: Wire) -> None:
    begin_call(visitor, wire)
    # The browser's microphone beeps once a second.
    visitor.sees_sound()
    wire.admits = False
    wire.close(1011)
    visitor.sees("Microphone", "Mic paused")
    # The last beep fades.
    visitor.page.wait_for_timeout(1000)
    still = """() => new Promise((resolve) => {
        const began = performance.now();
        let highest = 0;
        function look() {
            highest = Math.max(highest, Number(document.querySelector('.orb').style.getPropertyValue('--level')));
            performance.now() - began > 1500 ? resolve(highest) : requestAnimationFrame(look);
        }
        look();
    })"""
    assert visitor.evaluate(still) < 0.01
    assert visitor.running_animations() == []
    visitor.forgive("WebSocket connection to")


def test_a_server_that_does_not_answer_is_not_said_to_hear(visitor: Visitor, wire: Wire) -> None:
    begin_call(visitor, wire)
    wire.answers_pings = False
    visitor.sees("Microphone", "Mic paused")
    visitor.sees("Connection", "No answer")
    expect(visitor.page.get_by_text("Mic paused, the server does not answer").first).to_be_visible()
    expect(visitor.banners).to_have_count(0)
    wire.answers_pings = True
    wire.tell("state", state="listening")
    visitor.sees("Microphone", "Mic on")
    visitor.sees("Connection", "Connected")


@pytest.mark.parametrize("theme", THEMES)
def test_the_warning_can_be_read_in_every_theme(visitor: Visitor, wire: Wire, theme: str) -> None:
    begin_call(visitor, wire)
    lower(wire, 0)
    expect(visitor.page.locator(".energy").first).to_be_visible()
    visitor.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
    contrast = """() => {
        const parse = (color) => color.match(/[\\d.]+/g).slice(0, 3).map((part) => {
            const share = part / 255;
            return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        const light = (color) => { const [r, g, b] = parse(color); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const text = light(getComputedStyle(document.querySelector('.energy')).color);
        const ground = light(getComputedStyle(document.documentElement).backgroundColor);
        return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
    }"""
    assert visitor.evaluate(contrast) >= 4.5

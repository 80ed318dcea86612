"""Fixtures of the page's tests: each worker has one Chromium and one scripted server, each test its own connection."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.chromium import Chromium
from tests.browser.scripted import PATIENCE_S, ScriptedServer, Wire, serve_scripted
from tests.browser.visitor import Visitor

Invite = Callable[..., Visitor]
"""Makes a visitor whose browser context has these properties. It has not opened the page yet."""

expect.set_options(timeout=PATIENCE_S * 1000)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    started = Chromium()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def scripted_server() -> Iterator[ScriptedServer]:
    with serve_scripted() as server:
        yield server


@pytest.fixture(autouse=True)
def no_task_left_behind(chromium: Chromium) -> Iterator[None]:
    """Overrides the rule for all tests: these use Playwright's event loop instead of their own."""
    with chromium.while_used():
        yield


@pytest.fixture(scope="session")
def browser(chromium: Chromium) -> Iterator[Browser]:
    with chromium.while_used():
        browser = chromium.launch()
    yield browser
    with chromium.while_used():
        browser.close()


@pytest.fixture
def wire(scripted_server: ScriptedServer) -> Wire:
    return scripted_server.begin()


@pytest.fixture
def invite(browser: Browser, wire: Wire) -> Iterator[Invite]:
    visitors: list[Visitor] = []

    def invite(url: str | None = None, **properties: Any) -> Visitor:
        visitors.append(Visitor(browser.new_context(**properties), url or wire.url))
        return visitors[-1]

    yield invite
    faults = [fault for visitor in visitors for fault in visitor.faults]
    for visitor in visitors:
        visitor.context.close()
    assert not faults, f"the page had errors: {faults}"


@pytest.fixture
def visitor(invite: Invite, wire: Wire) -> Visitor:
    """A visitor who has opened the page and is connected."""
    visitor = invite(permissions=["microphone"]).open()
    wire.wait_for_page()
    return visitor

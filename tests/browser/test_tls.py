"""A page from another machine: with `serve --self-signed`, the browser gives it the microphone."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Invite
from tests.browser.scripted import FOREIGN_NAME
from tests.deploy.proxies import free_port
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.real_time

OPEN_MICROPHONE = "navigator.mediaDevices.getUserMedia({ audio: true }).then(stream => stream.active)"


def test_with_a_certificate_of_its_own_the_page_has_a_microphone_and_a_conversation(
    invite: Invite, tmp_path: Path
) -> None:
    port = free_port()
    # The name leads to this machine, but the browser takes it for another one.
    origin = f"https://{FOREIGN_NAME}:{port}"
    with Terminal(tmp_path).serve("--self-signed", "--port", str(port), ANTIPHON_SERVER__ORIGINS=origin):
        # The certificate is accepted, as by a person who has compared the fingerprint.
        visitor = invite(origin, ignore_https_errors=True, permissions=["microphone"]).open()
        assert visitor.evaluate("isSecureContext") is True
        assert visitor.evaluate(OPEN_MICROPHONE) is True
        visitor.write("What is fifteen percent of 80?")
        expect(visitor.answers.last).to_contain_text("12")

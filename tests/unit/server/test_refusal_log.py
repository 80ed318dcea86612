"""How many lines the refused make."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from antiphon.server.refusals import LINES, MAX_CHARS, RefusalLog
from tests.fakes.calls import LoopClock


def lines_of(log: RefusalLog, addresses: list[str], **more: Any) -> list[Any]:
    with capture_logs() as lines:
        for address in addresses:
            log.write("wrong token", address=address, route="/ws", **more)
    return lines


async def test_a_refusal_is_one_log_line() -> None:
    (line,) = lines_of(RefusalLog(LoopClock()), ["192.0.2.1"], origin="https://evil.example")
    assert line == {
        "logger_name": "antiphon.server.refusals",
        "event": "request_refused",
        "log_level": "warning",
        "reason": "wrong token",
        "address": "192.0.2.1",
        "route": "/ws",
        "origin": "https://evil.example",
    }


async def test_one_address_does_not_keep_another_out_of_the_log() -> None:
    assert LINES.address is not None
    log = RefusalLog(LoopClock())
    assert len(lines_of(log, ["192.0.2.1"] * 1_000)) == LINES.address.burst
    (line,) = lines_of(log, ["192.0.2.2"])
    assert line["lines_left_out"] == 1_000 - LINES.address.burst


async def test_many_addresses_together_cannot_fill_the_log() -> None:
    assert LINES.session is not None
    log = RefusalLog(LoopClock())
    assert len(lines_of(log, [f"192.0.2.{number}" for number in range(200)])) == LINES.session.burst


async def test_values_chosen_by_the_client_are_truncated() -> None:
    (line,) = lines_of(RefusalLog(LoopClock()), ["192.0.2.1"], host="x" * 10_000)
    assert line["host"] == "x" * MAX_CHARS


@pytest.mark.parametrize(
    ("path", "logged"),
    [
        ("/images/AbCdEf.png", "/images/…"),
        ("/images/\nAbCdEf.png", "/images/…"),
        ("/api/kb/person:ada_lovelace", "/api/kb/…"),
        ("/api/kb", "/api/kb"),
        ("/api/conversations", "/api/conversations"),
    ],
)
async def test_names_that_are_secret_or_somebodys_words_are_not_logged(path: str, logged: str) -> None:
    with capture_logs() as lines:
        RefusalLog(LoopClock()).write("wrong token", address=None, route=path)
    assert lines[0]["route"] == logged

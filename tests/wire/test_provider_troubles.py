"""A provider that refuses, or does not answer: one clear sentence to the client and a line in the log, the session goes
on in text, and `/ready` and the metrics tell of it."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.wire.caller import call
from tests.wire.served import Served, serve
from tests.wire.troubled_child import TROUBLE_FILE, VENDOR_FILE, Trouble, Vendor

pytestmark = pytest.mark.real_time

Start = Callable[[Vendor], tuple[Served, Path]]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts one server for each vendor, when it is first needed."""
    running: dict[Vendor, tuple[Served, Path]] = {}
    contexts = []

    def started(vendor: Vendor) -> tuple[Served, Path]:
        if vendor not in running:
            folder = tmp_path_factory.mktemp("troubled")
            (folder / VENDOR_FILE).write_text(vendor)
            context = serving(folder)
            running[vendor] = context.__enter__(), folder
            contexts.append(context)
        return running[vendor]

    yield started
    for context in contexts:
        context.__exit__(None, None, None)


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    with serve(folder, child="tests.wire.troubled_child") as served:
        yield served


@pytest.mark.parametrize(
    ("vendor", "trouble", "sentence", "kind"),
    [
        (Vendor.GEMINI, Trouble.WRONG_KEY, "gemini-live:m refused the API key. Check GEMINI_API_KEY.", "refused"),
        (Vendor.OPENAI, Trouble.WRONG_KEY, "openai-realtime:m refused the API key. Check OPENAI_API_KEY.", "refused"),
        (Vendor.GEMINI, Trouble.UNKNOWN_MODEL, "There is no model gemini-live:m at this server", "refused"),
        (Vendor.OPENAI, Trouble.UNKNOWN_MODEL, "openai-realtime:m was not found at http://", "refused"),
        (Vendor.GEMINI, Trouble.SILENCE, "gemini-live:m did not answer within 1 second", "timeout"),
        (Vendor.OPENAI, Trouble.SILENCE, "openai-realtime:m did not open a session in time", "timeout"),
        (Vendor.NO_KEY, Trouble.NONE, "gemini-live:m needs an API key. Set GEMINI_API_KEY.", "refused"),
        (Vendor.NOWHERE, Trouble.NONE, "openai-realtime:m cannot be reached", "unreachable"),
    ],
)
async def test_the_client_is_told_and_the_session_goes_on(
    start: Start, vendor: Vendor, trouble: Trouble, sentence: str, kind: str
) -> None:
    served, folder = start(vendor)
    (folder / TROUBLE_FILE).write_text(trouble)
    mark = len(served.log)
    async with call(served.url, {"mode": "text"}) as caller:
        await caller.send("start_voice")
        notice = await caller.until("notice", code="voice_unavailable")
        assert notice["text"].startswith(sentence)
        assert "\n" not in notice["text"]
        assert "secret-key" not in notice["text"]
        assert "5" in await caller.ask("what is 2 plus 3?")
    lines = [json.loads(line) for line in served.log[mark:].splitlines()]
    failed = [line for line in lines if line["event"] == "model_failed"]
    assert [line["kind"] for line in failed] == [kind]
    assert not [line for line in lines if "exception" in line]
    assert "secret-key" not in served.log
    await check_reports(served, kind)


@pytest.mark.parametrize("vendor", [Vendor.GEMINI, Vendor.OPENAI])
async def test_a_rate_limit_of_the_only_model_is_told_with_the_time_to_wait(tmp_path: Path, vendor: Vendor) -> None:
    (tmp_path / VENDOR_FILE).write_text(vendor)
    (tmp_path / TROUBLE_FILE).write_text(Trouble.QUOTA)
    with serving(tmp_path) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            await caller.send("start_voice")
            notice = await caller.until("notice")
            assert notice["code"] == "energy_exhausted"
            assert re.search(r"try again in \d+ s\.$", notice["text"])
            assert [energy["level"] for energy in caller.every("energy")] == [2, 1, 0]
            assert "5" in await caller.ask("what is 2 plus 3?")
        assert "secret-key" not in served.log
        await check_reports(served, "rate_limited")


async def check_reports(served: Served, kind: str) -> None:
    """Checks that `/ready` and the metrics tell of the failure."""
    async with httpx2.AsyncClient(base_url=served.http) as http:
        ready = await http.get("/ready")
        metrics = (await http.get("/metrics")).text
    assert ready.status_code == 200
    assert ready.json()["voice_model"]["last_failure"]["kind"] == kind
    assert f'antiphon_model_failures_total{{kind="{kind}",model="{ready.json()["voice_model"]["name"]}"}}' in metrics

"""Reminders over the socket of a real server, in real time."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.wire.caller import Caller, call
from tests.wire.served import UNLIMITED, Served, add_token, serve

pytestmark = pytest.mark.real_time

TEXT = {"mode": "text"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("served")
    tokens = {user: add_token(folder, user) for user in ("ann", "bob", "eve")}
    with serve(folder, voice=[], limits=UNLIMITED, server={"auth": "required"}) as served:
        yield served, tokens


async def rung_within(caller: Caller, seconds: float) -> list[dict[str, Any]]:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                await caller.hear()
    return caller.every("reminder")


async def test_a_typed_reminder_rings_on_every_page_of_its_user_and_only_there(
    served: tuple[Served, dict[str, str]],
) -> None:
    server, tokens = served
    ann, bob = ({**TEXT, "token": tokens[user]} for user in ("ann", "bob"))
    async with call(server.url, ann) as page, call(server.url, ann) as phone, call(server.url, bob) as other:
        answer = await page.ask("remind me to water my plants in 2 seconds")
        assert answer.strip() == "All right, I'll remind you in 2 seconds to water your plants."
        message = await page.until("reminder")
        assert (message["message"], message["kind"], message["missed"]) == ("Water your plants", "reminder", False)
        assert len(await rung_within(phone, 2.5)) == 1
        assert len(await rung_within(page, 0.1)) == 1
        assert await rung_within(other, 0.1) == []
        assert [each["text"].strip() for each in page.every("response")] == [answer.strip()], "in text, nothing is said"
    assert server.failures == []


async def test_a_call_hears_a_timer_and_the_page_is_told(served: tuple[Served, dict[str, str]]) -> None:
    server, tokens = served
    async with (
        call(server.url, {**TEXT, "token": tokens["eve"]}) as page,
        call(server.url, {"mode": "voice", "token": tokens["eve"]}) as phone,
    ):
        await phone.send("start_listening")
        await phone.until("state", state="listening")
        await page.ask("set a tea timer for 2 seconds")
        assert (await phone.until("reminder"))["message"] == "Tea timer"
        assert (await phone.until("response"))["text"].strip() == "Your tea timer is done."
        await page.until("reminder", kind="timer")
    assert server.failures == []


async def test_what_was_set_is_still_to_ring_after_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("restarted")
    with serve(folder) as first:
        async with call(first.url, TEXT) as caller:
            await caller.ask("remind me to call my mother in 3 seconds")
        first.stop()
    with serve(folder) as second:
        async with call(second.url, TEXT) as caller:
            assert (await caller.until("reminder"))["message"] == "Call your mother"
            assert len(await rung_within(caller, 1.5)) == 1
        lines = [json.loads(line) for line in second.log.splitlines()]
        assert [line["kind"] for line in lines if line["event"] == "reminder_rang"] == ["reminder"]
        assert "mother" not in second.log


async def test_a_time_that_makes_no_sense_is_explained_and_nothing_is_set(
    served: tuple[Served, dict[str, str]],
) -> None:
    server, tokens = served
    async with call(server.url, {**TEXT, "token": tokens["bob"]}) as caller:
        said = "remind me on february thirtieth to dance"
        assert (await caller.ask(said)).strip() == "There is no such time as february thirtieth."
        assert (await caller.ask("what reminders do i have")).strip() == "You have no reminders."

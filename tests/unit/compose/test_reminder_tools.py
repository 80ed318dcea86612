"""The tools for reminders through the gate, on the service that the application opens."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from antiphon.compose import App, open_app
from antiphon.config import Settings, Storage
from antiphon.services.reminders.service import MAX_PER_USER
from antiphon.tools.call import ToolCall
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult
from antiphon.tools.spec import Mode

pytestmark = pytest.mark.real_time


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with open_app(Settings(tmp_path, tmp_path, storage=Storage(url="memory"))) as app:
        yield app


async def run(app: App, tool: str, args: dict[str, Any], mode: Mode = Mode.TEXT) -> ToolResult:
    return await app.executor.execute(ToolCall(None, tool, args), app.session(mode=mode))


@pytest.mark.parametrize("mode", list(Mode))
async def test_all_of_them_work_in_text_and_voice(app: App, mode: Mode) -> None:
    for tool, args in (
        ("set_reminder", {"message": "call my mother", "time": "in one hour"}),
        ("set_timer", {"duration": "ten minutes", "label": "pasta"}),
        ("set_alarm", {"time": "seven", "repeat": "weekdays"}),
    ):
        result = await run(app, tool, args, mode)
        assert result.ok, result.error
    listed = await run(app, "list_reminders", {}, mode)
    repeats = {each["kind"]: each["repeat"] for each in listed.data["reminders"]}
    assert repeats == {"timer": None, "reminder": None, "alarm": "every weekday at 7 AM"}
    cancelled = await run(app, "cancel_reminder", {"reminder": "the pasta timer"}, mode)
    assert [each["message"] for each in cancelled.data["cancelled"]] == ["pasta"]
    snoozed = await run(app, "snooze_reminder", {}, mode)
    assert snoozed.error is not None
    assert snoozed.error.type is ErrorType.NOT_FOUND


MISFITS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("set_reminder", {"message": "x" * 501, "time": "in one hour"}),
    ("set_reminder", {"message": "tea"}),
    ("set_reminder", {"message": "tea", "time": "in one hour", "loud": True}),
    ("set_timer", {"duration": 10}),
    ("set_alarm", {}),
    ("list_reminders", {"kind": "meeting"}),
    ("cancel_reminder", {"reminder": " "}),
    ("snooze_reminder", {"duration": None}),
)


async def test_arguments_that_do_not_fit_are_refused(app: App) -> None:
    errors = [(await run(app, tool, args)).error for tool, args in MISFITS]
    assert [error and error.type for error in errors] == [ErrorType.VALIDATION] * len(MISFITS)
    assert await app.database.reminders.list("local") == []


async def test_what_rang_can_be_snoozed(app: App) -> None:
    await run(app, "set_reminder", {"message": "drink", "time": "in one hour"})
    store = app.database.reminders
    (record,) = await store.list("local")
    await store.ring(record, None, app.services.reminders.clock.now_ms())
    result = await run(app, "snooze_reminder", {"duration": "five minutes"})
    assert (result.data["message"], result.data["kind"]) == ("drink", "reminder")
    assert 290 <= result.data["remaining_s"] <= 300


async def test_there_is_a_limit_for_each_user(app: App) -> None:
    for _ in range(MAX_PER_USER):
        await run(app, "set_timer", {"duration": "one hour"})
    error = (await run(app, "set_timer", {"duration": "one hour"})).error
    assert error is not None
    assert error.type is ErrorType.CONFLICT
    assert len(await app.database.reminders.list("local")) == MAX_PER_USER

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from antiphon.compose.hooks import check_hooks, load_hooks
from antiphon.config import Hooks as HookSettings
from antiphon.config import Settings
from antiphon.session import effects as fx
from antiphon.session.hooks import (
    MAX_WAITING,
    HookError,
    HookQueue,
    Hooks,
    SessionEnded,
    SessionHooks,
    ToolCalled,
    TurnEnded,
)
from antiphon.storage.base import AuditLine
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode


def ended(session_id: str, turns: int = 0) -> SessionEnded:
    return SessionEnded(session_id=session_id, conversation_id="c", user="ann", turns=turns, at_ms=0)


def queue_of(hook: Any, **options: Any) -> HookQueue:
    return HookQueue([Hooks(session_ended=hook)], **options)


async def test_the_hooks_of_a_session_are_called_one_after_another() -> None:
    seen: list[tuple[str, int]] = []

    async def note(event: SessionEnded) -> None:
        await asyncio.sleep(1 / (1 + event.turns))
        seen.append((event.session_id, event.turns))

    queue = queue_of(note)
    for turns in range(4):
        queue.put(ended("a", turns))
    queue.put(ended("b", 9))
    await queue.aclose()
    assert [each for each in seen if each[0] == "a"] == [("a", 0), ("a", 1), ("a", 2), ("a", 3)]
    # Another session does not wait for them.
    assert seen[0] == ("b", 9)


async def test_a_hook_that_fails_or_hangs_is_logged_by_name_and_the_next_event_is_told() -> None:
    seen: list[int] = []

    async def stumble(event: SessionEnded) -> None:
        if event.turns == 0:
            raise ValueError("broken")
        if event.turns == 1:
            await asyncio.sleep(3600)
        if event.turns == 2:
            raise TimeoutError("of the hook's own")
        if event.turns == 3:
            raise asyncio.CancelledError
        seen.append(event.turns)

    queue = queue_of(stumble, timeout_s=5.0)
    with capture_logs() as logs:
        for turns in range(5):
            queue.put(ended("a", turns))
        await queue.aclose()
    assert seen == [4]
    assert [(each["event"], each["hook"]) for each in logs] == [
        ("hook_failed", "session_ended"),
        ("hook_timed_out", "session_ended"),
        ("hook_failed", "session_ended"),
        ("hook_failed", "session_ended"),
    ]
    assert all("stumble" in each["function"] for each in logs)


async def test_the_oldest_events_are_dropped_if_a_hook_is_too_slow() -> None:
    seen: list[int] = []

    async def note(event: SessionEnded) -> None:
        await asyncio.sleep(0)
        seen.append(event.turns)

    queue = queue_of(note)
    with capture_logs() as logs:
        for turns in range(MAX_WAITING + 3):
            queue.put(ended("a", turns))
        await queue.aclose()
    assert seen == list(range(3, MAX_WAITING + 3))
    assert [(each["event"], each["dropped"]) for each in logs] == [("hook_events_dropped", 3)]


async def test_the_end_of_the_process_waits_for_hooks_but_not_for_ever() -> None:
    async def hang(event: SessionEnded) -> None:
        await asyncio.sleep(3600)

    queue = queue_of(hang, timeout_s=3600)
    queue.put(ended("a"))
    queue.put(ended("a"))
    with capture_logs() as logs:
        await queue.aclose(10)
    assert [(each["event"], each["events_left"]) for each in logs] == [("hooks_cut_short", 1)]


async def test_calls_are_told_and_other_lines_of_the_audit_are_not() -> None:
    seen: list[ToolCalled] = []

    async def note(event: ToolCalled) -> None:
        seen.append(event)

    queue = HookQueue([Hooks(tool_called=note), Hooks(tool_called=note)])
    line = AuditLine(1, "s", "ann", "text", 3, "calculate", args={"expression": "1"}, outcome="timeout", duration_ms=2)
    queue.note_call(line)
    queue.note_call(AuditLine(1, "s", "ann", "text", 3, "calculate", outcome="event", event="note"))
    await queue.aclose()
    assert len(seen) == 2
    assert (seen[0].tool, seen[0].arguments, seen[0].outcome) == ("calculate", {"expression": "1"}, "timeout")


async def test_an_interrupted_turn_is_told_with_what_was_heard() -> None:
    seen: list[TurnEnded] = []

    async def note(event: TurnEnded) -> None:
        seen.append(event)

    queue = HookQueue([Hooks(turn_ended=note)])
    hooks = SessionHooks(queue, "s", "ann", lambda: 7)
    calls = (ToolCall("1", "calculate", {}), ToolCall("2", "calculate", {}))
    for effect in (
        fx.BeginTurn("t1", spoken=True),
        fx.StoreUser("t1", 1, "What is it?", spoken=True),
        fx.RunTools("t1", calls),
        fx.StoreAnswer("t1", 1, "It is a long answer.", is_whole=True),
        fx.StoreAnswer("t1", 1, "It is"),
        fx.InterruptModel("t1", "It is"),
    ):
        hooks.see(effect)
    hooks.end_turn(1, "c", Mode.VOICE, None)
    # Nothing was said or done since then.
    hooks.end_turn(2, "c", Mode.VOICE, None)
    hooks.end("c")
    await queue.aclose()
    [turn] = seen
    assert (turn.question, turn.answer, turn.interrupted) == ("What is it?", "It is", True)
    assert (turn.tools, turn.mode, turn.at_ms) == (("calculate", "calculate"), Mode.VOICE, 7)


def sync(event: Any) -> None: ...


async def without_event() -> None: ...


class Counter:
    async def __call__(self, event: Any) -> None: ...


def test_only_async_functions_of_one_event_are_hooks() -> None:
    assert Hooks(turn_ended=Counter()).turn_ended is not None
    with pytest.raises(HookError, match="The hook turn_ended is not an async function"):
        Hooks(turn_ended=sync)  # type: ignore[arg-type]
    with pytest.raises(HookError, match="The hook tool_called takes other parameters than one event"):
        Hooks(tool_called=without_event)  # type: ignore[arg-type]
    with pytest.raises(HookError, match="The hook session_started is a int"):
        Hooks(session_started=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("own_hooks_a:store", None),
        ("own_hooks_a:stoer", "has no stoer. Did you mean store?"),
        ("own_hooks_a:plain", "which is not an async function. Define it with `async def`."),
        ("own_hooks_a:NUMBER", "which is a int. It must be an async function of one event."),
        ("no_such_hooks:store", "but there is no module no_such_hooks. Put it into"),
    ],
)
def test_hooks_of_the_settings_are_found_or_explained(tmp_path: Path, reference: str, problem: str | None) -> None:
    (tmp_path / "own_hooks_a.py").write_text(
        "NUMBER = 3\ndef plain(event): ...\nasync def store(event): ...\n", encoding="utf-8"
    )
    settings = Settings(tmp_path, tmp_path, hooks=HookSettings(turn_ended=reference))
    if problem is None:
        assert check_hooks(settings) == []
        hooks = load_hooks(settings)
        assert hooks is not None
        assert hooks.turn_ended is not None
        return
    [error] = check_hooks(settings)
    assert str(error).startswith(f"hooks.turn_ended is {reference!r}, ")
    assert problem in str(error)
    with pytest.raises(HookError):
        load_hooks(settings)

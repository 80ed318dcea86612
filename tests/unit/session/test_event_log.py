"""Latencies and changes of the model are stored with their conversation, and nothing that was said is."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from antiphon.protocol import server_messages as s
from antiphon.session.event_log import FLUSH_AFTER_S, MAX_WAITING, EventLog, is_event
from antiphon.storage.base import StorageError
from antiphon.storage.events import SessionEvent
from tests.fakes.calls import LoopClock

METRICS = s.TurnMetrics(1, first_token_ms=120.0, total_ms=480.0)
SESSION: Any = SimpleNamespace(record=SimpleNamespace(id="s1", conversation_id="c1"))


class Store:
    def __init__(self) -> None:
        self.events: list[SessionEvent] = []
        self.is_down = False

    async def append(self, events: Sequence[SessionEvent]) -> None:
        if self.is_down:
            raise StorageError("The disk is full.")
        self.events += events

    async def list(self, conversation_id: str, limit: int, **window: Any) -> Sequence[SessionEvent]:
        return self.events


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
async def log(store: Store) -> AsyncIterator[EventLog]:
    log = EventLog(store, LoopClock())
    yield log
    await log.aclose()


async def test_an_event_is_stored_soon_without_what_is_unknown(log: EventLog, store: Store) -> None:
    log.observer(SESSION)(METRICS)
    assert store.events == []
    await asyncio.sleep(FLUSH_AFTER_S + 0.1)
    [event] = store.events
    assert (event.conversation_id, event.session_id, event.kind) == ("c1", "s1", "turn_metrics")
    assert event.data == {"turn": 1, "first_token_ms": 120.0, "total_ms": 480.0}


async def test_what_waits_is_stored_at_the_end(log: EventLog, store: Store) -> None:
    log.observer(SESSION)(METRICS)
    await log.aclose()
    assert len(store.events) == 1


async def test_events_wait_while_the_store_is_down_but_not_without_limit(log: EventLog, store: Store) -> None:
    store.is_down = True
    for _ in range(MAX_WAITING + 5):
        log.observer(SESSION)(METRICS)
    await log.flush()
    store.is_down = False
    await log.flush()
    assert len(store.events) == MAX_WAITING


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (METRICS, True),
        (s.Notice(s.NoticeKind.WARNING, "The model reconnects.", "reconnecting"), True),
        (s.Notice(s.NoticeKind.INFO, "Your tea is ready.", None), False),
        (s.Transcript("a secret", is_final=True), False),
        (s.Response("a secret", 1), False),
    ],
)
def test_only_what_has_no_words_of_the_conversation_is_an_event(message: s.ServerMessage, expected: bool) -> None:
    assert is_event(message) is expected

"""The audit's batches: soon durable, at once where something was changed, and never lost in silence."""

import asyncio
from collections.abc import Sequence

from antiphon.storage.base import AuditLine, StorageError
from antiphon.storage.memory import MemoryAuditStore
from antiphon.tools import audit
from antiphon.tools.audit import AuditLog
from tests.fakes.gates import Gate, make_action, make_tool


def line(number: int) -> AuditLine:
    return AuditLine(number, "s1", "ann", "text", 1, "tool")


class FlakyStore(MemoryAuditStore):
    """Fails as long as it is down."""

    down = True

    async def append(self, lines: Sequence[AuditLine]) -> None:
        if self.down:
            raise StorageError("The database is away.")
        await super().append(lines)


async def numbers(store: MemoryAuditStore) -> list[int]:
    return [line.ts_ms for _, line in await store.read()]


async def test_lines_are_written_in_batches_shortly_after() -> None:
    store = MemoryAuditStore()
    log = AuditLog(store)
    for number in range(3):
        log.add(line(number))
    assert await numbers(store) == []
    await asyncio.sleep(1)
    assert await numbers(store) == [0, 1, 2]


async def test_a_write_is_audited_before_its_result_is_reported() -> None:
    gate = Gate(make_action("write_it"), make_tool("read_it"))
    await gate.call("write_it")
    assert len(await gate.database.audit.read()) == 1
    await gate.call("read_it")
    assert len(await gate.database.audit.read()) == 1
    await gate.executor.aclose()
    assert len(await gate.database.audit.read()) == 2


async def test_an_unavailable_store_loses_no_line() -> None:
    store = FlakyStore()
    log = AuditLog(store)
    log.add(line(1))
    await log.flush()
    log.add(line(2))
    store.down = False
    await log.flush()
    assert await numbers(store) == [1, 2]
    await log.aclose()


async def test_the_oldest_lines_beyond_the_limit_are_dropped() -> None:
    store = FlakyStore()
    log = AuditLog(store)
    for number in range(audit.MAX_WAITING_LINES + 5):
        log.add(line(number))
    await log.flush()
    store.down = False
    await log.aclose()
    kept = await store.read(limit=1)
    assert kept[0][1].ts_ms == 5

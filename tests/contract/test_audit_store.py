"""The contract of the audit store: lines are kept in the order in which they were written."""

import asyncio

import pytest

from antiphon.storage.base import AuditLine, AuditStore

pytestmark = pytest.mark.real_time


def line(ts_ms: int, tool: str = "kb_search", *, session: str = "s1") -> AuditLine:
    return AuditLine(ts_ms=ts_ms, session=session, user="ann", mode="voice", turn=1, tool=tool)


async def test_an_empty_audit_reads_empty(audit: AuditStore) -> None:
    assert list(await audit.read()) == []


async def test_a_line_is_read_back_unchanged(audit: AuditStore) -> None:
    full = AuditLine(
        ts_ms=1_767_268_800_123,
        session="s1",
        user="ann",
        mode="voice",
        turn=4,
        tool="kb_search",
        tool_version="1.0.0",
        registry_version="1.0.0badcafe",
        idempotency_key="provider:call_123456",
        args_hash="a" * 64,
        args={"query": "Café\n\x1b[31m", "filters": {"tags": ["x", None, 1.5]}},
        outcome="TRANSIENT",
        duration_ms=12.25,
        clamped={"top_k": 10},
        defaults=("namespace", "top_k"),
        confirmation="approved",
        cache_hit=True,
        event="looked",
        data={"hits": 0},
    )
    await audit.append([full])
    assert [each for _, each in await audit.read()] == [full]


async def test_lines_keep_the_order_in_which_they_were_appended(audit: AuditStore) -> None:
    await audit.append([line(30), line(10)])
    await audit.append([])
    await audit.append([line(20)])
    read = await audit.read()
    assert [each.ts_ms for _, each in read] == [30, 10, 20]
    assert [seq for seq, _ in read] == sorted({seq for seq, _ in read})


async def test_since_excludes_older_lines(audit: AuditStore) -> None:
    await audit.append([line(10), line(30), line(20), line(19)])
    assert [each.ts_ms for _, each in await audit.read(since_ms=20)] == [30, 20]


async def test_pages_have_no_gap_or_overlap(audit: AuditStore) -> None:
    written = [line(ms) for ms in range(25)]
    await audit.append(written)
    read: list[AuditLine] = []
    after = 0
    while page := await audit.read(since_ms=5, after=after, limit=7):
        assert len(page) <= 7
        read += [each for _, each in page]
        after = page[-1][0]
    assert read == written[5:]


async def test_a_reader_at_the_end_finds_what_is_appended_later(audit: AuditStore) -> None:
    await audit.append([line(1)])
    ((seen, _),) = await audit.read()
    assert list(await audit.read(after=seen)) == []
    await audit.append([line(2)])
    assert [each.ts_ms for _, each in await audit.read(after=seen)] == [2]


async def test_concurrent_batches_are_not_interleaved(audit: AuditStore) -> None:
    batches = [[line(ms, session=f"s{number}") for ms in range(10)] for number in range(20)]
    await asyncio.gather(*(audit.append(batch) for batch in batches))
    read = [each for _, each in await audit.read()]
    assert sorted((read[start : start + 10] for start in range(0, 200, 10)), key=repr) == sorted(batches, key=repr)


async def test_old_lines_are_deleted_and_counted(audit: AuditStore) -> None:
    await audit.append([line(10), line(30), line(19), line(20)])
    assert await audit.delete_before(20) == 2
    assert [each.ts_ms for _, each in await audit.read()] == [30, 20]
    assert await audit.delete_before(20) == 0


async def test_any_number_of_old_lines_is_deleted(audit: AuditStore) -> None:
    await audit.append([line(ms) for ms in range(1_203)])
    assert await audit.delete_before(1_202) == 1_202
    assert [each.ts_ms for _, each in await audit.read()] == [1_202]


async def test_numbers_of_deleted_lines_are_not_reused(audit: AuditStore) -> None:
    await audit.append([line(1), line(2)])
    seen = (await audit.read())[-1][0]
    await audit.delete_before(3)
    await audit.append([line(4)])
    assert [each.ts_ms for _, each in await audit.read(after=seen)] == [4]

"""The contract of what the operator reads: everything of all users, newest first, in pages without gap or overlap."""

import pytest
from msgspec.structs import replace

from antiphon.storage.base import AuditLine
from antiphon.storage.conversations import Conversation, Place, VoiceCall
from antiphon.storage.knowledge import SHARED, Namespace, Passage, Record, RecordType
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.overview import AuditFilter, UserActivity
from antiphon.storage.sessions import SessionRecord
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time

Stores = MemoryDatabase | Database


def session(id: str, *, user: str = "ann", updated_ms: int = 1_000) -> SessionRecord:
    return SessionRecord(id, user, "c1", "voice", "v1", 0, b"{}", f"h{id}", 9_000, "node a", 1, 5_000, updated_ms)


def conversation(id: str, *, user: str = "ann", updated_ms: int = 1_000) -> Conversation:
    return Conversation(id, user, f"About {id}", 500, updated_ms)


def line(ts_ms: int, **fields: object) -> AuditLine:
    plain = AuditLine(ts_ms=ts_ms, session="s1", user="ann", mode="text", turn=1, tool="get_time")
    return replace(plain, **fields)


async def test_sessions_of_all_users_and_processes_are_listed_newest_first(database: Stores) -> None:
    older, newer = session("s1", updated_ms=10), session("s2", user="bob", updated_ms=20)
    await database.sessions.begin(older)
    await database.sessions.begin(newer)
    assert list(await database.overview.sessions(10)) == [newer, older]
    assert list(await database.overview.sessions(10, user="ann")) == [older]


async def test_pages_of_sessions_have_no_gap_or_overlap_even_at_equal_times(database: Stores) -> None:
    for number in range(7):
        await database.sessions.begin(session(f"s{number}", updated_ms=number // 3))
    seen: list[SessionRecord] = []
    after = None
    while page := await database.overview.sessions(2, after=after):
        seen += page
        after = Place(page[-1].updated_ms, page[-1].id)
    assert [each.id for each in seen] == ["s6", "s3", "s4", "s5", "s0", "s1", "s2"]


async def test_conversations_of_all_users_are_listed_newest_first(database: Stores) -> None:
    for each in (conversation("c1", updated_ms=3), conversation("c2", user="bob", updated_ms=9)):
        await database.conversations.create(each)
    assert [each.id for each in await database.overview.conversations(10)] == ["c2", "c1"]
    assert [each.id for each in await database.overview.conversations(10, user="ann")] == ["c1"]


async def test_pages_of_conversations_have_no_gap_or_overlap(database: Stores) -> None:
    for number in range(5):
        await database.conversations.create(conversation(f"c{number}", updated_ms=number // 2))
    seen: list[Conversation] = []
    after = None
    while page := await database.overview.conversations(2, after=after):
        seen += page
        after = page[-1].place
    assert [each.id for each in seen] == ["c4", "c2", "c3", "c0", "c1"]


async def test_any_users_conversation_is_found_by_its_id(database: Stores) -> None:
    await database.conversations.create(conversation("c1", user="bob"))
    assert await database.overview.conversation("c1") == conversation("c1", user="bob")
    assert await database.overview.conversation("c2") is None


async def test_the_calls_of_one_conversation_are_listed(database: Stores) -> None:
    first = VoiceCall("k1", "c1", "ann", 10, 20, "Tea.", ("cascade",), 1, 2, (3, 1))
    for call in (first, replace(first, id="k2", started_ms=30), replace(first, id="k3", conversation_id="c2")):
        await database.voice_calls.begin(call, None)
    found = await database.overview.voice_calls(conversation("c1"), 10)
    assert [each.id for each in found] == ["k2", "k1"]
    assert found[1] == first
    assert len(await database.overview.voice_calls(conversation("c1"), 1)) == 1


async def test_users_are_listed_with_what_they_have(database: Stores) -> None:
    assert list(await database.overview.users(10)) == []
    for each in (
        conversation("c1", updated_ms=5),
        conversation("c2", updated_ms=7),
        conversation("c3", user="bob", updated_ms=9),
    ):
        await database.conversations.create(each)
    assert list(await database.overview.users(10)) == [UserActivity("bob", 1, 9), UserActivity("ann", 2, 7)]
    assert list(await database.overview.users(1)) == [UserActivity("bob", 1, 9)]


async def test_the_audit_is_read_newest_first(database: Stores) -> None:
    await database.audit.append([line(1), line(2), line(3)])
    assert [each.ts_ms for _, each in await database.overview.audit(AuditFilter(), 2)] == [3, 2]


async def test_pages_of_the_audit_have_no_gap_or_overlap(database: Stores) -> None:
    await database.audit.append([line(ms) for ms in range(10)])
    seen: list[int] = []
    before = None
    while page := await database.overview.audit(AuditFilter(), 4, before):
        seen += [each.ts_ms for _, each in page]
        before = page[-1][0]
    assert seen == list(range(9, -1, -1))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AuditFilter(), [6, 5, 4, 3, 2, 1]),
        (AuditFilter(user="bob"), [2]),
        (AuditFilter(session="s2"), [3]),
        (AuditFilter(conversation="c1"), [4]),
        (AuditFilter(tool="roll_dice"), [5]),
        (AuditFilter(outcome="TRANSIENT"), [6]),
        (AuditFilter(since_ms=3, until_ms=5), [4, 3]),
        (AuditFilter(user="ann", tool="roll_dice", since_ms=6), []),
        (AuditFilter(user="%"), []),
    ],
)
async def test_the_audit_is_searched(database: Stores, wanted: AuditFilter, found: list[int]) -> None:
    lines = [
        line(1),
        line(2, user="bob"),
        line(3, session="s2"),
        line(4, conversation="c1"),
        line(5, tool="roll_dice"),
        line(6, outcome="TRANSIENT"),
    ]
    await database.audit.append(lines)
    read = await database.overview.audit(wanted, 10)
    assert [each.ts_ms for _, each in read] == found
    assert all(each == lines[each.ts_ms - 1] for _, each in read)


async def test_records_are_counted_by_namespace_whoever_owns_them(database: Stores) -> None:
    assert dict(await database.overview.record_counts()) == {}
    places = (("a", "", Namespace.STUDIO), ("b", "ann", Namespace.PERSONAL), ("b", "bob", Namespace.PERSONAL))
    records = [
        Record(
            id=f"doc:{name}",
            owner=owner or SHARED,
            namespace=namespace,
            type=RecordType.DOC,
            title=name,
            body="x",
            source_type="note",
            last_updated_ms=1,
        )
        for name, owner, namespace in places
    ]
    await database.knowledge.stage("b1", [(record, [Passage("x")]) for record in records])
    assert dict(await database.overview.record_counts()) == {}
    await database.knowledge.publish("b1")
    assert dict(await database.overview.record_counts()) == {"personal": 2, "studio": 1}

"""What the stores in memory add to the contract: they do not grow without end."""

from antiphon.storage.base import AuditLine, CallRecord
from antiphon.storage.conversations import Conversation, Turn, VoiceCall
from antiphon.storage.memory import MemoryAuditStore, MemoryCallStore
from antiphon.storage.memory.conversations import MemoryConversationStore, MemoryVoiceCallStore
from antiphon.storage.memory.sessions import MemorySessionStore


def record(session_id: str, result: bytes | None = b"{}") -> CallRecord:
    return CallRecord(f"id-{session_id}", session_id, "p1", "h1", "f", "tell_joke", 1, 1, 60_001, result)


def line(ts_ms: int) -> AuditLine:
    return AuditLine(ts_ms, "s1", "ann", "text", 1, "tell_joke")


async def test_the_least_recently_used_session_is_forgotten() -> None:
    calls = MemoryCallStore(sessions_kept=2)
    await calls.finish(record("s1"))
    await calls.finish(record("s2"))
    await calls.finish(record("s1"))
    await calls.finish(record("s3"))
    assert await calls.find("s2", "p1", None) is None
    assert await calls.find("s1", "p1", None) == record("s1")
    assert await calls.find("s3", "p1", None) == record("s3")


async def test_a_session_with_a_call_in_progress_is_not_forgotten() -> None:
    calls = MemoryCallStore(sessions_kept=2)
    await calls.start(record("s1", result=None))
    await calls.finish(record("s2"))
    await calls.finish(record("s3"))
    assert await calls.find("s1", "p1", None) == record("s1", result=None)
    assert await calls.find("s2", "p1", None) is None


async def test_looking_up_a_call_creates_no_session() -> None:
    calls = MemoryCallStore(sessions_kept=1)
    await calls.finish(record("s1"))
    await calls.find("s2", "p1", None)
    assert await calls.find("s1", "p1", None) == record("s1")


async def test_the_oldest_audit_lines_are_dropped_and_numbering_continues() -> None:
    audit = MemoryAuditStore(lines_kept=3)
    await audit.append([line(ms) for ms in range(1, 6)])
    assert [(seq, each.ts_ms) for seq, each in await audit.read()] == [(3, 3), (4, 4), (5, 5)]
    assert [seq for seq, _ in await audit.read(after=4)] == [5]
    assert [seq for seq, _ in await audit.read(after=1)] == [3, 4, 5]


async def test_the_least_recently_used_conversation_is_dropped() -> None:
    conversations = MemoryConversationStore(MemorySessionStore(), kept=2)
    await conversations.create(Conversation("c1", "ann", "", 1, 1))
    await conversations.create(Conversation("c2", "ann", "", 2, 2))
    await conversations.append_many("c1", [Turn("user", "Hello.", False, 3, b"{}")], None)
    await conversations.create(Conversation("c3", "ann", "", 4, 4))
    assert [each.id for each in await conversations.list("ann", 10)] == ["c3", "c1"]


async def test_the_oldest_voice_call_is_dropped() -> None:
    voice_calls = MemoryVoiceCallStore(MemorySessionStore(), kept=2)
    for number in range(3):
        await voice_calls.begin(VoiceCall(f"v{number}", "c1", "ann", number, None, "", (), 1, None), None)
    assert [each.id for each in await voice_calls.list("ann", 10)] == ["v2", "v1"]

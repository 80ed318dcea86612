"""The tables. Where a row is a struct, its columns are the struct's fields, in the same order.

A change here needs a migration in `migrations/versions/`; a test compares the two.
"""

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
)

metadata: Final = MetaData()

LARGE_ROWS: Final = "large_rows"
"""What a table with large rows says about itself: how many of them may be in memory together."""

# SQLite uses a column as its row number only if the type is exactly INTEGER.
_SEQUENCE: Final = BigInteger().with_variant(Integer, "sqlite")

# A unique constraint treats NULLs as distinct in both dialects, so any number of calls may lack a key.
calls: Final = Table(
    "calls",
    metadata,
    Column("id", Text, primary_key=True),
    Column("session_id", Text, nullable=False),
    Column("provider_key", Text),
    Column("hash_key", Text),
    Column("fingerprint", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("lease_until_ms", BigInteger, nullable=False),
    Column("result", LargeBinary),
    UniqueConstraint("session_id", "provider_key", name="calls_provider_key"),
    UniqueConstraint("session_id", "hash_key", name="calls_hash_key"),
    Index("calls_oldest", "started_ms"),
)

confirmations: Final = Table(
    "confirmations",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True),
    Column("token_hash", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("tool_digest", Text, nullable=False),
    Column("args", LargeBinary, nullable=False),
    Column("call_id", Text),
    Column("occurrence", Integer, nullable=False),
    Column("mode", Text, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("preview", Text, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Column("prepared", LargeBinary),
    UniqueConstraint("token_hash", name="confirmations_token_hash"),
    Index("confirmations_owner", "session_id", "user"),
)

audit: Final = Table(
    "audit",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True),
    Column("ts_ms", BigInteger, nullable=False),
    Column("line", Text, nullable=False),
    # What the line is searched by.
    Column("session", Text),
    Column("user", Text),
    Column("conversation", Text),
    Column("tool", Text),
    Column("outcome", Text),
    Index("audit_oldest", "ts_ms"),
    Index("audit_of_session", "session", "seq"),
    Index("audit_of_user", "user", "seq"),
    Index("audit_of_conversation", "conversation", "seq"),
    Index("audit_of_tool", "tool", "seq"),
    # A reader continues after the last number it saw, so numbers must not be reused after old lines are deleted.
    sqlite_autoincrement=True,
)

conversations: Final = Table(
    "conversations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    # The highest number that a turn ever had, so that none is reused after the turns are cleared.
    Column("last_seq", Integer, nullable=False),
    Index("conversations_newest", "user", "updated_ms"),
    Index("conversations_updated", "updated_ms"),
)

turns: Final = Table(
    "turns",
    metadata,
    Column("conversation_id", Text, ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("role", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("spoken", Boolean, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

session_events: Final = Table(
    "session_events",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True),
    Column("conversation_id", Text, ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    Column("session_id", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("data", JSON, nullable=False),
    Index("session_events_of_conversation", "conversation_id", "seq"),
)

# Without a foreign key, since calls and conversations are deleted independently.
voice_calls: Final = Table(
    "voice_calls",
    metadata,
    Column("id", Text, primary_key=True),
    Column("conversation_id", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger),
    Column("summary", Text, nullable=False),
    Column("models", JSON, nullable=False),
    Column("first_seq", Integer, nullable=False),
    Column("last_seq", Integer),
    Column("energy_path", JSON, nullable=False, server_default="[]"),
    Index("voice_calls_newest", "user", "started_ms"),
)

sessions: Final = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("conversation_id", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("tools_version", Text, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("state", LargeBinary, nullable=False),
    Column("handle_hash", Text, nullable=False),
    Column("handle_expires_ms", BigInteger, nullable=False),
    Column("lease_owner", Text, nullable=False),
    Column("lease_token", Integer, nullable=False),
    Column("lease_until_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    Column("previous_handle_hash", Text),
    UniqueConstraint("handle_hash", name="sessions_handle_hash"),
    Index("sessions_previous_handle_hash", "previous_handle_hash"),
    Index("sessions_conversation", "conversation_id"),
)

messages: Final = Table(
    "messages",
    metadata,
    Column("session_id", Text, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
)

blocks: Final = Table(
    "blocks",
    metadata,
    Column("user", Text, primary_key=True),
    Column("until_ms", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
)

tokens: Final = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("token_hash", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
    Column("is_admin", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("token_hash", name="tokens_token_hash"),
)

kb_records: Final = Table(
    "kb_records",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True),
    Column("id", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("title", Text, nullable=False),
    # One tag a line, with a line break before the first and after the last one.
    Column("tags", Text, nullable=False),
    Column("url", Text),
    Column("source_type", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("last_updated_ms", BigInteger, nullable=False),
    Column("metadata", JSON, nullable=False),
    # Empty for what can be found; else the import that has not finished, or a mark of what it has replaced.
    Column("batch", Text, nullable=False),
    UniqueConstraint("id", "owner", "batch", name="kb_records_key"),
    Index("kb_records_newest", "batch", "last_updated_ms"),
)

kb_passages: Final = Table(
    "kb_passages",
    metadata,
    # The full-text index refers to these numbers, and a reader knows passages by them, so they are never reused.
    Column("seq", _SEQUENCE, primary_key=True),
    Column("record_seq", _SEQUENCE, ForeignKey("kb_records.seq", ondelete="CASCADE"), nullable=False),
    Column("text", Text, nullable=False),
    Column("vector", LargeBinary),
    Index("kb_passages_record", "record_seq"),
    sqlite_autoincrement=True,
)

# One row: what other processes look at to notice changes.
kb_state: Final = Table(
    "kb_state",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("embedder", Text, nullable=False),
)

list_items: Final = Table(
    "list_items",
    metadata,
    # The order in which the items were added.
    Column("seq", _SEQUENCE, primary_key=True),
    Column("user", Text, nullable=False),
    Column("list", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("added_ms", BigInteger, nullable=False),
    UniqueConstraint("user", "list", "key", name="list_items_key"),
)

tool_values: Final = Table(
    "tool_values",
    metadata,
    Column("tool", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    Index("tool_values_user", "user"),
)

reminders: Final = Table(
    "reminders",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("due_ms", BigInteger, nullable=False),
    Column("zone", Text, nullable=False),
    Column("repeat", Text),
    Column("created_ms", BigInteger, nullable=False),
    Index("reminders_due", "due_ms"),
    Index("reminders_of_user", "user", "due_ms"),
)

# Without a foreign key, since a reminder that does not repeat is deleted when it rings.
rings: Final = Table(
    "rings",
    metadata,
    Column("id", Text, primary_key=True),
    Column("reminder_id", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("due_ms", BigInteger, nullable=False),
    Column("zone", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("rung_ms", BigInteger, nullable=False),
    Column("heard_ms", BigInteger),
    Index("rings_of_user", "user", "rung_ms"),
    Index("rings_of_reminder", "reminder_id"),
)

# Without a foreign key to sessions: a ring that was delivered to a session that has ended must still be known.
ring_deliveries: Final = Table(
    "ring_deliveries",
    metadata,
    Column("ring_id", Text, ForeignKey("rings.id", ondelete="CASCADE"), primary_key=True),
    Column("session_id", Text, primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("announcement", Text),
)

calendar_events: Final = Table(
    "calendar_events",
    metadata,
    Column("user", Text, primary_key=True),
    Column("uid", Text, primary_key=True),
    Column("calendar", Text, nullable=False),
    Column("ics", Text, nullable=False),
    Column("first_ms", BigInteger, nullable=False),
    Column("last_ms", BigInteger),
    Index("calendar_events_range", "user", "first_ms"),
)

session_commands: Final = Table(
    "session_commands",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("session_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Column("is_taken", Boolean, nullable=False),
    Column("result", LargeBinary),
    Index("session_commands_session", "session_id"),
)

tool_uses: Final = Table(
    "tool_uses",
    metadata,
    Column("user", Text, primary_key=True),
    Column("tool", Text, primary_key=True),
    Column("times", LargeBinary, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
)

used_quotas: Final = Table(
    "used_quotas",
    metadata,
    Column("key", Text, primary_key=True),
    Column("full_at_ms", BigInteger, nullable=False),
)

mcp_pins: Final = Table(
    "mcp_pins",
    metadata,
    Column("server", Text, primary_key=True),
    Column("tool", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("definition", LargeBinary, nullable=False),
    Column("seen_digest", Text, nullable=False),
    Column("seen_definition", LargeBinary, nullable=False),
    Column("is_offered", Boolean, nullable=False),
    Column("first_seen_ms", BigInteger, nullable=False),
)

recordings: Final = Table(
    "recordings",
    metadata,
    Column("id", Text, primary_key=True),
    Column("conversation_id", Text, ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    Column("user", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("duration_ms", BigInteger),
    Column("channels", Integer, nullable=False),
    Column("size_bytes", BigInteger),
    Column("format", Text, nullable=False),
    Column("file", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("marks", JSON, nullable=False),
    Column("is_stored", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("file", name="recordings_file"),
    Index("recordings_of_conversation", "conversation_id"),
    Index("recordings_of_user", "user", "started_ms"),
    Index("recordings_oldest", "started_ms"),
)

recording_parts: Final = Table(
    "recording_parts",
    metadata,
    Column("recording_id", Text, ForeignKey("recordings.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
    info={LARGE_ROWS: 64},
)

# The content comes last, so that SQLite reads the other columns without it.
images: Final = Table(
    "images",
    metadata,
    Column("name", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Index("images_of_user", "user", "at_ms"),
    Index("images_oldest", "at_ms"),
    info={LARGE_ROWS: 2},
)

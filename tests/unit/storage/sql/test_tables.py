"""The tables agree with the structs that they hold, and with the steps that make them."""

from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from msgspec import Struct
from sqlalchemy import Table, create_engine

from antiphon.storage.base import CallRecord, Confirmation
from antiphon.storage.conversations import Conversation, StoredTurn, Turn, VoiceCall
from antiphon.storage.migrations import FOLDER, HEAD
from antiphon.storage.people import Block, TokenRecord
from antiphon.storage.sessions import SessionRecord
from antiphon.storage.sql import full_text, open_database
from antiphon.storage.sql.tables import (
    blocks,
    calls,
    confirmations,
    conversations,
    metadata,
    sessions,
    tokens,
    turns,
    voice_calls,
)


@pytest.mark.parametrize(
    ("table", "struct"),
    [
        (calls, CallRecord),
        (turns, StoredTurn),
        (voice_calls, VoiceCall),
        (sessions, SessionRecord),
        (blocks, Block),
        (tokens, TokenRecord),
    ],
)
def test_the_columns_are_the_fields_of_the_struct(table: Table, struct: type[Struct]) -> None:
    assert tuple(table.c.keys()) == struct.__struct_fields__


def test_columns_only_for_the_database_come_first_or_last() -> None:
    assert tuple(confirmations.c.keys()) == ("seq", *Confirmation.__struct_fields__)
    assert tuple(conversations.c.keys()) == (*Conversation.__struct_fields__, "last_seq")


def test_a_stored_turn_is_a_turn_with_its_position() -> None:
    assert StoredTurn.__struct_fields__ == ("conversation_id", "seq", *Turn.__struct_fields__)


def test_head_is_the_last_migration() -> None:
    scripts = ScriptDirectory(str(FOLDER))
    assert scripts.get_heads() == [HEAD]


def test_the_migrations_sort_in_their_order() -> None:
    newest_first = [script.revision for script in ScriptDirectory(str(FOLDER)).walk_revisions()]
    assert newest_first == sorted(newest_first, reverse=True)


def is_own_table(name: str | None, kind: str, parents: object) -> bool:
    """Whether `tables.py` has it: not the full-text index, which is made of several tables."""
    return kind != "table" or not (name or "").startswith(full_text.NAME)


def has_other_default(*of_column: Any) -> bool:
    """Whether the defaults differ. Postgres cannot compare JSON, and tells a default with its type."""
    *_, inspected, _, wanted = of_column
    return (inspected or "").removesuffix("::json").strip("'") != (wanted or "").strip("'")


@pytest.fixture(params=["sqlite", "postgres"])
def migrated(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path | str, str]:
    """A new database for Antiphon, and its address for SQLAlchemy."""
    if request.param == "sqlite":
        return tmp_path / "a.db", f"sqlite:///{tmp_path / 'a.db'}"
    url = request.getfixturevalue("postgres").make_database(has_tables=False)
    return url, url.replace("://", "+psycopg://")


@pytest.mark.real_time
async def test_the_migrations_make_exactly_these_tables(migrated: tuple[Path | str, str]) -> None:
    place, url = migrated
    await (await open_database(place)).aclose()
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            options = {"compare_type": True, "compare_server_default": has_other_default, "include_name": is_own_table}
            assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
    finally:
        engine.dispose()

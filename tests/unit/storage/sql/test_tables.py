"""The tables agree with the structs that they hold, and with the steps that make them."""

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from antiphon.storage.base import CallRecord, Confirmation
from antiphon.storage.migrations import FOLDER, HEAD
from antiphon.storage.sql import open_database
from antiphon.storage.sql.tables import calls, confirmations, metadata


def test_the_columns_are_the_fields_of_the_structs() -> None:
    assert tuple(calls.c.keys()) == CallRecord.__struct_fields__
    assert tuple(confirmations.c.keys()) == ("seq", *Confirmation.__struct_fields__)


def test_head_is_the_last_migration() -> None:
    scripts = ScriptDirectory(str(FOLDER))
    assert scripts.get_heads() == [HEAD]


def test_the_migrations_sort_as_they_follow() -> None:
    newest_first = [script.revision for script in ScriptDirectory(str(FOLDER)).walk_revisions()]
    assert newest_first == sorted(newest_first, reverse=True)


@pytest.mark.real_time
async def test_the_migrations_make_exactly_these_tables(tmp_path: Path) -> None:
    await (await open_database(tmp_path / "a.db")).aclose()
    engine = create_engine(f"sqlite:///{tmp_path / 'a.db'}")
    try:
        with engine.connect() as connection:
            options = {"compare_type": True, "compare_server_default": True}
            assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
    finally:
        engine.dispose()

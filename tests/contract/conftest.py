"""Fixtures of the stores. A test that uses one runs once for every implementation."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon.storage.base import AuditStore, CallStore, ConfirmationStore
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database, open_database


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str | None:
    """Where the database is: a file, an address, or None for memory."""
    match request.param:
        case "memory":
            return None
        case "sqlite":
            return tmp_path / "antiphon.db"
        case _:
            return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def database(place: Path | str | None) -> AsyncIterator[MemoryDatabase | Database]:
    opened = MemoryDatabase() if place is None else await open_database(place)
    try:
        yield opened
    finally:
        await opened.aclose()


@pytest.fixture
def calls(database: MemoryDatabase | Database) -> CallStore:
    return database.calls


@pytest.fixture
def confirmations(database: MemoryDatabase | Database) -> ConfirmationStore:
    return database.confirmations


@pytest.fixture
def audit(database: MemoryDatabase | Database) -> AuditStore:
    return database.audit

"""Fixtures of the stores. A test that uses one runs once for every implementation."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon.storage.base import AuditStore, CallStore, ConfirmationStore
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database, open_database


@pytest.fixture(params=["memory", "sqlite"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MemoryDatabase | Database]:
    opened = MemoryDatabase() if request.param == "memory" else await open_database(tmp_path / "antiphon.db")
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

"""The store of one tool for one user."""

from typing import Any

import pytest

from antiphon.authoring.testing import StillClock
from antiphon.services.tool_storage import ToolStorage
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.capabilities.storage import MAX_KEY_CHARS, MAX_KEYS, MAX_VALUE_BYTES
from antiphon.tools.errors import ErrorType, ToolError


@pytest.fixture
def database() -> MemoryDatabase:
    return MemoryDatabase()


@pytest.fixture
def storage(database: MemoryDatabase) -> ToolStorage:
    return ToolStorage(database.tool_values, "kettle", "ann", StillClock())


@pytest.mark.parametrize("value", [None, True, 3, 2.5, "tea", ["a", 1], {"a": {"b": None}}])
async def test_json_comes_back_as_it_was(storage: ToolStorage, value: Any) -> None:
    await storage.set("key", value)
    assert await storage.get("key", "default") == value


async def test_a_missing_key_has_the_default(storage: ToolStorage) -> None:
    assert await storage.get("key") is None
    assert await storage.get("key", 5) == 5


async def test_a_key_can_be_deleted_and_listed(storage: ToolStorage) -> None:
    for key in ("cup:2", "cup:1", "pot"):
        await storage.set(key, 1)
    assert await storage.list() == ["cup:1", "cup:2", "pot"]
    assert await storage.list("cup:") == ["cup:1", "cup:2"]
    assert await storage.delete("pot") is True
    assert await storage.delete("pot") is False


@pytest.mark.parametrize("key", ["", "x" * (MAX_KEY_CHARS + 1), 5])
async def test_a_bad_key_is_refused_everywhere(storage: ToolStorage, key: Any) -> None:
    for use in (storage.get(key), storage.set(key, 1), storage.delete(key)):
        with pytest.raises(ValueError, match="a text of 1 to 200 characters"):
            await use


@pytest.mark.parametrize(
    ("value", "told"), [(object(), "is not JSON"), ("x" * MAX_VALUE_BYTES, "at most 65,536 are stored")]
)
async def test_a_value_that_cannot_be_stored_leaves_the_old_one(storage: ToolStorage, value: Any, told: str) -> None:
    await storage.set("key", "old")
    with pytest.raises(ValueError, match=told):
        await storage.set("key", value)
    assert await storage.get("key") == "old"


async def test_a_full_store_refuses_new_keys_with_a_sentence(storage: ToolStorage) -> None:
    for number in range(MAX_KEYS):
        await storage.set(str(number), number)
    with pytest.raises(ToolError) as refused:
        await storage.set("one more", 1)
    assert refused.value.type is ErrorType.PERMANENT
    assert refused.value.message == "There's no more room to remember that."
    await storage.set("0", "replaced")


async def test_other_tools_and_users_see_nothing(storage: ToolStorage, database: MemoryDatabase) -> None:
    await storage.set("key", 1)
    for tool, user in (("lamp", "ann"), ("kettle", "bob")):
        assert await ToolStorage(database.tool_values, tool, user, StillClock()).get("key") is None

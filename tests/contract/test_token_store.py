"""The contract of the token store: a token is valid until it expires or is revoked."""

import pytest
from msgspec.structs import replace

from antiphon.storage.base import StorageError
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.people import TokenRecord, TokenStore
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time


def token(
    id: str = "t1", token_hash: str = "hash1", *, created_ms: int = 1_000, expires_ms: int | None = None
) -> TokenRecord:
    return TokenRecord(id, "ann", "kitchen display", token_hash, created_ms, expires_ms)


@pytest.fixture
def tokens(database: MemoryDatabase | Database) -> TokenStore:
    return database.tokens


async def test_a_token_is_found_by_its_hash(tokens: TokenStore) -> None:
    await tokens.add(token())
    assert await tokens.find("hash1", 10**15) == token()


@pytest.mark.parametrize("is_admin", [False, True])
async def test_a_token_is_read_back_as_an_admin_token_or_not(tokens: TokenStore, is_admin: bool) -> None:
    await tokens.add(replace(token(), is_admin=is_admin))
    found = await tokens.find("hash1", 2_000)
    assert found is not None
    assert found.is_admin is is_admin
    assert [each.is_admin for each in await tokens.list()] == [is_admin]


async def test_an_unknown_hash_finds_nothing(tokens: TokenStore) -> None:
    await tokens.add(token())
    assert await tokens.find("hash2", 2_000) is None


async def test_an_id_is_not_accepted_as_a_hash(tokens: TokenStore) -> None:
    await tokens.add(token())
    assert await tokens.find("t1", 2_000) is None


async def test_a_token_is_found_until_it_expires(tokens: TokenStore) -> None:
    await tokens.add(token(expires_ms=5_000))
    assert await tokens.find("hash1", 4_999) == token(expires_ms=5_000)
    assert await tokens.find("hash1", 5_000) is None


async def test_a_revoked_token_is_not_found(tokens: TokenStore) -> None:
    await tokens.add(token())
    await tokens.add(token("t2", "hash2"))
    assert await tokens.revoke("t1") is True
    assert await tokens.find("hash1", 2_000) is None
    assert await tokens.find("hash2", 2_000) is not None
    assert await tokens.revoke("t1") is False


async def test_only_the_ids_of_valid_tokens_are_returned(tokens: TokenStore) -> None:
    await tokens.add(token("t1", "hash1"))
    await tokens.add(token("t2", "hash2", expires_ms=5_000))
    await tokens.add(token("t3", "hash3"))
    await tokens.revoke("t3")
    asked = ["t1", "t2", "t3", "t4"]
    assert set(await tokens.valid(asked, 4_999)) == {"t1", "t2"}
    assert set(await tokens.valid(asked, 5_000)) == {"t1"}
    assert set(await tokens.valid([], 5_000)) == set()


async def test_tokens_are_listed_oldest_first_including_expired_ones(tokens: TokenStore) -> None:
    older, newer = token("t1", "hash1", created_ms=2, expires_ms=3), token("t2", "hash2", created_ms=5)
    await tokens.add(newer)
    await tokens.add(older)
    assert list(await tokens.list()) == [older, newer]


@pytest.mark.parametrize("second", [token("t1", "hash2"), token("t2", "hash1")])
async def test_neither_an_id_nor_a_hash_can_be_added_twice(tokens: TokenStore, second: TokenRecord) -> None:
    await tokens.add(token())
    with pytest.raises(StorageError):
        await tokens.add(second)
    assert list(await tokens.list()) == [token()]

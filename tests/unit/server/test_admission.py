"""Who may enter, by any endpoint."""

import pytest

from antiphon.security.admission import AdmissionRefused, RefusalKind
from antiphon.security.quota import Account, Kind, Limit, Quota, Rate
from antiphon.security.tokens import hash_token, make_token
from antiphon.server.admission import Admission
from antiphon.server.authenticator import LOCAL_USER, Authenticator
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.people import TokenRecord
from tests.fakes.calls import LoopClock


def admission(database: MemoryDatabase, *, required: bool, quota: Quota | None = None) -> Admission:
    quota, clock = quota or Quota({}), LoopClock()
    return Admission(
        Authenticator(database.tokens, database.blocks, clock, required=required, quota=quota), quota, clock
    )


async def refusal(entering: Admission, key: str | None) -> AdmissionRefused:
    with pytest.raises(AdmissionRefused) as refused:
        await entering.admit(key, address="192.0.2.1", route="/v1/realtime")
    return refused.value


async def test_any_key_is_accepted_where_no_token_is_required() -> None:
    caller = await admission(MemoryDatabase(), required=False).admit("sk-anything", address=None, route="/")
    assert caller.user == LOCAL_USER


async def test_a_wrong_token_of_ours_is_refused_even_where_none_is_required() -> None:
    refused = await refusal(admission(MemoryDatabase(), required=False), make_token())
    assert refused.kind is RefusalKind.UNAUTHENTICATED


@pytest.mark.parametrize("key", [None, "sk-anything"])
async def test_a_token_is_required(key: str | None) -> None:
    refused = await refusal(admission(MemoryDatabase(), required=True), key)
    assert refused.kind is RefusalKind.UNAUTHENTICATED
    assert "antiphon token new" in str(refused)


async def test_a_valid_token_names_its_user() -> None:
    database, token = MemoryDatabase(), make_token()
    await database.tokens.add(TokenRecord("t1", "ann", "a test", hash_token(token), 0, None))
    caller = await admission(database, required=True).admit(token, address=None, route="/")
    assert (caller.user, caller.authenticated, caller.token_id) == ("ann", True, "t1")


async def test_a_blocked_user_is_told_for_how_long() -> None:
    database = MemoryDatabase()
    await database.blocks.block(LOCAL_USER, LoopClock().now_ms() + 60_000, "be nice")
    refused = await refusal(admission(database, required=False), None)
    assert refused.kind is RefusalKind.BLOCKED
    assert refused.retry_after_s == pytest.approx(60, abs=1)


async def test_connections_are_counted_before_the_key_is_checked() -> None:
    entering = admission(MemoryDatabase(), required=True, quota=Quota({Kind.CONNECTION: Limit(address=Rate(0.1, 1))}))
    assert (await refusal(entering, "sk-1")).kind is RefusalKind.UNAUTHENTICATED
    refused = await refusal(entering, "sk-2")
    assert refused.kind is RefusalKind.FULL
    assert refused.retry_after_s == pytest.approx(10, abs=0.5)


async def test_connections_are_counted_for_the_user() -> None:
    quota = Quota({Kind.CONNECTION: Limit(user=Rate(0.1, 1))})
    entering = admission(MemoryDatabase(), required=False, quota=quota)
    await entering.admit(None, address="192.0.2.1", route="/")
    assert (await refusal(entering, None)).kind is RefusalKind.FULL
    assert quota.wait_s(Kind.CONNECTION, Account(user=LOCAL_USER), 1, LoopClock().monotonic()) > 0

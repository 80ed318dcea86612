"""Behind a reverse proxy, the client address is the one that a trusted proxy reports."""

from collections.abc import Sequence
from pathlib import Path

import httpx2
import pytest

from antiphon.security.quota import Kind, Limit, Rate
from tests.wire.served import serve

pytestmark = pytest.mark.real_time

ONE_REQUEST: dict[Kind, Limit] = {Kind.CONNECTION: Limit(address=Rate(per_s=0.001, burst=1))}


async def statuses(folder: Path, proxies: Sequence[str], addresses: Sequence[str]) -> list[int]:
    """The statuses of requests with these forwarded addresses, all sent through a proxy on this machine."""
    with serve(folder, limits=ONE_REQUEST, server={"proxies": proxies}) as served:
        async with httpx2.AsyncClient(base_url=served.http, timeout=20) as client:
            return [
                (
                    await client.post(
                        "/api/chat", json={"message": "What is 2 plus 3?"}, headers={"X-Forwarded-For": address}
                    )
                ).status_code
                for address in addresses
            ]


@pytest.mark.parametrize("proxy", ["127.0.0.1", "127.0.0.0/8"])
async def test_the_client_address_is_taken_from_a_trusted_proxy(tmp_path: Path, proxy: str) -> None:
    assert await statuses(tmp_path, [proxy], ["192.0.2.1", "192.0.2.2", "192.0.2.1"]) == [200, 200, 429]


@pytest.mark.parametrize("proxies", [[], ["10.0.0.1"]])
async def test_forwarded_addresses_from_others_are_ignored(tmp_path: Path, proxies: list[str]) -> None:
    assert await statuses(tmp_path, proxies, ["192.0.2.1", "192.0.2.2"]) == [200, 429]

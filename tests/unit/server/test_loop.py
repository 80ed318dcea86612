"""Which event loop a server runs on."""

import asyncio
import sys

import pytest
import uvloop

from antiphon.server.serving import run_loop


def loop_in_use() -> asyncio.AbstractEventLoop:
    used: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        used.append(asyncio.get_running_loop())

    run_loop(main())
    return used[0]


def test_a_server_runs_on_uvloop() -> None:
    assert isinstance(loop_in_use(), uvloop.Loop)


def test_without_uvloop_a_server_runs_on_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert isinstance(loop_in_use(), asyncio.BaseEventLoop)

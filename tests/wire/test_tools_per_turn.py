"""A server whose model is given few tools per turn."""

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.chat_server import ChatServer, Request, words
from tests.wire.caller import call
from tests.wire.served import serve

pytestmark = pytest.mark.real_time


def tools_of(request: Request) -> list[str]:
    tools: list[dict[str, Any]] = request.body["tools"]
    return [tool["function"]["name"] for tool in tools]


async def test_the_server_is_sent_the_nearest_tools_and_the_names_of_all(tmp_path: Path) -> None:
    asked = "I wonder whether there is any space left on the disk"
    async with ChatServer(lambda request: words("Plenty.")) as server:
        with serve(tmp_path, model={"text": f"openai:{server.url}#m", "tools_per_turn": 3}) as served:
            async with call(served.url, {"mode": "text"}) as caller:
                await caller.ask(asked)
    [request] = [request for request in server.requests if request.messages[-1]["content"] == asked]
    given = tools_of(request)
    assert given[0] == "describe_tool"
    assert "get_disk_space" in given
    assert len(given) == 4
    system = request.messages[0]["content"]
    assert "tell_joke" in system
    assert "**tell_joke**" not in system

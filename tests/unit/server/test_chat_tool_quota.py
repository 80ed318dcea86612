"""Tool calls through `POST /api/chat` are charged like those of a WebSocket session."""

from typing import Any

from antiphon.security.admission import Caller
from antiphon.security.quota import Kind, Limit, Quota, Rate
from antiphon.server.answer import ChatRequest, ToolRun
from antiphon.server.chat import Chat
from antiphon.tools.call import ToolCall
from tests.fakes.gates import Counted, make_tool
from tests.fakes.web import WebApp, WebApps

READ = ToolCall(None, "read_it", {})
ONE = Rate(0.1, 1)


def open_web(apps: WebApps, limit: Limit, handler: Counted | None = None) -> WebApp:
    """A server whose model reads once in every turn."""
    tool = make_tool("read_it", handler or Counted())
    return apps.open(tool, text=[[READ], "Done."] * 4, deps={"quota": Quota({Kind.TOOL_CALL: limit})})


async def run_of(web: WebApp, **rest: Any) -> dict[str, Any]:
    [run] = (await web.chat("read it", **rest)).json()["toolCalls"]
    return dict(run)


async def test_a_call_beyond_the_users_quota_is_refused_and_the_answer_still_comes(apps: WebApps) -> None:
    handler = Counted()
    web = open_web(apps, Limit(user=ONE), handler)
    first = (await web.chat("read it")).json()
    second = (await web.chat("read it")).json()
    assert [first["toolCalls"][0]["ok"], second["toolCalls"][0]["ok"]] == [True, False]
    assert second["toolCalls"][0]["result"]["error"]["type"] == "RATE_LIMIT"
    assert second["message"].strip() == "Done."
    assert handler.runs == 1


async def test_another_user_has_a_separate_quota(apps: WebApps) -> None:
    web = open_web(apps, Limit(user=ONE))
    assert (await run_of(web, user="ann"))["ok"]
    assert (await run_of(web, user="bob"))["ok"]


async def test_users_of_one_address_share_its_quota(apps: WebApps) -> None:
    web = open_web(apps, Limit(address=ONE))
    chat = Chat(web.deps)
    runs: list[ToolRun] = []
    for user in ("ann", "bob"):
        turn = await chat.enter(Caller(user, authenticated=True), ChatRequest(message="read it"), address="192.0.2.7")
        runs += (await turn.run()).tool_calls
    assert [run.ok for run in runs] == [True, False]

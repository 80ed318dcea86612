"""What one process has a session of another do, and what sessions learn from each other."""

import asyncio
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from antiphon.authoring.adapters import adapt_for_mcp
from antiphon.gateway.mcp_session_tools import session_tools
from antiphon.protocol import server_messages as s
from antiphon.session.active import PARKED_S, ActiveSession
from antiphon.session.nodes import REACH_S, CommandRefused, Nodes
from antiphon.storage.changes import Topic
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.call import ToolCall
from antiphon.tools.result import ToolResult
from antiphon.tools.session import ToolSession
from tests.fakes.calls import Client, ScriptedServers, Server, looking


def two_servers(servers: ScriptedServers, **models: Any) -> tuple[Server, Server]:
    database = MemoryDatabase()
    one = servers.open(text=["One.", "One more."], database=database, owner="one", **models)
    two = servers.open(text=["Two.", "Two more."], database=database, owner="two", **models)
    return one, two


async def echo(active: ActiveSession, body: Any) -> Any:
    return {"said": body["text"], "session": active.id}


async def stored_client(server: Server) -> Client:
    client = await Client(server).enter()
    await client.write("Hello.")
    return client


async def test_a_command_is_carried_out_where_the_session_runs(servers: ScriptedServers) -> None:
    one, two = two_servers(servers)
    two.nodes.offer("echo", echo)
    client = await stored_client(two)
    id = client.last(s.Session).session_id
    async with looking(one, two):
        assert [each.id for each in await one.nodes.elsewhere("ann")] == [id]
        assert await one.nodes.elsewhere("bob") == []
        assert await two.nodes.elsewhere("ann") == []
        assert await one.nodes.tell(id, "echo", {"text": "Hi"}) == {"said": "Hi", "session": id}


async def test_a_refusal_reaches_the_one_who_asked(servers: ScriptedServers) -> None:
    one, two = two_servers(servers)

    async def refuse(active: ActiveSession, body: Any) -> Any:
        raise CommandRefused("busy", "Not now.")

    async def fail(active: ActiveSession, body: Any) -> Any:
        raise ValueError("a fault")

    two.nodes.offer("refuse", refuse)
    two.nodes.offer("fail", fail)
    client = await stored_client(two)
    id = client.last(s.Session).session_id
    async with looking(one, two):
        for kind, reason in (("refuse", "busy"), ("fail", "internal"), ("unknown", "unknown")):
            with pytest.raises(CommandRefused) as refused:
                await one.nodes.tell(id, kind, None)
            assert refused.value.reason == reason


async def test_a_command_that_nobody_takes_is_given_up_and_not_carried_out_later(servers: ScriptedServers) -> None:
    one, two = two_servers(servers)
    taken = []

    async def note(active: ActiveSession, body: Any) -> Any:
        taken.append(body)

    two.nodes.offer("note", note)
    client = await stored_client(two)
    id = client.last(s.Session).session_id
    began_s = asyncio.get_running_loop().time()
    with pytest.raises(CommandRefused) as refused:
        await one.nodes.tell(id, "note", None)
    assert refused.value.reason == "unreached"
    assert asyncio.get_running_loop().time() - began_s == pytest.approx(REACH_S, abs=0.5)
    async with looking(two):
        await asyncio.sleep(5)
    assert taken == []


async def test_each_of_the_other_processes_answers_for_all_of_its_sessions(servers: ScriptedServers) -> None:
    one, two = two_servers(servers)
    dead = servers.open(text=["Three."], database=one.database, owner="dead")
    for each in (one, two, dead):
        each.nodes.offer_for_all("count", partial(count_sessions, each))
        await stored_client(each)
    await stored_client(two)
    async with looking(one, two):
        told = await one.nodes.tell_others("count", {"by": 1}, within_s=2)
        assert (told.results, told.unreached) == ([{"two": 2}], ["dead"])
        assert await one.nodes.tell_others("count", {"by": 1}, user="bob") == ([], [])
        unknown = await one.nodes.tell_others("unknown", None, user="ann", within_s=2)
        assert (unknown.results, sorted(unknown.unreached)) == ([], ["dead", "two"])


async def count_sessions(server: Server, body: Any) -> Any:
    return {server.hub.owner: body["by"] * len(server.hub.sessions)}


async def test_a_process_whose_last_session_has_just_ended_still_answers(servers: ScriptedServers) -> None:
    one, two = two_servers(servers)
    two.nodes.offer_for_all("count", partial(count_sessions, two))
    client = await stored_client(two)
    client.drop()
    await asyncio.sleep(PARKED_S + 1)
    assert two.hub.sessions == {}
    async with looking(two):
        assert (await one.nodes.tell_others("count", {"by": 1})).results == [{"two": 0}]


async def use(nodes: Nodes, server: Server, name: str, **args: Any) -> ToolResult:
    executor = server.gate.executor
    snapshot = executor.registry.snapshot().with_tools(session_tools(nodes, adapt_for_mcp))
    session = ToolSession(id="mcp-1", user="ann", snapshot=snapshot, zone=ZoneInfo("UTC"))
    return await executor.execute(ToolCall(None, name, args), session)


async def test_an_mcp_client_of_one_process_reaches_a_session_of_another(servers: ScriptedServers) -> None:
    one, two = two_servers(servers)
    session_tools(two.nodes, adapt_for_mcp)
    page = await stored_client(two)
    async with looking(one, two):
        shown = await use(one.nodes, one, "notify", text="The oven is hot.")
        assert shown.ok
        assert shown.data["session_id"] == page.last(s.Session).session_id
        assert page.last(s.Notice).text == "The oven is hot."
        asking = asyncio.create_task(use(one.nodes, one, "ask", question="Tea or coffee?"))
        await asyncio.sleep(3)
        assert page.last(s.Response).text == "Tea or coffee?"
        await page.write("Tea.")
        assert (await asking).data["answer"] == "Tea."
        page.drop()
        await asyncio.sleep(1)
        gone = await use(one.nodes, one, "say", text="Hi.")
        assert gone.error is not None
        assert "Nobody is connected" in gone.error.message


async def test_turns_of_another_session_are_shown_at_once(servers: ScriptedServers) -> None:
    one, two = two_servers(servers)
    async with looking(one, two):
        first = await stored_client(one)
        second = await Client(two).enter(conversation_id=first.last(s.Session).conversation_id)
        await second.write("And you?")
        await asyncio.sleep(2)
        told = first.last(s.History)
        assert [(turn.role, turn.content.strip()) for turn in told.turns] == [
            ("user", "Hello."),
            ("assistant", "One."),
            ("user", "And you?"),
            ("assistant", "Two."),
        ]
        # It is told once, not with every look.
        count = len(first.every(s.History))
        await asyncio.sleep(10)
        assert len(first.every(s.History)) == count


async def test_the_model_knows_the_turns_of_another_session(servers: ScriptedServers) -> None:
    one, two = two_servers(servers)
    async with looking(one, two):
        first = await stored_client(one)
        second = await Client(two).enter(conversation_id=first.last(s.Session).conversation_id)
        await second.write("And you?")
        await asyncio.sleep(2)
        await first.write("Go on.")
        assert first.last(s.Response).text.strip() == "One more."
        assert len(first.last(s.History).turns) == 4
        await asyncio.sleep(2)
        assert len(second.last(s.History).turns) == 6


async def test_a_client_is_told_that_its_block_was_lifted_by_another_process(servers: ScriptedServers) -> None:
    one, two = two_servers(servers)
    async with looking(one, two):
        client = await stored_client(one)
        until_ms = one.hub.clock.now_ms() + 60_000
        await two.database.blocks.block("ann", until_ms, "rude")
        await client.write("Hello?")
        assert client.last(s.Timeout).until == until_ms
        await asyncio.sleep(3)
        assert client.last(s.Timeout).until == until_ms
        await two.database.blocks.unblock("ann")
        two.database.changes.announce(Topic.PEOPLE)
        await asyncio.sleep(0.5)
        assert client.last(s.Timeout).duration_seconds == 0
        await client.write("Hello again.")
        assert client.last(s.Response).text.strip() == "One more."
        assert len(client.every(s.Timeout)) == 2

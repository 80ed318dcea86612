"""A client loses its connection in the middle of an answer, and resumes on the same server or another."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from tests.fault.servers import Client, Servers, leaving, servers_in, story

pytestmark = pytest.mark.real_time


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[Servers]:
    async with servers_in(tmp_path) as servers:
        yield servers


def clients(count: int) -> list[Client]:
    return [Client() for _ in range(count)]


async def test_a_connection_cut_anywhere_in_an_answer_loses_and_repeats_nothing(servers: Servers) -> None:
    served = await servers.start()
    rng = Random(7)

    async def lose_and_come_back(client: Client, name: str) -> None:
        asked = f"tell {name} 12"
        await client.connect(served)
        await client.send("text_message", text=asked)
        for _ in range(2):
            await client.hear_some(rng.randint(1, 6))
            client.cut()
            await asyncio.sleep(rng.uniform(0, 0.4))
            await client.resume(served)
            assert client.session["resumed"] is True
        await client.until("response")
        await client.until("state", state="idle")
        assert sorted(client.numbers) == list(range(1, len(client.numbers) + 1))
        assert "".join(chunk["text"] for chunk in client.every("response_chunk")) == story(asked)
        assert client.shown == [("user", asked), ("assistant", story(asked))]

    talking = clients(8)
    async with leaving(talking):
        await asyncio.gather(*(lose_and_come_back(each, f"s{number}") for number, each in enumerate(talking)))


async def test_messages_produced_while_disconnected_are_sent_by_another_server(servers: Servers) -> None:
    one, two = await asyncio.gather(servers.start(), servers.start())
    client = await Client().connect(one)
    async with leaving([client]):
        await client.send("text_message", text="tell s 5")
        await client.until("transcript")
        client.cut()
        await asyncio.sleep(1.5)
        seen_n = client.last_n
        before = len(client.received)
        await client.resume(two)
        await client.until("history")
        await client.until("state", state="idle")
        session, *repeated, history, _ = client.received[before:]
        assert session["resumed"] is True
        assert [message["n"] for message in repeated] == list(range(seen_n + 1, session["n"]))
        assert [message["text"] for message in repeated if message["type"] == "response"] == [story("tell s 5")]
        assert history["type"] == "history"
        assert client.shown == servers.words(client.conversation_id)
        await client.ask("tell t 2")
        assert client.shown == servers.words(client.conversation_id)
        assert len(client.shown) == 4


async def test_another_server_continues_the_answer_and_the_first_one_is_fenced(servers: Servers) -> None:
    one, two = await asyncio.gather(servers.start(), servers.start())
    rng = Random(11)

    async def move(name: str) -> int | None:
        asked, first = f"tell {name} 15", await Client().connect(one)
        await first.ask("tell before 1")
        await first.send("text_message", text=asked)
        await first.until("transcript")
        await first.hear_some(rng.randint(0, 8))
        second = await first.twin().resume(two)
        async with leaving([second]):
            assert second.session["resumed"] is True
            begun = len(second.received)
            await second.rest()
            assert next(each for each in second.received[begun:] if each["type"] == "response_chunk")["is_first"]
            assert second.shown[-2:] == [("user", asked), ("assistant", story(asked))]
            closed = await first.hear_out()
            assert second.shown == servers.words(second.conversation_id)
            await second.ask("tell after 1")
            assert second.shown == servers.words(second.conversation_id)
            assert len(second.numbers) == len(set(second.numbers))
        return closed

    closed = await asyncio.gather(*(move(f"s{number}") for number in range(6)))
    assert closed == [4409] * 6


async def test_a_turn_interrupted_by_the_user_is_not_answered_by_another_server(servers: Servers) -> None:
    one, two = await asyncio.gather(servers.start(), servers.start())
    client = await Client().connect(one)
    async with leaving([client]):
        await client.send("text_message", text="tell s 9")
        await client.until("transcript")
        await client.send("interrupt")
        await client.until("state", state="idle")
        client.cut()
        await client.resume(two)
        await client.until("state", state="idle")
        await client.ask("tell t 1")
        assert client.shown[-2:] == [("user", "tell t 1"), ("assistant", story("tell t 1"))]
        assert story("tell s 9") not in [text for _, text in servers.words(client.conversation_id)]


async def test_exactly_one_of_two_clients_with_one_handle_keeps_the_session(servers: Servers) -> None:
    one, two = await asyncio.gather(servers.start(), servers.start())

    async def contend(number: int) -> list[bool]:
        owner, rivals = await Client().connect(one), clients(2)
        async with leaving([owner, *rivals]):
            await owner.ask(f"tell s{number} 1")
            if number % 2:
                owner.cut()
            hello = {"resume": owner.handle, "last_n": owner.last_n}
            places = (one, two) if number % 4 < 2 else (two, one)
            await asyncio.gather(*(rival.connect(at, **hello) for rival, at in zip(rivals, places, strict=True)))
            # The second one is refused if it is so late that the first has confirmed its new handle.
            resumed = [rival for rival in rivals if rival.session["resumed"]]
            asked = await asyncio.gather(*(rival.ask("tell more 1") for rival in resumed), return_exceptions=True)
            assert servers.words(owner.conversation_id).count(("user", "tell more 1")) == 1
            return [each is None for each in asked]

    contests = await asyncio.gather(*(contend(number) for number in range(16)))
    assert [sum(answered) for answered in contests] == [1] * 16


async def test_a_session_can_move_back_and_forth_between_servers(servers: Servers) -> None:
    one, two = await asyncio.gather(servers.start(), servers.start())
    client = await Client().connect(one)
    async with leaving([client]):
        await client.ask("tell a 1")
        for place, served in enumerate((two, one, two, one)):
            client.cut()
            await client.resume(served)
            assert client.session["resumed"] is True
            await client.ask(f"tell b{place} 1")
        assert client.shown == servers.words(client.conversation_id)
        assert len(client.shown) == 10
        # The servers have released all earlier state of the session without harm to the current one.
        await asyncio.sleep(0.5)
        await client.ask("tell c 1")
        assert len(servers.words(client.conversation_id)) == 12


async def test_no_handle_is_stored(servers: Servers) -> None:
    served = await servers.start()
    client = await Client().connect(served)
    async with leaving([client]):
        await client.ask("tell s 1")
        client.cut()
        await client.resume(served)
        await client.ask("tell t 1")
        client.cut()
        await client.resume(served)
        stored = [text for (text,) in servers.rows("SELECT text FROM messages")]
        assert stored
        handles = {message["resume"] for message in client.every("session")}
        assert len(handles) == 3
        assert not [text for text in stored if any(handle in text for handle in handles)]

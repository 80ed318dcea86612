"""A session survives when its conversation is cleared or deleted, its store fails, or its history is long."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from antiphon.storage.conversations import Turn
from antiphon.storage.sql import open_database
from antiphon.transcript import UserMessage
from tests.fault.cuts import Listener
from tests.fault.servers import Client, Servers, leaving, recital, servers_in, story

pytestmark = pytest.mark.real_time


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[Servers]:
    async with servers_in(tmp_path) as servers:
        yield servers


# Clearing.


async def test_a_session_whose_conversation_is_cleared_during_an_answer_goes_idle(servers: Servers) -> None:
    client = await Client().connect(await servers.start())
    async with leaving([client]):
        await client.send("text_message", text="tell s 50")
        await client.until("response_chunk")
        await client.send("clear_conversation")
        await client.until("state", state="idle")
        await client.ask("who said what")
        assert client.every("response")[-1]["text"].split() == ["user"]
        assert [text for role, text in servers.words(client.conversation_id) if role == "user"] == ["who said what"]


async def test_a_call_cleared_during_a_spoken_answer_listens_again(servers: Servers) -> None:
    listener = await Listener().open(await servers.start())
    async with leaving([listener]):
        await listener.send("text_message", text="recite 12")
        await listener.until("state", state="speaking")
        await listener.send("clear_conversation")
        await listener.until("state", state="listening")
        await listener.send("text_message", text="recite 3")
        await listener.until("response", text=recital("recite 3"))


async def test_cleared_messages_are_not_replayed_to_a_client_that_resumes(servers: Servers) -> None:
    one, two = await asyncio.gather(servers.start(), servers.start())
    client = await Client().connect(one)
    async with leaving([client]):
        await client.ask("tell secret 2")
        await client.send("clear_conversation")
        await client.send("ping", t=1)
        await client.until("pong")
        client.cut()
        await client.connect(two, resume=client.handle, last_n=0)
        await client.until("history", turns=[])
        assert not [text for (text,) in servers.rows("SELECT text FROM messages") if "secret" in text]


# Deleting, and failing.


async def test_a_conversation_deleted_during_its_session_is_replaced_by_a_new_one(servers: Servers) -> None:
    client = await Client().connect(await servers.start())
    async with leaving([client]):
        await client.ask("tell before 1")
        deleted = client.conversation_id
        delete(servers, deleted)
        await client.send("text_message", text="tell after 2")
        await client.until("error", code="conversation_gone")
        introduced = await client.until("session")
        assert introduced["conversation_id"] != deleted
        await client.until("response", text=story("tell after 2"))
        await client.until("state", state="idle")
        await client.ask("who said what")
        assert client.every("response")[-1]["text"].split() == ["user", "assistant", "user"]
        words = servers.words(introduced["conversation_id"])
        assert words[:2] == [("user", "tell after 2"), ("assistant", story("tell after 2"))]


async def test_an_answer_whose_conversation_was_deleted_is_stored_in_a_new_one(
    servers: Servers,
) -> None:
    client = await Client().connect(await servers.start())
    async with leaving([client]):
        await client.send("text_message", text="tell s 8")
        await client.until("response_chunk")
        delete(servers, client.conversation_id)
        await client.until("response", text=story("tell s 8"))
        introduced = await client.until("session")
        assert servers.words(introduced["conversation_id"]) == [("user", "tell s 8"), ("assistant", story("tell s 8"))]


@pytest.mark.parametrize("table", ["turns", "sessions", "blocks"])
async def test_a_store_failure_during_one_turn_is_reported_and_the_session_continues(
    servers: Servers, table: str
) -> None:
    client = await Client().connect(await servers.start())
    async with leaving([client]):
        await client.ask("tell before 1")
        change(servers, f"ALTER TABLE {table} RENAME TO away")
        await client.send("text_message", text="tell lost 1")
        error = await client.until("error")
        assert (error["code"], error["retryable"]) == ("unavailable", True)
        await client.send("ping", t=1)
        await client.until("pong")
        change(servers, f"ALTER TABLE away RENAME TO {table}")
        assert client.state == "idle"
        await client.ask("tell after 1")
        assert client.shown[-1] == ("assistant", story("tell after 1"))
        assert client.shown == servers.words(client.conversation_id)


async def test_a_store_failure_during_an_answer_ends_the_turn_but_not_the_session(servers: Servers) -> None:
    client = await Client().connect(await servers.start())
    async with leaving([client]):
        await client.send("text_message", text="tell lost 8")
        await client.until("response_chunk")
        change(servers, "ALTER TABLE turns RENAME TO away")
        await client.until("error", code="unavailable")
        await client.until("state", state="idle")
        change(servers, "ALTER TABLE away RENAME TO turns")
        assert not client.every("response"), "an answer that is not stored is not told as whole"
        await client.ask("tell after 1")
        assert client.shown[-2:] == [("user", "tell after 1"), ("assistant", story("tell after 1"))]


# Long conversations.


async def test_a_conversation_of_five_megabytes_can_be_opened_and_resumed(servers: Servers) -> None:
    one, two = await asyncio.gather(servers.start(), servers.start())
    client = await Client().connect(one)
    async with leaving([client]):
        await client.ask("tell s 1")
        await lengthen(servers, client.conversation_id, megabytes=5)
        client.cut()
        await client.resume(two)
        assert client.session["resumed"] is True
        assert len(client.shown) < 10
        history = await client.until("history")
        assert sum(len(turn["content"]) for turn in history["turns"]) > 5 << 20
        await client.ask("tell t 1")
        assert client.shown[-1] == ("assistant", story("tell t 1"))
    other = await Client().connect(one, conversation_id=client.conversation_id)
    async with leaving([other]):
        await other.until("history")
        await other.ask("tell u 1")


async def lengthen(servers: Servers, conversation_id: str, *, megabytes: int) -> None:
    text = "word " * 200_000
    turn = Turn("user", text, False, 1, msgspec.json.encode(UserMessage(text)))
    database = await open_database(servers.folder / "antiphon.db")
    try:
        await database.conversations.append_many(conversation_id, [turn] * (megabytes + 1), None)
    finally:
        await database.aclose()


def change(servers: Servers, statement: str) -> None:
    with closing(sqlite3.connect(servers.folder / "antiphon.db", timeout=10)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        # Other tables still refer to the old name of the table.
        connection.execute("PRAGMA legacy_alter_table = ON")
        connection.execute(statement)


def delete(servers: Servers, conversation_id: str) -> None:
    with closing(sqlite3.connect(servers.folder / "antiphon.db", timeout=10)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))

"""The operator's commands: tokens, users, settings, data and the doctor."""

import http.server
import json
import re
import socket
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from antiphon.security.tokens import hash_token
from antiphon.storage.conversations import Conversation, Turn, VoiceCall
from antiphon.storage.migrations import HEAD
from antiphon.storage.reminders import ReminderRecord
from antiphon.storage.sql import Database, open_database
from tests.e2e.terminal import Shown, Terminal
from tests.fakes.toolbox import write_tool

pytestmark = pytest.mark.real_time

DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def database_of(terminal: Terminal) -> Path:
    return terminal.folder / "data" / "antiphon.db"


@asynccontextmanager
async def stores(terminal: Terminal) -> AsyncIterator[Database]:
    database = await open_database(database_of(terminal))
    try:
        yield database
    finally:
        await database.aclose()


async def fill(terminal: Terminal, user: str = "local", conversations: int = 2) -> None:
    """Stores conversations of a question and an answer each, and one call."""
    async with stores(terminal) as database:
        for number in range(conversations):
            id = f"{user}-{number}"
            await database.conversations.create(Conversation(id, user, "Tea", 1_000, 1_000))
            for role, text in (("user", "Tea?"), ("assistant", "Yes, “green”.")):
                body = json.dumps({"text": text}).encode()
                await database.conversations.append_many(id, [Turn(role, text, False, 2_000, body)], None)  # type: ignore[arg-type]
        await database.voice_calls.begin(VoiceCall(f"{user}-call", f"{user}-0", user, 1, None, "", (), 1, None), None)


def one_line(shown: Shown) -> str:
    assert shown.code == 1
    assert shown.err.startswith("antiphon: ")
    assert len(shown.err.strip().splitlines()) == 1
    return shown.err


# token


async def test_a_new_token_is_shown_once_and_kept_as_a_hash(terminal: Terminal) -> None:
    shown = terminal.run("token", "new", "--user", "ada", "--name", "phone", "--days", "7")
    token = shown.out.strip()
    assert re.fullmatch(r"apn_[\w-]{43}", token)
    assert "shown only once" in shown.err
    async with stores(terminal) as database:
        record = await database.tokens.find(hash_token(token), 0)
    assert record is not None
    assert (record.user, record.name) == ("ada", "phone")
    assert record.expires_ms is not None
    assert record.expires_ms - record.created_ms == 7 * DAY_MS


def test_without_options_a_token_belongs_to_the_local_user_and_does_not_expire(terminal: Terminal) -> None:
    shown = terminal.run("token", "new")
    assert "'local'" in shown.err
    assert "does not expire" in shown.err


def test_the_list_of_tokens_never_shows_a_token_or_its_hash(terminal: Terminal) -> None:
    token = terminal.run("token", "new", "--name", "kitchen").out.strip()
    listed = terminal.run("token", "list").out
    assert "kitchen" in listed
    assert "never" in listed
    assert token not in listed
    assert hash_token(token) not in listed


async def test_an_admin_token_is_listed_as_one(terminal: Terminal) -> None:
    shown = terminal.run("token", "new", "--user", "ada", "--admin")
    assert "admin token of the user 'ada'" in shown.err
    async with stores(terminal) as database:
        record = await database.tokens.find(hash_token(shown.out.strip()), 0)
    assert record is not None
    assert record.is_admin
    terminal.run("token", "new", "--user", "bob")
    rows = [[cell.strip() for cell in line.split("│")] for line in terminal.run("token", "list").out.splitlines()]
    admin = {row[2]: row[4] for row in rows if len(row) > 4 and row[2] in ("ada", "bob")}
    assert admin == {"ada": "yes", "bob": ""}


def test_a_revoked_token_is_gone(terminal: Terminal) -> None:
    told = terminal.run("token", "new").err
    found = re.search(r"id (\w+)", told)
    assert found is not None
    assert terminal.run("token", "revoke", found[1]).code == 0
    assert "There are no tokens" in terminal.run("token", "list").out


def test_an_expired_token_is_listed_as_expired(terminal: Terminal) -> None:
    terminal.run("token", "new", "--days", "1")
    with closing(sqlite3.connect(database_of(terminal))) as database, database:
        database.execute("UPDATE tokens SET expires_ms = 1")
    assert "(expired)" in terminal.run("token", "list").out


# users


async def test_a_blocked_user_is_listed_and_can_be_unblocked(terminal: Terminal) -> None:
    async with stores(terminal) as database:
        await database.blocks.block("mallory", time.time_ns() // 1_000_000 + DAY_MS, "threats \x1b[2J")
    listed = terminal.run("users", "list").out
    assert "mallory" in listed
    assert "\x1b" not in listed
    assert terminal.run("users", "unblock", "mallory").code == 0
    assert "No users are blocked" in terminal.run("users", "list").out


# config


def test_settings_are_shown_with_their_origin(terminal: Terminal) -> None:
    (terminal.folder / "antiphon.toml").write_text('[tools]\ndisable = ["tell_joke"]\n')
    shown = terminal.run("config", "show", ANTIPHON_AUDIT__ARGUMENTS="true").out
    assert re.search(r'^tools\.disable = \["tell_joke"\] +# antiphon\.toml$', shown, re.MULTILINE)
    assert re.search(r"^audit\.arguments = true +# ANTIPHON_AUDIT__ARGUMENTS$", shown, re.MULTILINE)
    assert re.search(r'^storage\.url = "sqlite" +# default$', shown, re.MULTILINE)


def test_settings_as_json_have_every_key(terminal: Terminal) -> None:
    shown = terminal.run("config", "show", "--json").json
    assert shown["server.port"] == {"value": 8000, "origin": "default"}
    assert shown["data_dir"] == {"value": str(terminal.folder / "data"), "origin": "ANTIPHON_DATA_DIR"}


def test_a_password_in_an_address_is_masked(terminal: Terminal) -> None:
    shown = terminal.run("config", "show", ANTIPHON_SERVER__ORIGINS="https://ada:hunter2@example.org")
    assert "hunter2" not in shown.out
    assert "https://***@example.org" in shown.out


# data


async def test_an_export_has_conversations_with_their_turns_and_calls(terminal: Terminal) -> None:
    await fill(terminal)
    await fill(terminal, user="other")
    shown = terminal.run("data", "export")
    lines = [json.loads(line) for line in shown.out.splitlines()]
    assert [line["kind"] for line in lines] == ["conversation", "conversation", "call"]
    assert {line["user"] for line in lines} == {"local"}
    assert [turn["text"] for turn in lines[0]["turns"]] == ["Tea?", "Yes, “green”."]
    assert lines[0]["turns"][0]["body"] == {"text": "Tea?"}
    assert shown.err == "Exported 2 conversations and 1 call.\n"


async def test_an_exported_file_is_readable_by_its_owner_only(terminal: Terminal) -> None:
    await fill(terminal, user="ada")
    assert terminal.run("data", "export", "--user", "ada", "--out", "ada.jsonl").out == ""
    file = terminal.folder / "ada.jsonl"
    assert len(file.read_text().splitlines()) == 3
    assert file.stat().st_mode & 0o077 == 0
    assert "exists" in one_line(terminal.run("data", "export", "--out", "ada.jsonl"))


async def test_deleting_a_user_leaves_the_others(terminal: Terminal) -> None:
    await fill(terminal, user="ada", conversations=130)
    await fill(terminal, user="bob")
    terminal.run("token", "new", "--user", "ada")
    terminal.run("token", "new", "--user", "bob")
    shown = terminal.run("data", "delete", "--user", "ada", "--yes")
    assert shown.out == "Deleted 130 conversations, 1 call and 1 token.\n"
    assert terminal.run("data", "export", "--user", "ada").out == ""
    assert len(terminal.run("data", "export", "--user", "bob").out.splitlines()) == 3
    assert "bob" in terminal.run("token", "list").out


async def test_what_the_local_user_typed_is_exported_and_deleted_with_the_rest(terminal: Terminal) -> None:
    await fill(terminal, conversations=1)
    history = terminal.folder / "data" / "chat_history"
    history.write_text("\n# 2026-01-31 10:00:00\n+Is there tea?\n\n# 2026-01-31 10:01:00\n+Thanks.\n")
    lines = [json.loads(line) for line in terminal.run("data", "export").out.splitlines()]
    assert [line["text"] for line in lines if line["kind"] == "typed"] == ["Is there tea?", "Thanks."]
    assert "Deleted nothing" in terminal.run("data", "delete", "--user", "other", "--yes").out
    assert history.exists()
    assert "2 typed lines" in terminal.run("data", "delete", "--user", "local", "--yes").out
    assert not history.exists()


async def test_reminders_are_exported_and_deleted_with_their_rings(terminal: Terminal) -> None:
    tea = ReminderRecord("r1", "local", "reminder", "make tea", 1_000, "UTC", None, 500)
    async with stores(terminal) as database:
        await database.reminders.add(tea, 10)
        await database.reminders.ring(tea, None, 1_001)
        await database.reminders.add(replace(tea, id="r2", message="drink tea"), 10)
        await database.reminders.add(replace(tea, id="r3", user="ann"), 10)
    shown = terminal.run("data", "export")
    exported = [json.loads(line) for line in shown.out.splitlines()]
    assert [(each["kind"], each["message"]) for each in exported] == [("reminder", "drink tea"), ("ring", "make tea")]
    assert "1 reminder" in terminal.run("data", "delete", "--user", "local", "--yes").out
    async with stores(terminal) as database:
        assert await database.reminders.list("local") == []
        assert await database.reminders.open_rings(["local"], 0) == []
        assert len(await database.reminders.list("ann")) == 1


async def test_nothing_is_deleted_without_confirmation(terminal: Terminal) -> None:
    await fill(terminal, user="ada")
    assert "--yes" in one_line(terminal.run("data", "delete", "--user", "ada"))
    assert len(terminal.run("data", "export", "--user", "ada").out.splitlines()) == 3


async def test_a_backup_of_a_database_in_use_is_one_complete_file(terminal: Terminal) -> None:
    await fill(terminal)
    async with stores(terminal) as in_use:
        await in_use.conversations.create(Conversation("late", "local", "Late", 3_000, 3_000))
        assert terminal.run("data", "backup", "copy.db").code == 0
    assert [path.name for path in terminal.folder.glob("*copy*")] == ["copy.db"]
    copy = await open_database(terminal.folder / "copy.db")
    try:
        assert [each.id for each in await copy.conversations.list("local", 10)] == ["late", "local-0", "local-1"]
    finally:
        await copy.aclose()


async def test_a_backup_overwrites_a_file_only_with_force(terminal: Terminal) -> None:
    await fill(terminal)
    (terminal.folder / "copy.db").write_text("precious")
    assert "--force" in one_line(terminal.run("data", "backup", "copy.db"))
    assert (terminal.folder / "copy.db").read_text() == "precious"
    assert terminal.run("data", "backup", "copy.db", "--force").code == 0
    assert (terminal.folder / "copy.db").read_bytes().startswith(b"SQLite format 3")


async def test_a_backup_cannot_overwrite_the_database_itself(terminal: Terminal) -> None:
    await fill(terminal)
    one_line(terminal.run("data", "backup", str(database_of(terminal)), "--force"))
    assert len(terminal.run("data", "export").out.splitlines()) == 3


# what cannot be done


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["token", "revoke", "nonesuch"], "antiphon token list"),
        (["token", "new", "--user", " "], "not a valid user name"),
        (["users", "unblock", "nobody"], "antiphon users list"),
        (["data", "backup", "copy.db"], "nothing to back up"),
        (["data", "export", "--out", "nowhere/x.jsonl"], "cannot be written"),
    ],
)
def test_a_command_that_cannot_be_carried_out_prints_one_clear_line(
    terminal: Terminal, words: list[str], told: str
) -> None:
    assert told in one_line(terminal.run(*words))


@pytest.mark.parametrize("words", [["token", "new"], ["users", "list"], ["data", "export"], ["data", "backup", "x"]])
def test_commands_on_stored_data_are_refused_when_storage_is_in_memory(terminal: Terminal, words: list[str]) -> None:
    assert "memory" in one_line(terminal.run(*words, ANTIPHON_STORAGE__URL="memory"))


# doctor


@pytest.fixture
def free_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """Runs a web server that answers every request with `body`, and gives its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield str(server.server_port)
        finally:
            server.shutdown()
            thread.join()


def problems(shown: Shown) -> list[str]:
    return [line for line in shown.out.splitlines() if line.startswith("problem")]


def test_the_doctor_finds_no_problem_in_a_fresh_installation(terminal: Terminal, free_port: str) -> None:
    shown = terminal.run("doctor", ANTIPHON_SERVER__PORT=free_port)
    assert shown.code == 0
    assert all(line.startswith("ok ") for line in shown.out.splitlines()[:-1])
    assert shown.out.endswith("Everything is fine.\n")


def test_the_doctor_says_how_tools_are_chosen(terminal: Terminal, free_port: str) -> None:
    shown = terminal.run("doctor", ANTIPHON_SERVER__PORT=free_port, ANTIPHON_MODEL__TOOLS_PER_TURN="6")
    [problem] = problems(shown)
    assert "tools: 6 per turn, chosen by words" in problem
    assert "antiphon models pull minilm" in problem


def test_the_doctor_tells_where_traces_go(terminal: Terminal, free_port: str) -> None:
    silent = terminal.run("doctor", ANTIPHON_SERVER__PORT=free_port)
    assert "traces: off, since no OTEL_* variable asks for them" in silent.out
    sent = terminal.run("doctor", ANTIPHON_SERVER__PORT=free_port, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318")
    assert "traces: Traces are sent to http://127.0.0.1:4318." in sent.out


def test_traces_that_cannot_be_made_are_a_problem(terminal: Terminal, free_port: str) -> None:
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    [problem] = problems(terminal.run("doctor", ANTIPHON_SERVER__PORT=free_port, **variables))
    assert "Only http/protobuf is supported" in problem


def test_the_doctor_changes_nothing(terminal: Terminal, free_port: str) -> None:
    terminal.run("doctor", ANTIPHON_SERVER__PORT=free_port)
    assert list(terminal.folder.iterdir()) == []


async def test_a_database_in_use_is_not_a_problem(terminal: Terminal, free_port: str) -> None:
    async with stores(terminal):
        shown = terminal.run("doctor", ANTIPHON_SERVER__PORT=free_port)
    assert f"tables {HEAD}" in shown.out
    assert shown.code == 0


async def test_a_database_of_a_newer_version_is_a_problem(terminal: Terminal, free_port: str) -> None:
    await fill(terminal)
    with closing(sqlite3.connect(database_of(terminal))) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    [problem] = problems(terminal.run("doctor", ANTIPHON_SERVER__PORT=free_port))
    assert "Update Antiphon" in problem


def test_a_file_that_is_not_a_database_is_a_problem(terminal: Terminal, free_port: str) -> None:
    database_of(terminal).parent.mkdir()
    database_of(terminal).write_text("A letter to my aunt. " * 100)
    [problem] = problems(terminal.run("doctor", ANTIPHON_SERVER__PORT=free_port))
    assert "not a database" in problem


def test_every_mistake_in_the_settings_is_a_problem(terminal: Terminal) -> None:
    shown = terminal.run("doctor", ANTIPHON_TOOLS__PATH="x", ANTIPHON_AUDIT__ARGUMENTS="perhaps")
    assert shown.code == 1
    assert sum("ANTIPHON_" in problem for problem in problems(shown)) == 2


def test_tools_that_do_not_build_are_a_problem(terminal: Terminal, free_port: str) -> None:
    write_tool(terminal.folder / "tools", "greet", category="wizardry")
    [problem] = problems(terminal.run("doctor", ANTIPHON_SERVER__PORT=free_port))
    assert "antiphon tools build" in problem


@pytest.mark.parametrize("body", [b"<html>", b'{"status":"ok"}', b"[]", b""])
def test_a_port_that_another_program_holds_is_a_problem(terminal: Terminal, body: bytes) -> None:
    with answering(body) as port:
        [problem] = problems(terminal.run("doctor", ANTIPHON_SERVER__PORT=port))
    assert f"port {port} is in use" in problem


def test_a_server_of_another_version_is_reported_and_not_a_problem(terminal: Terminal) -> None:
    with answering(b'{"status":"ok","name":"antiphon","version":"0.0.1"}') as port:
        shown = terminal.run("doctor", ANTIPHON_SERVER__PORT=port)
    assert f"Antiphon 0.0.1 answers at http://127.0.0.1:{port}; restart it" in shown.out
    assert shown.code == 0


def test_a_server_that_is_not_ready_is_a_problem(terminal: Terminal) -> None:
    with answering(b'{"name":"antiphon","version":"0.0.1","problems":["The voice is being loaded."]}') as port:
        [problem] = problems(terminal.run("doctor", ANTIPHON_SERVER__PORT=port))
    assert "The voice is being loaded." in problem


def test_a_server_open_to_other_machines_without_tokens_is_a_problem(terminal: Terminal, free_port: str) -> None:
    settings = {"ANTIPHON_SERVER__HOST": "0.0.0.0", "ANTIPHON_SERVER__PORT": free_port}
    [access, page] = problems(terminal.run("doctor", **settings))
    assert "antiphon token new" in access
    assert "https" in page
    terminal.run("token", "new")
    assert "(1 valid)" in terminal.run("doctor", **settings).out


def test_expired_tokens_do_not_count(terminal: Terminal, free_port: str) -> None:
    terminal.run("token", "new", "--days", "1")
    with closing(sqlite3.connect(database_of(terminal))) as database, database:
        database.execute("UPDATE tokens SET expires_ms = 1")
    shown = terminal.run("doctor", ANTIPHON_SERVER__AUTH="required", ANTIPHON_SERVER__PORT=free_port)
    assert "there are none" in problems(shown)[0]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"ANTIPHON_SERVER__AUTH": "off", "ANTIPHON_SERVER__HOST": "0.0.0.0"}, "--insecure"),
        ({"ANTIPHON_SERVER__AUTH": "required", "ANTIPHON_STORAGE__URL": "memory"}, '"memory"'),
        ({"ANTIPHON_SERVER__ORIGINS": "example.org"}, "https://example.org"),
        ({"ANTIPHON_SERVER__HOST": "192.0.2.1", "ANTIPHON_SERVER__AUTH": "off"}, "--insecure"),
        ({"ANTIPHON_MODEL__TEXT": "gpt"}, "builtin"),
    ],
)
def test_a_setting_that_would_stop_the_server_is_a_problem(
    terminal: Terminal, free_port: str, settings: dict[str, str], told: str
) -> None:
    found = problems(terminal.run("doctor", **{"ANTIPHON_SERVER__PORT": free_port, **settings}))
    assert told in found[0]


def test_a_local_model_that_answers_is_not_a_problem(terminal: Terminal, free_port: str) -> None:
    with answering(b'{"data":[]}') as port:
        model = f"openai:http://127.0.0.1:{port}/v1#qwen3"
        shown = terminal.run("doctor", ANTIPHON_SERVER__PORT=free_port, ANTIPHON_MODEL__TEXT=model)
    assert "its server answers" in shown.out
    assert shown.code == 0


def test_a_model_that_ollama_has_is_not_a_problem(terminal: Terminal, free_port: str) -> None:
    with answering(b'{"models":[{"name":"qwen3:latest"}]}') as port:
        model = f"ollama:http://127.0.0.1:{port}#qwen3"
        shown = terminal.run("doctor", ANTIPHON_SERVER__PORT=free_port, ANTIPHON_MODEL__TEXT=model)
    assert "its server answers" in shown.out
    assert shown.code == 0


def test_a_model_that_ollama_does_not_have_is_a_problem(terminal: Terminal, free_port: str) -> None:
    with answering(b'{"models":[{"name":"qwen3:8b"}]}') as port:
        model = f"ollama:http://127.0.0.1:{port}#qwen3"
        [problem] = problems(terminal.run("doctor", ANTIPHON_SERVER__PORT=free_port, ANTIPHON_MODEL__TEXT=model))
    assert f"Ollama has no model qwen3. Run: antiphon models pull {model}" in problem


def test_a_local_model_that_does_not_answer_is_a_problem(terminal: Terminal, free_port: str) -> None:
    model = "openai:http://127.0.0.1:9/v1#qwen3"
    [problem] = problems(terminal.run("doctor", ANTIPHON_SERVER__PORT=free_port, ANTIPHON_MODEL__TEXT=model))
    assert "nothing answers at http://127.0.0.1:9/v1" in problem


def test_a_model_without_its_key_is_a_problem(terminal: Terminal, free_port: str) -> None:
    told = terminal.run(
        "doctor", ANTIPHON_SERVER__PORT=free_port, ANTIPHON_MODEL__TEXT="openai:gpt-5", OPENAI_API_KEY=""
    )
    [problem] = problems(told)
    assert "Set OPENAI_API_KEY" in problem


def test_deleting_a_users_data_leaves_no_copy_of_what_tools_told_them(terminal: Terminal) -> None:
    added = {"item": "a secret present", "list": "shopping"}
    added_to = terminal.run("tools", "run", "list_add", "--args", json.dumps(added))
    assert added_to.code == 0, added_to.err
    with closing(sqlite3.connect(database_of(terminal))) as database:
        [(result,)] = database.execute("SELECT result FROM calls").fetchall()
    assert b"a secret present" in result
    terminal.run("data", "delete", "--user", "somebody", "--yes")
    with closing(sqlite3.connect(database_of(terminal))) as database:
        assert len(database.execute("SELECT id FROM calls").fetchall()) == 1
    terminal.run("data", "delete", "--user", "local", "--yes")
    with closing(sqlite3.connect(database_of(terminal))) as database:
        assert database.execute("SELECT id FROM calls").fetchall() == []

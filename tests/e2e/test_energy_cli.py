"""`antiphon energy` and `antiphon renew`, at a running server."""

import asyncio
import http.server
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from antiphon.client import Mode, connect
from antiphon.protocol import server_messages as s
from tests.e2e.terminal import Shown, Terminal

pytestmark = pytest.mark.real_time

NOBODY = "http://127.0.0.1:9"
MODEL = "ollama:http://127.0.0.1:9#qwen3"


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    return Terminal(tmp_path_factory.mktemp("energy"))


@pytest.fixture(scope="module")
def url(terminal: Terminal) -> Iterator[str]:
    """The address of a server whose best text model cannot be reached, and whose fallback is the offline assistant."""
    with terminal.serve("--port", "0", ANTIPHON_LADDER__TEXT__2=MODEL, ANTIPHON_MODEL__LOCAL_FIRST="false") as said:
        assert "After a rate limit: builtin for text." in said
        found = re.search(r"http://[\w.:]+", said[0])
        assert found is not None
        yield found[0]


def one_line(shown: Shown, code: int = 1) -> str:
    assert (shown.code, shown.out) == (code, "")
    assert shown.err.startswith("antiphon: ")
    assert shown.err.count("\n") == 1
    return shown.err.removeprefix("antiphon: ").rstrip("\n")


async def run(terminal: Terminal, *words: str) -> Shown:
    return await asyncio.to_thread(terminal.run, *words)


async def session_ids(terminal: Terminal, url: str) -> list[str]:
    """The beginning of the id of the only session, once those of earlier tests have ended."""
    while True:
        shown = await run(terminal, "energy", "show", "--json", "--url", url)
        ids = [each["session_id"][:8] for each in shown.json["sessions"]]
        if len(ids) == 1:
            return ids


async def test_the_models_of_each_level_are_shown(terminal: Terminal, url: str) -> None:
    shown = await run(terminal, "energy", "show", "--url", url)
    assert shown.code == 0
    assert shown.out.splitlines() == [
        "Text: 2 of 2, ollama:qwen3",
        "  2  ollama:qwen3",
        "  1  builtin (continues from a summary)",
        "No sessions.",
    ]


async def test_a_level_that_is_set_changes_the_model_of_the_session(terminal: Terminal, url: str) -> None:
    async with connect(f"{url}/ws", mode=Mode.TEXT) as session:
        [short] = await session_ids(terminal, url)
        shown = await run(terminal, "energy", "set", "text", "1", "--url", f"{url.replace('http', 'ws')}/ws")
        assert (shown.code, shown.out) == (0, f"Session {short} of local: text 1 of 2; in text with builtin\n")
        [answer] = [each.text async for each in session.type("What is 2 plus 3?") if isinstance(each, s.Response)]
        assert "5" in answer
        shown = await run(terminal, "energy", "show", "--json", "--url", url)
        assert [each["text"] for each in shown.json["sessions"]] == [1]


async def test_a_session_is_renewed(terminal: Terminal, url: str) -> None:
    async with connect(f"{url}/ws", mode=Mode.TEXT):
        [short] = await session_ids(terminal, url)
        await run(terminal, "energy", "set", "text", "1", "--session", short, "--url", url)
        shown = await run(terminal, "renew", "--url", url)
        assert (shown.code, shown.out) == (0, f"Session {short} connects to builtin anew, with the same context.\n")
        async with connect(f"{url}/ws", mode=Mode.TEXT):
            several = one_line(await run(terminal, "renew", "--url", url))
            assert several.startswith("there are 2 sessions. Name one of them: ")
            assert short in several
            wrong = one_line(await run(terminal, "renew", "xyz", "--url", url))
            assert wrong.startswith("there is no session 'xyz'. The sessions are ")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("energy", "set", "text", "3"), 1, "`level` must be a number from 0 to 2 for text, not 3."),
        (("energy", "set", "voice", "1"), 1, "This server has no model for voice."),
        (("energy", "set", "text", "-1"), 2, "No such option: -1"),
        (("energy", "set", "text", "best"), 2, "Input should be a valid integer"),
        (("energy", "set", "speech", "1"), 2, "'speech' is not one of 'voice', 'text'"),
        (("energy", "set", "text", "1"), 1, "There is no session whose energy could be set."),
        (("renew",), 1, "there are no sessions. Connect a client first, for example with `antiphon chat`."),
    ],
)
async def test_a_mistake_is_told_in_one_line(
    terminal: Terminal, url: str, words: tuple[str, ...], code: int, told: str
) -> None:
    assert told in one_line(await run(terminal, *words, "--url", url), code)


@pytest.mark.parametrize("words", [("energy", "show"), ("energy", "set", "text", "1"), ("renew",)])
def test_without_a_server_every_command_says_what_to_do(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert one_line(Terminal(tmp_path).run(*words, "--url", NOBODY)) == (
        f"no server can be reached at {NOBODY} (connection refused). "
        "Start one with `antiphon serve`, or give its address with --url."
    )


def test_the_server_of_the_settings_is_asked_by_default(tmp_path: Path, unused_tcp_port: int) -> None:
    told = one_line(Terminal(tmp_path).run("energy", "show", ANTIPHON_SERVER__PORT=str(unused_tcp_port)))
    assert f"http://127.0.0.1:{unused_tcp_port} " in told


def test_an_address_that_is_none_is_an_error(tmp_path: Path) -> None:
    told = one_line(Terminal(tmp_path).run("energy", "show", "--url", "localhost:8000"))
    assert told == "'localhost:8000' is not the address of a server. Write --url http://HOST:PORT."


def test_a_missing_token_is_an_error_that_says_so(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    token = terminal.run("token", "new", "--user", "ann").out.strip()
    with terminal.serve("--port", "0", ANTIPHON_SERVER__AUTH="required") as said:
        found = re.search(r"http://[\w.:]+", said[0])
        assert found is not None
        refused = one_line(terminal.run("energy", "show", "--url", found[0]))
        assert refused == "A valid token is required: Authorization: Bearer TOKEN. Give one with --token."
        shown = terminal.run("energy", "show", "--url", found[0], "--token", token)
        assert shown.out.startswith("Text: 2 of 2, builtin\n")


class Other(http.server.BaseHTTPRequestHandler):
    """Another program than Antiphon."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b"<html>")

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def other_program(status: int) -> Iterator[str]:
    handler = type("Handler", (Other,), {"status": status})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "told"),
    [(200, "is not this version of Antiphon."), (502, "is not Antiphon: it refuses with HTTP 502.")],
)
def test_another_program_at_the_address_is_recognised(tmp_path: Path, status: int, told: str) -> None:
    with other_program(status) as url:
        assert one_line(Terminal(tmp_path).run("energy", "show", "--url", url)) == f"what answers at {url} {told}"


def test_a_server_that_only_accepts_the_connection_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.cli.server_api.TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert "(timed out)" in one_line(Terminal(tmp_path).run("energy", "show", "--url", url))

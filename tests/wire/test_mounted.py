"""Antiphon inside another server: mounted under a prefix in Starlette and FastAPI, and alone in uvicorn."""

import asyncio
import gc
import json
import logging
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import structlog
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import InvalidStatus

from antiphon.asgi import (
    AntiphonApp,
    Hooks,
    NotStarted,
    SessionEnded,
    SessionStarted,
    ToolCalled,
    TurnEnded,
    create_app,
)
from antiphon.client import Disconnected, connect
from antiphon.compose.server import InsecureError, OriginError
from antiphon.config import ConfigError, load_tables
from antiphon.protocol.server_messages import Response
from antiphon.tools.spec import Mode
from tests.fakes.asgi_server import run_uvicorn

pytestmark = pytest.mark.real_time

PREFIX = "/voice"


def tables(folder: Path, **more: dict[str, Any]) -> dict[str, Any]:
    return {
        "project_dir": folder,
        "data_dir": folder / "data",
        "model": {"voice": "none"},
        "storage": {"url": "memory"},
        **more,
        "server": {"auth": "off", **more.get("server", {})},
    }


class Notes:
    """What the hooks were told, in its order."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self._changed = threading.Condition()

    async def note(self, event: Any) -> None:
        with self._changed:
            self.seen.append(event)
            self._changed.notify_all()

    async def wait_for_end(self, conversation_id: str | None) -> list[Any]:
        """Waits for the end of the session of a conversation, and returns all that was told about the session."""

        def find() -> SessionEnded | None:
            ended = (each for each in self.seen if isinstance(each, SessionEnded))
            return next((each for each in ended if each.conversation_id == conversation_id), None)

        def wait() -> SessionEnded | None:
            with self._changed:
                self._changed.wait_for(find, 20)
                return find()

        ended = await asyncio.to_thread(wait)
        assert ended is not None, self.seen
        return [each for each in self.seen if each.session_id == ended.session_id]

    def hooks(self) -> Hooks:
        return Hooks(session_started=self.note, session_ended=self.note, turn_ended=self.note, tool_called=self.note)


def starlette_with(antiphon: AntiphonApp) -> Starlette:
    return Starlette(routes=[Mount(PREFIX, antiphon)], lifespan=antiphon.lifespan)


def fastapi_with(antiphon: AntiphonApp) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with antiphon.running():
            yield

    app = FastAPI(lifespan=lifespan)
    app.mount(PREFIX, antiphon)

    @app.get("/own")
    async def own() -> dict[str, bool]:
        return {"own": True}

    return app


@pytest.fixture(scope="module")
def notes() -> Notes:
    return Notes()


@pytest.fixture(scope="module", params=[starlette_with, fastapi_with])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, notes: Notes) -> Iterator[str]:
    """`host:port` of an application that has Antiphon mounted under `PREFIX`."""
    folder = tmp_path_factory.mktemp("mounted")
    settings = tables(folder, server={"origins": ["https://friend.example"]}, audit={"arguments": True})
    with run_uvicorn(request.param(create_app(settings, hooks=notes.hooks()))) as address:
        yield address


async def ask(url: str, text: str) -> str:
    async with connect(url) as session:
        return "".join([each.text async for each in session.type(text) if isinstance(each, Response)])


async def test_the_socket_and_the_chat_answer_under_the_prefix(address: str) -> None:
    assert await ask(f"ws://{address}{PREFIX}/ws", "What is 2 plus 3?") == "2 plus 3 is 5."
    assert await ask(f"http://{address}{PREFIX}", "What is 2 plus 3?") == "2 plus 3 is 5."
    async with httpx2.AsyncClient(base_url=f"http://{address}{PREFIX}", timeout=30) as client:
        for path in ("/api/v1/chat", "/api/chat"):
            answer = await client.post(path, json={"message": "What is 4 plus 5?"})
            assert answer.json()["message"] == "4 plus 5 is 9."
        given = {"model": "builtin", "messages": [{"role": "user", "content": "What is 4 plus 5?"}]}
        completion = await client.post("/v1/chat/completions", json=given)
        assert completion.json()["choices"][0]["message"]["content"] == "4 plus 5 is 9."


async def test_the_page_its_files_and_its_headers_are_served_under_the_prefix(address: str) -> None:
    async with httpx2.AsyncClient(base_url=f"http://{address}", timeout=30, follow_redirects=True) as client:
        page = await client.get(PREFIX)
        assert page.url.path == f"{PREFIX}/"
        assert 'src="./app.js"' in page.text
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert (await client.get(f"{PREFIX}/app.js")).status_code == 200
        api = await client.get(f"{PREFIX}/api/v1/tools")
        assert api.headers["content-security-policy"].startswith("default-src 'none'")
        assert api.headers["cache-control"] == "no-store"
        described = (await client.get(f"{PREFIX}/api/v1/openapi.json")).json()
        assert described["servers"] == [{"url": PREFIX}]
        assert "/api/v1/chat" in described["paths"]
        missing = await client.get(f"{PREFIX}/api/v1/nothing")
        assert "/api/v1/openapi.json" in missing.json()["error"]["message"]


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 101),
        ("http://{address}", 101),
        ("https://friend.example", 101),
        ("http://evil.example", 403),
        ("http://127.0.0.1:1", 403),
        ("null", 403),
    ],
)
async def test_pages_of_the_same_origin_and_of_the_settings_may_connect(
    address: str, origin: str | None, status: int
) -> None:
    shown = None if origin is None else origin.format(address=address)
    headers = {} if shown is None else {"origin": shown}
    try:
        async with open_socket(f"ws://{address}{PREFIX}/ws", additional_headers=headers):
            got = 101
    except InvalidStatus as refused:
        got = refused.response.status_code
    assert got == status
    async with httpx2.AsyncClient() as client:
        response = await client.get(f"http://{address}{PREFIX}/api/v1/tools", headers=headers)
    assert response.status_code == (200 if status == 101 else status)


async def test_a_name_that_is_not_known_is_refused_also_with_its_own_page(address: str) -> None:
    headers = {"host": "rebound.example", "origin": "http://rebound.example"}
    async with httpx2.AsyncClient() as client:
        refused = await client.get(f"http://{address}{PREFIX}/api/v1/tools", headers=headers)
        assert refused.status_code == 421
        assert "server.origins" in refused.json()["error"]["message"]
        known = await client.get(f"http://{address}{PREFIX}/api/v1/tools", headers={"host": "friend.example"})
        assert known.status_code == 200


async def test_bodies_are_limited_under_the_prefix(address: str) -> None:
    body = json.dumps({"message": "x" * 2_000_000}).encode()
    async with httpx2.AsyncClient(base_url=f"http://{address}{PREFIX}", timeout=30) as client:
        for path in ("/api/v1/chat", "/api/chat"):
            refused = await client.post(path, content=body)
            assert refused.status_code == 413
        # Recordings may be longer, and this server has no voice.
        sound = await client.post("/v1/audio/transcriptions", files={"file": ("a.wav", b"x" * 2_000_000)})
        assert sound.status_code != 413


async def test_the_other_routes_of_the_application_are_untouched(address: str) -> None:
    async with httpx2.AsyncClient() as client:
        found = await client.get(f"http://{address}/own")
        assert "content-security-policy" not in found.headers
        assert (await client.get(f"http://{address}/api/v1/tools")).status_code == 404


async def test_hooks_are_told_what_happens_in_its_order(address: str, notes: Notes) -> None:
    async with connect(f"ws://{address}{PREFIX}/ws") as session:
        async for _ in session.type("What is 6 times 7?"):
            pass
        conversation = session.conversation_id
    told = await notes.wait_for_end(conversation)
    assert [type(each) for each in told] == [SessionStarted, ToolCalled, TurnEnded, SessionEnded]
    started, called, turn, ended = told
    assert (started.user, started.mode, started.resumed, started.is_request) == ("local", Mode.TEXT, False, False)
    assert (called.tool, called.outcome, called.repeated) == ("calculate", "ok", False)
    assert "6" in json.dumps(called.arguments)
    assert called.duration_ms > 0
    assert (turn.question, turn.answer, turn.tools) == ("What is 6 times 7?", "6 times 7 is 42.", ("calculate",))
    assert (turn.mode, turn.turn, turn.interrupted) == (Mode.TEXT, 1, False)
    assert turn.metrics is not None
    assert turn.metrics.total_ms is not None
    assert ended.turns == 1


async def test_a_single_request_is_a_session_of_its_own_for_the_hooks(address: str, notes: Notes) -> None:
    async with httpx2.AsyncClient(base_url=f"http://{address}{PREFIX}", timeout=30) as client:
        answer = (await client.post("/api/v1/chat", json={"message": "What is 1 plus 1?"})).json()
    started, *_ = await notes.wait_for_end(answer["conversationId"])
    assert isinstance(started, SessionStarted)
    assert started.is_request


async def test_requests_before_the_start_are_told_what_to_do(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = Starlette(routes=[Mount(PREFIX, create_app(tables(tmp_path)))])
    with run_uvicorn(app) as address:
        async with httpx2.AsyncClient() as client:
            refused = await client.get(f"http://{address}{PREFIX}/api/v1/tools")
        assert refused.status_code == 503
        assert "antiphon_app.running()" in refused.json()["error"]["message"]
        with pytest.raises(Disconnected, match=r"HTTP 503: Antiphon was not started"):
            await ask(f"ws://{address}{PREFIX}/ws", "hello")


async def test_it_runs_alone_and_changes_nothing_of_the_process(tmp_path: Path) -> None:
    before = (gc.get_freeze_count(), sys.getswitchinterval(), structlog.get_config(), logging.getLogger().handlers[:])
    handler = signal.getsignal(signal.SIGTERM)
    with run_uvicorn(create_app(tables(tmp_path)), lifespan="on") as address:
        assert await ask(f"ws://{address}/ws", "What is 2 plus 3?") == "2 plus 3 is 5."
        assert sys.getswitchinterval() == before[1]
        assert gc.get_freeze_count() == before[0]
        assert signal.getsignal(signal.SIGTERM) is handler
    after = (gc.get_freeze_count(), sys.getswitchinterval(), structlog.get_config(), logging.getLogger().handlers[:])
    assert after == before


async def test_it_can_be_started_again_but_not_twice_at_once(tmp_path: Path) -> None:
    app = create_app(tables(tmp_path))
    for _ in range(2):
        async with app.running():
            with pytest.raises(NotStarted, match="already running"):
                async with app.running():
                    pass


async def test_its_log_goes_to_the_logging_of_the_program(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(event: TurnEnded) -> None:
        raise ValueError("it is broken")

    caplog.set_level(logging.INFO)
    structlog.reset_defaults()
    with run_uvicorn(create_app(tables(tmp_path), hooks=Hooks(turn_ended=fail))) as address:
        assert await ask(f"ws://{address}/ws", "What is 2 plus 3?") == "2 plus 3 is 5."
    [failed] = [each for each in caplog.records if "hook_failed" in each.message]
    assert failed.name == "antiphon.session.hooks"
    assert failed.levelno == logging.ERROR
    assert "turn_ended" in failed.message
    assert "fail" in failed.message
    assert not structlog.is_configured()


async def test_tokens_are_required_unless_the_settings_say_otherwise(tmp_path: Path) -> None:
    settings = tables(tmp_path, server={"auth": "auto"})
    with pytest.raises(InsecureError, match=r"antiphon token new"):
        async with create_app(settings).running():
            pass


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        (
            {"server": {"prot": 1}},
            ConfigError,
            r"settings: there is no setting server.prot. The nearest",
        ),
        ({"server": {"port": "x"}}, ConfigError, r"settings: server.port is \"x\"; it must be a number"),
        ({"data_dir": 3}, ConfigError, r"settings: data_dir is 3; it must be the path of a folder"),
        ({"server": {"origins": ["friend.example"]}}, OriginError, r"is not an origin"),
        ("missing.toml", ConfigError, r"there is no settings file"),
        (3, TypeError, r"settings must be Settings, a dict"),
    ],
)
def test_bad_settings_are_refused_when_the_application_is_made(settings: Any, error: type, match: str) -> None:
    with pytest.raises(error, match=match):
        create_app(settings)


def test_tables_are_settings_that_the_environment_overrides(tmp_path: Path) -> None:
    given = {"server": {"port": 1}, "model": {"text": "ollama:a"}, "data_dir": tmp_path / "d", "project_dir": tmp_path}
    settings = load_tables(given, {"ANTIPHON_SERVER__PORT": "2"})
    assert (settings.server.port, settings.model.text) == (2, "ollama:a")
    assert (settings.project_dir, settings.data_dir) == (tmp_path, tmp_path / "d")
    assert settings.given["model.text"] == "settings"


def test_the_application_of_the_module_is_made_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import antiphon.asgi

    monkeypatch.chdir(tmp_path)
    (tmp_path / "antiphon.toml").write_text("[server]\nport = 4321\n")
    app = antiphon.asgi.app
    monkeypatch.delitem(vars(antiphon.asgi), "app")
    assert isinstance(app, AntiphonApp)
    assert app.settings.server.port == 4321
    with pytest.raises(AttributeError, match="nothing"):
        antiphon.asgi.nothing

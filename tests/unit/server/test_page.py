"""The page is served as built to allowed origins, and nothing else of the disk is served."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette

from antiphon.server.guard import Guard
from antiphon.server.page import MEDIA_TYPES, SHARED, STATIC, read_files, routes

HERE = "http://localhost:8000"
EMBEDDER = "https://shop.example"
HASHED = '"0123456789abcdef0123456789abcdef"'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text("<p>page</p>")
    (tmp_path / "admin.html").write_text("<p>operator</p>")
    (tmp_path / "app.js").write_text("run()")
    (tmp_path / "app.css").write_text("p {}")
    (tmp_path / "antiphon-client.js").write_text("export {}")
    (tmp_path / "antiphon-client.d.ts").write_text("export type {}")
    (tmp_path / "notes.txt").write_text("not for others")
    return tmp_path


def browse(folder: Path) -> httpx2.AsyncClient:
    app = Guard(Starlette(routes=routes(folder)), origins=[HERE, EMBEDDER])
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=HERE)


@pytest.fixture
async def browser(folder: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with browse(folder) as browser:
        yield browser


@pytest.mark.parametrize(
    ("path", "body", "media_type"),
    [
        ("/", "<p>page</p>", "text/html; charset=utf-8"),
        ("/admin", "<p>operator</p>", "text/html; charset=utf-8"),
        ("/app.js", "run()", "text/javascript; charset=utf-8"),
        ("/app.css", "p {}", "text/css; charset=utf-8"),
        ("/antiphon-client.js", "export {}", "text/javascript; charset=utf-8"),
        ("/antiphon-client.d.ts", "export type {}", "application/typescript; charset=utf-8"),
    ],
)
async def test_a_file_of_the_page_is_served(browser: httpx2.AsyncClient, path: str, body: str, media_type: str) -> None:
    answer = await browser.get(path)
    assert (answer.status_code, answer.text, answer.headers["content-type"]) == (200, body, media_type)


@pytest.mark.parametrize("path", ["/notes.txt", "/nothing.js", "/../page.py", "/%2e%2e/page.py", "/app.js/"])
async def test_nothing_else_is_served(browser: httpx2.AsyncClient, path: str) -> None:
    assert (await browser.get(path)).status_code in (307, 404)


async def test_a_page_cannot_be_written(browser: httpx2.AsyncClient) -> None:
    assert (await browser.post("/")).status_code == 405


async def test_a_head_request_reports_the_length_without_the_body(browser: httpx2.AsyncClient) -> None:
    answer = await browser.head("/app.js")
    assert (answer.status_code, answer.headers["content-length"], answer.content) == (200, "5", b"")


async def test_a_browser_must_revalidate_each_time(browser: httpx2.AsyncClient) -> None:
    assert (await browser.get("/app.js")).headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("written", ["{}", "W/{}", '"other", {}', "*"])
async def test_a_browser_with_the_current_version_gets_not_modified(browser: httpx2.AsyncClient, written: str) -> None:
    etag = (await browser.get("/app.js")).headers["etag"]
    answer = await browser.get("/app.js", headers={"If-None-Match": written.replace("{}", etag)})
    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag)


@pytest.mark.parametrize("written", ["", HASHED, "nonsense", ",,"])
async def test_a_browser_with_another_version_gets_the_file(browser: httpx2.AsyncClient, written: str) -> None:
    assert (await browser.get("/app.js", headers={"If-None-Match": written})).status_code == 200


async def test_different_content_has_a_different_etag(folder: Path) -> None:
    async with browse(folder) as before:
        old = (await before.get("/app.js")).headers["etag"]
    (folder / "app.js").write_text("run(2)")
    async with browse(folder) as after:
        assert (await after.get("/app.js", headers={"If-None-Match": old})).status_code == 200


async def test_the_page_has_the_strict_policy(browser: httpx2.AsyncClient) -> None:
    headers = (await browser.get("/")).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' ws")
    assert headers["x-content-type-options"] == "nosniff"


async def test_an_embedding_page_may_load_the_client(browser: httpx2.AsyncClient) -> None:
    headers = (await browser.get("/antiphon-client.js", headers={"Origin": EMBEDDER})).headers
    assert headers["access-control-allow-origin"] == EMBEDDER
    assert headers["cross-origin-resource-policy"] == "cross-origin"
    assert headers["vary"] == "Origin"


async def test_an_embedding_page_may_not_load_the_rest(browser: httpx2.AsyncClient) -> None:
    headers = (await browser.get("/app.js", headers={"Origin": EMBEDDER})).headers
    assert "access-control-allow-origin" not in headers
    assert headers["cross-origin-resource-policy"] == "same-origin"


async def test_a_page_that_is_not_allowed_may_not_load_the_client(browser: httpx2.AsyncClient) -> None:
    answer = await browser.get("/antiphon-client.js", headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403


async def test_under_another_name_nothing_is_served(browser: httpx2.AsyncClient) -> None:
    assert (await browser.get("/", headers={"Host": "evil.example"})).status_code == 421


async def test_a_page_that_was_never_built_is_explained(tmp_path: Path) -> None:
    async with browse(tmp_path) as browser:
        answer = await browser.get("/")
    assert answer.status_code == 503
    assert "make web" in answer.text


# What is committed.


def test_the_page_is_built() -> None:
    assert set(read_files()) >= {"index.html", "app.js"} | SHARED


def test_the_build_has_nothing_that_would_not_be_served() -> None:
    assert [path.name for path in STATIC.iterdir() if path.suffix not in MEDIA_TYPES] == []


def test_the_page_loads_nothing_but_its_own_files() -> None:
    named = re.findall(r'(?:src|href)="([^"]*)"', (STATIC / "index.html").read_text())
    own = {f"./{name}" for name in read_files()}
    assert [address for address in named if address not in own and not address.startswith("data:")] == []


def test_the_page_has_no_code_or_style_in_it_that_its_policy_refuses() -> None:
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", page) == []


def test_the_worklets_stand_alone() -> None:
    # Not every browser lets a worklet import, and a piece that it shared with the page would be a file of its own.
    assert re.findall(r"\bimport\b", (STATIC / "antiphon-worklets.js").read_text()) == []

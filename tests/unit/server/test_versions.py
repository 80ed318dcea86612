"""Every route of the HTTP interface has its documented path below /api/v1/, and an alias without the version."""

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute

from antiphon.security.paths import local_path, unversioned, versioned
from antiphon.server.app import refuse_method, refuse_path, with_versions
from antiphon.server.guard import Guard
from antiphon.server.http import OPERATIONS
from antiphon.server.openapi import document

HERE = "http://localhost:8000"


async def show(request: Request) -> Response:
    return JSONResponse({"path": request.url.path, **request.path_params})


async def read(request: Request) -> Response:
    return JSONResponse(len(await request.body()))


def browse(prefix: str = "") -> httpx2.AsyncClient:
    routes = [
        Route("/api/things/{id}", show, methods=["GET"]),
        Route("/api/things/{id}", read, methods=["PUT"]),
        Route("/health", show),
    ]
    app = Starlette(routes=with_versions(routes), exception_handlers={404: refuse_path, 405: refuse_method})
    guarded = Guard(app, origins=[HERE], body_limits={"/api/things/1": 5})
    mounted = Starlette(routes=[Mount(prefix, guarded)]) if prefix else guarded
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(mounted), base_url=f"{HERE}{prefix}")


@pytest.mark.parametrize("prefix", ["", "/voice", "/a/b"])
async def test_both_paths_have_the_same_handlers_and_limits(prefix: str) -> None:
    async with browse(prefix) as client:
        for path in ("/api/v1/things/1", "/api/things/1"):
            assert (await client.get(path)).json() == {"path": f"{prefix}{path}", "id": "1"}
            assert (await client.put(path, content=b"12345")).json() == 5
            assert (await client.put(path, content=b"123456")).status_code == 413
            refused = await client.delete(path)
            assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, PUT")
        # Another thing has the usual limit.
        assert (await client.put("/api/v1/things/2", content=b"123456")).json() == 6
        assert (await client.get("/api/v2/things/1")).status_code == 404
        assert (await client.get("/api/v1/health")).status_code == 404


def test_only_routes_of_the_interface_have_a_version() -> None:
    socket = WebSocketRoute("/ws", lambda socket: None)
    routes = with_versions([socket, Route("/v1/audio/speech", show), Route("/api/chat", show, methods=["POST"])])
    assert [getattr(each, "path", "") for each in routes] == ["/ws", "/v1/audio/speech", "/api/chat", "/api/v1/chat"]


def test_the_document_lists_the_versions_and_mentions_the_aliases() -> None:
    described = document()
    assert set(described["paths"]) == {versioned(each.path) for each in OPERATIONS}
    assert not [path for path in described["paths"] if path.startswith("/api/") and not path.startswith("/api/v1/")]
    assert "alias" in described["info"]["description"]


@pytest.mark.parametrize(
    ("path", "version"),
    [("/api/chat", "/api/v1/chat"), ("/api/kb/{id}", "/api/v1/kb/{id}"), ("/health", "/health"), ("/v1/x", "/v1/x")],
)
def test_a_path_and_its_version_lead_to_each_other(path: str, version: str) -> None:
    assert (versioned(path), versioned(version)) == (version, version)
    assert (unversioned(version), unversioned(path)) == (path, path)


@pytest.mark.parametrize(
    ("path", "root", "inside"),
    [
        ("/voice/api/chat", "/voice", "/api/chat"),
        ("/voice", "/voice", "/"),
        ("/voice/", "/voice/", "/"),
        ("/voices/x", "/voice", "/voices/x"),
        ("/api/chat", "", "/api/chat"),
    ],
)
def test_the_prefix_of_a_mounted_application_is_not_part_of_its_paths(path: str, root: str, inside: str) -> None:
    assert local_path({"path": path, "root_path": root}) == inside

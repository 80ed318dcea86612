"""Serves the web page and the client module, as `web/` was built."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

STATIC: Final = Path(__file__).parent / "static"
INDEX: Final = "index.html"
PATHS: Final = {INDEX: "/", "admin.html": "/admin"}
"""Where a file is served that is not served under its own name."""
SHARED: Final = frozenset({"antiphon-client.js", "antiphon-client.d.ts", "antiphon-worklets.js"})
"""Files that allowed pages of other origins may load too."""

# Not from `mimetypes`, which depends on the machine: on some, a script is text/plain.
MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".ts": "application/typescript; charset=utf-8",
}
NOT_BUILT: Final = (
    "Antiphon is running, but its page is not built: run `make web` and start the server again.\n"
    "Until then, talk to it with `antiphon chat`, or over /ws and /api/chat.\n"
)


@dataclass(frozen=True, slots=True)
class PageFile:
    body: bytes
    media_type: str
    is_shared: bool

    @property
    def etag(self) -> str:
        return f'"{sha256(self.body).hexdigest()[:32]}"'


def read_files(folder: Path = STATIC) -> dict[str, PageFile]:
    """Reads the files of the build. Only the types that a page consists of are served."""
    if not (folder / INDEX).is_file():
        return {}
    return {
        path.name: PageFile(path.read_bytes(), MEDIA_TYPES[path.suffix], path.name in SHARED)
        for path in sorted(folder.iterdir())
        if path.suffix in MEDIA_TYPES
    }


def routes(folder: Path = STATIC) -> list[Route]:
    """Makes a route for each file, so that no other file can be requested."""
    files = read_files(folder)
    if not files:
        return [Route("/", _explain)]
    return [Route(PATHS.get(name, f"/{name}"), _endpoint(file)) for name, file in files.items()]


async def _explain(request: Request) -> Response:
    return PlainTextResponse(NOT_BUILT, 503)


def _endpoint(file: PageFile) -> Callable[[Request], Awaitable[Response]]:
    # The names never change, so a browser asks each time, and is mostly told to use its copy.
    headers = {"etag": file.etag, "cache-control": "no-cache"}
    if file.is_shared:
        headers |= {"cross-origin-resource-policy": "cross-origin", "vary": "Origin"}

    async def endpoint(request: Request) -> Response:
        origin = request.headers.get("origin")
        # The guard has already checked the origin.
        allowed = {"access-control-allow-origin": origin} if file.is_shared and origin else {}
        if _has_it(request.headers.get("if-none-match", ""), file.etag):
            return Response(status_code=304, headers=headers | allowed)
        return Response(file.body, headers=headers | allowed, media_type=file.media_type)

    return endpoint


def _has_it(if_none_match: str, etag: str) -> bool:
    known = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return etag in known or known == ["*"]

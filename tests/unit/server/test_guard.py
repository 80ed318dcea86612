"""What the wire tests cannot make uvicorn do."""

from collections.abc import Iterable

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from antiphon.server.guard import MAX_BODY_BYTES, Guard

HEADERS = [(b"host", b"localhost:8000")]


class Visit:
    """One request to a guarded application, and its outcome."""

    def __init__(
        self, *, kind: str = "http", headers: Iterable[tuple[bytes, bytes]] = HEADERS, **scope: object
    ) -> None:
        self.scope: Scope = {"type": kind, "path": "/api/echo", "method": "POST", "headers": list(headers), **scope}
        self.sent: list[Message] = []
        self.reached = False

    async def make(self, app: ASGIApp | None = None, *, chunks: Iterable[bytes] = ()) -> None:
        arriving = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
        arriving.append({"type": "http.request", "body": b"", "more_body": False})

        async def receive() -> Message:
            return arriving.pop(0)

        async def send(message: Message) -> None:
            self.sent.append(message)

        async def note(scope: Scope, receive: Receive, send: Send) -> None:
            self.reached = True
            await (app or answer)(scope, receive, send)

        await Guard(note, origins=["http://localhost:8000"])(self.scope, receive, send)

    @property
    def statuses(self) -> list[int]:
        return [message["status"] for message in self.sent if "status" in message]


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"read"})


async def raise_when_the_client_is_gone(scope: Scope, receive: Receive, send: Send) -> None:
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] == "http.disconnect":
        await send({"type": "http.response.start", "status": 500, "headers": []})
        raise RuntimeError("gone")


async def test_a_handshake_is_refused_by_closing_where_responses_are_unsupported() -> None:
    visit = Visit(kind="websocket", headers=[*HEADERS, (b"origin", b"https://evil.example")])
    await visit.make()
    assert visit.sent == [{"type": "websocket.close"}]


async def test_a_handshake_is_refused_with_an_explanation_where_supported() -> None:
    headers = [*HEADERS, (b"origin", b"https://evil.example")]
    visit = Visit(kind="websocket", headers=headers, extensions={"websocket.http.response": {}})
    await visit.make()
    assert visit.statuses == [403]


@pytest.mark.parametrize(
    ("headers", "statuses"),
    [
        ([], [421]),
        ([(b"host", b"evil.example")], [421]),
        ([(b"host", b"localhost:8000"), (b"host", b"localhost:8000")], [421]),
        ([(b"host", b"localhost")], [200]),
        ([*HEADERS, (b"origin", b"http://localhost:8000"), (b"origin", b"http://localhost:8000")], [403]),
        ([*HEADERS, (b"origin", b"\xff\xfe")], [403]),
        ([*HEADERS, (b"origin", b"")], [403]),
        ([*HEADERS, (b"content-length", b"1048577")], [413]),
        ([*HEADERS, (b"content-length", b"9" * 4000)], [413]),
        ([*HEADERS, (b"content-length", b"1048576")], [200]),
    ],
)
async def test_headers_decide_who_may_connect(headers: list[tuple[bytes, bytes]], statuses: list[int]) -> None:
    visit = Visit(headers=headers)
    await visit.make()
    assert (visit.statuses, visit.reached) == (statuses, statuses == [200])


async def test_a_body_of_undeclared_length_may_have_a_mebibyte() -> None:
    visit = Visit()
    await visit.make(chunks=[b"x" * 65_536] * (MAX_BODY_BYTES // 65_536))
    assert visit.statuses == [200]


@pytest.mark.parametrize("app", [answer, raise_when_the_client_is_gone])
async def test_a_longer_body_is_answered_with_413_whatever_the_application_does(app: ASGIApp) -> None:
    visit = Visit()
    await visit.make(app, chunks=[b"x" * 65_536] * 17)
    assert visit.statuses == [413]


async def test_an_error_of_the_application_is_not_swallowed() -> None:
    async def fail(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("ours")

    with pytest.raises(RuntimeError, match="ours"):
        await Visit().make(fail)


async def test_lifespan_events_pass_through() -> None:
    visit = Visit(kind="lifespan", headers=[])
    await visit.make()
    assert visit.reached

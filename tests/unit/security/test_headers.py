import pytest
from starlette.types import Message, Receive, Scope, Send

from antiphon.security.headers import SecurityHeaders, page_policy


async def headers_of(path: str, given: list[tuple[bytes, bytes]] | None = None, kind: str = "http") -> dict[str, str]:
    sent: list[Message] = []
    start = "http.response.start" if kind == "http" else "websocket.http.response.start"

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": start, "status": 200, "headers": given or []})

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    await SecurityHeaders(app, ["http://localhost:8000"])({"type": kind, "path": path}, receive, send)
    names = [name for name, _ in sent[0]["headers"]]
    assert len(names) == len(set(names))
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}


def directives(policy: str) -> dict[str, list[str]]:
    return {name: values for name, *values in (each.split() for each in policy.split(";"))}


def test_the_page_runs_only_our_own_code() -> None:
    policy = directives(page_policy(["http://localhost:8000"]))
    assert policy["default-src"] == ["'none'"]
    assert [policy[kind] for kind in ("script-src", "style-src", "worker-src")] == [["'self'"]] * 3


def test_the_policy_has_no_exception_for_inline_code() -> None:
    assert "unsafe" not in page_policy(["http://localhost:8000"])


def test_the_page_talks_to_the_sockets_of_its_own_origins_only() -> None:
    policy = directives(page_policy(["http://localhost:8000", "https://talk.example.com", "app://antiphon", "null"]))
    assert policy["connect-src"] == ["'self'", "ws://localhost:8000", "wss://talk.example.com"]


@pytest.mark.parametrize("directive", ["default-src", "base-uri", "form-action"])
def test_features_the_page_does_not_need_are_disabled(directive: str) -> None:
    assert directives(page_policy([]))[directive] == ["'none'"]


@pytest.mark.parametrize("directive", ["font-src", "object-src", "manifest-src"])
def test_the_default_policy_denies_everything_not_named(directive: str) -> None:
    assert directive not in directives(page_policy([]))


def test_the_policy_omits_ipv6_addresses_since_browsers_refuse_them() -> None:
    assert directives(page_policy(["http://[::1]:8000"]))["connect-src"] == ["'self'"]


def test_no_other_site_may_frame_the_page() -> None:
    assert directives(page_policy([]))["frame-ancestors"] == ["'self'"]


@pytest.mark.parametrize(("path", "frames"), [("/", "SAMEORIGIN"), ("/api/chat", "DENY")])
async def test_every_response_forbids_sniffing_framing_and_referrers(path: str, frames: str) -> None:
    headers = await headers_of(path)
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == frames
    assert headers["referrer-policy"] == "no-referrer"


async def test_only_the_page_itself_may_use_the_microphone() -> None:
    assert "microphone=(self), camera=()" in (await headers_of("/"))["permissions-policy"]


async def test_an_api_response_may_load_nothing_and_is_not_cached() -> None:
    headers = await headers_of("/api/conversations")
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["cache-control"] == "no-store"


async def test_a_route_keeps_the_headers_that_it_sets() -> None:
    headers = await headers_of("/preview", [(b"Content-Security-Policy", b"sandbox")])
    assert headers["Content-Security-Policy"] == "sandbox"
    assert "content-security-policy" not in headers


async def test_a_refused_handshake_has_the_headers_too() -> None:
    assert (await headers_of("/ws", kind="websocket"))["x-content-type-options"] == "nosniff"

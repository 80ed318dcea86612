"""What is asked of image services, and what comes of their answers. The servers answer as the vendors' do."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import openai
import pytest
from google import genai
from google.genai import types

from antiphon.services.http.network import Network, authority
from antiphon.services.images import ImageService
from antiphon.services.images.formats import MAX_IMAGE_BYTES
from antiphon.tools.capabilities.images import Shape
from antiphon.tools.errors import ErrorType
from tests.fakes.chat_server import HANG_UP, Answer, ChatServer, End, Request, refusal
from tests.fakes.image_api import (
    FORBIDDEN,
    GEMINI_MODEL,
    JPEG,
    KEY,
    OPENAI_MODEL,
    PNG,
    SVG,
    WEBP,
    encoded,
    gemini_answer,
    gemini_api,
    gemini_image,
    gemini_refusal,
    openai_answer,
    openai_api,
    openai_refusal,
    told,
)
from tests.fakes.local_http import FakeInternet, LocalServer, Reply, serve
from tests.fakes.tls_proxy import tls_proxy
from tests.unit.services.images.services import failure_of, gemini_service, make, openai_service, stored

pytestmark = pytest.mark.real_time

PUBLIC: Final = "93.184.215.14"
Open = Callable[..., AbstractAsyncContextManager[tuple[ImageService, ChatServer]]]

SERVICES: Final = pytest.mark.parametrize("opened", [openai_service, gemini_service], ids=["openai", "gemini"])


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)


# The servers of these tests are like the originals: the vendors' own SDKs can use them.


async def test_the_sdk_of_openai_gets_an_image_from_the_test_server() -> None:
    async with (
        ChatServer(openai_api()) as server,
        openai.AsyncOpenAI(base_url=server.url, api_key=KEY, max_retries=0) as client,
    ):
        answer = await client.images.generate(model=OPENAI_MODEL, prompt="a lighthouse", output_format="png")
        with pytest.raises(openai.BadRequestError, match="response_format"):
            await client.images.generate(model=OPENAI_MODEL, prompt="a", response_format="b64_json")
    assert answer.data is not None
    assert answer.data[0].b64_json == encoded(PNG)


async def test_the_sdk_of_google_gets_an_image_from_the_test_server() -> None:
    async with ChatServer(gemini_api) as server:
        options = types.HttpOptions(base_url=server.url.removesuffix("/v1"), api_version="v1beta")
        async with genai.Client(api_key=KEY, http_options=options).aio as client:
            config = types.GenerateContentConfig(
                response_modalities=["IMAGE"], image_config=types.ImageConfig(aspect_ratio="3:2")
            )
            answer = await client.models.generate_content(model=GEMINI_MODEL, contents="a lighthouse", config=config)
    assert answer.parts is not None
    assert answer.parts[0].inline_data is not None
    assert answer.parts[0].inline_data.data == PNG


# What is asked


async def test_a_model_of_openai_is_asked_for_one_png(tmp_path: Path) -> None:
    async with openai_service(tmp_path, openai_api()) as (images, server):
        made = await make(images, "a lighthouse", Shape.LANDSCAPE)
    assert server.requests[0].body == {
        "model": OPENAI_MODEL,
        "prompt": "a lighthouse",
        "n": 1,
        "output_format": "png",
        "size": "1536x1024",
    }
    assert (made.media_type, made.size_bytes, made.model) == ("image/png", len(PNG), f"openai:{OPENAI_MODEL}")


async def test_another_model_is_asked_for_base64_and_chooses_its_own_size(tmp_path: Path) -> None:
    async with openai_service(tmp_path, openai_api("flux"), "flux") as (images, server):
        await make(images)
    assert server.requests[0].body == {
        "model": "flux",
        "prompt": "a lighthouse",
        "n": 1,
        "response_format": "b64_json",
    }


async def test_a_model_of_openai_under_another_name_is_asked_again_in_its_own_terms(tmp_path: Path) -> None:
    api = openai_api()

    def proxy(request: Request) -> Answer:
        return api(Request(request.path, request.headers, {**request.body, "model": OPENAI_MODEL}))

    async with openai_service(tmp_path, proxy, "my-images") as (images, server):
        assert (await make(images)).media_type == "image/png"
    assert len(server.requests) == 2


async def test_gemini_is_asked_for_an_image_in_proportions(tmp_path: Path) -> None:
    async with gemini_service(tmp_path, gemini_api) as (images, server):
        made = await make(images, "a lighthouse", Shape.PORTRAIT)
    assert server.requests[0].body == {
        "contents": [{"role": "user", "parts": [{"text": "a lighthouse"}]}],
        "generationConfig": {"responseModalities": ["IMAGE"], "imageConfig": {"aspectRatio": "2:3"}},
    }
    assert made.model == f"gemini:{GEMINI_MODEL}"


# Images in other places


async def test_a_public_address_is_fetched_at_the_very_address_that_was_checked(tmp_path: Path) -> None:
    answer = told({"data": [{"url": "https://images.example.org/a/b.png?signed=1"}]})
    async with serve(lambda request: Reply(PNG)) as public, tls_proxy(public.port, tmp_path) as proxy:
        # Resolved a second time, the name would lead to this machine.
        server = replace(public, port=authority(proxy.url)[1])
        internet = FakeInternet(server, {"images.example.org": [[PUBLIC], ["127.0.0.1"]]})
        proxy.trusts.check_hostname = False  # Its certificate is for this machine.
        network = Network(internet.resolve, internet, proxy.trusts)
        async with openai_service(tmp_path, [answer], "flux", network) as (images, _):
            assert (await make(images)).media_type == "image/png"
    assert internet.dialled == [(PUBLIC, 443)]
    (request,) = public.received
    assert (request.path, request.query, request.headers["host"]) == (
        "/a/b.png",
        {"signed": "1"},
        "images.example.org",
    )
    assert "authorization" not in request.headers


async def test_an_address_on_the_same_server_is_fetched_without_the_key(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        if request.method == "GET":
            return told(JPEG)
        return told({"data": [{"url": f"http://{request.headers['host']}/generated/1.jpg"}]})

    async with openai_service(tmp_path, answer, "flux") as (images, server):
        assert (await make(images)).media_type == "image/jpeg"
    assert server.requests[1].path == "/generated/1.jpg"
    assert "authorization" not in server.requests[1].headers


async def test_the_server_cannot_send_the_download_to_another_private_address(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        if request.method == "GET":
            return Answer((), 302, {"location": "http://127.0.0.2:8080/x.png"})
        return told({"data": [{"url": f"http://{request.headers['host']}/generated/1.jpg"}]})

    async with openai_service(tmp_path, answer, "flux") as (images, _):
        assert "didn't send a picture" in (await failure_of(images)).message
    assert await stored(images) == []


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.2:1/x.png",
        "https://localhost/x.png",
        "https://10.0.0.1/x.png",
        "https://169.254.169.254/latest/meta-data",
        "https://[::ffff:127.0.0.1]/x.png",
        "https://[fd00::1]/x.png",
        "https://images.example.org:8443/x.png",
        "http://images.example.org/x.png",
        "file:///etc/passwd",
        "ftp://127.0.0.1/x.png",
        "not an address",
    ],
)
async def test_an_address_that_is_not_public_is_not_fetched(tmp_path: Path, address: str) -> None:
    answer = told({"data": [{"url": address}]})
    names = {"localhost": [["127.0.0.1"]], "images.example.org": [[PUBLIC]]}
    internet = FakeInternet(LocalServer(lambda request: Reply(PNG)), names)
    async with openai_service(tmp_path, [answer], "flux", internet.network()) as (images, server):
        failure = await failure_of(images)
    assert failure.type is ErrorType.TRANSIENT
    assert internet.dialled == []
    assert len(server.requests) == 1
    assert await stored(images) == []


async def test_a_data_url_is_decoded(tmp_path: Path) -> None:
    answer = told({"data": [{"url": f"data:image/webp;base64,{encoded(WEBP)}"}]})
    async with openai_service(tmp_path, [answer], "flux") as (images, _):
        assert (await make(images)).media_type == "image/webp"


async def test_a_sketch_of_a_model_that_thinks_is_not_the_image(tmp_path: Path) -> None:
    answer = gemini_answer(gemini_image(JPEG, thought=True), {"text": "Done."}, gemini_image(PNG))
    async with gemini_service(tmp_path, [answer]) as (images, _):
        assert (await make(images)).media_type == "image/png"


# What goes wrong

FAILURES: Final[dict[str, tuple[Answer, ErrorType]]] = {
    "500": (openai_refusal(500, "The server had an error."), ErrorType.TRANSIENT),
    "503 without JSON": (refusal(503, "<html>busy</html>"), ErrorType.TRANSIENT),
    "400": (openai_refusal(400, "Invalid value."), ErrorType.PERMANENT),
    "404": (openai_refusal(404, "The model does not exist.", "model_not_found"), ErrorType.PERMANENT),
    "401": (openai_refusal(401, "Incorrect API key provided: sk-image-test."), ErrorType.AUTH),
    "403": (openai_refusal(403, "Your organization must be verified."), ErrorType.AUTH),
    "429": (openai_refusal(429, "Rate limit reached."), ErrorType.RATE_LIMIT),
    "redirect": (Answer((), 307, {"location": "http://127.0.0.1:1/"}), ErrorType.PERMANENT),
    "broken JSON": (told(b'{"data": [{"b64_json": "iVBOR'), ErrorType.TRANSIENT),
    "another shape": (told({"data": {"candidates": 3}, "candidates": "none"}), ErrorType.TRANSIENT),
    "nothing": (told({"data": [], "candidates": []}), ErrorType.TRANSIENT),
    "a web page": (told(b"<!doctype html><title>Welcome</title>"), ErrorType.TRANSIENT),
    "hang up": (HANG_UP, ErrorType.TRANSIENT),
    "cut off": (Answer((b'{"data": [',), end=End.CUT), ErrorType.TRANSIENT),
    "compressed": (Answer((b"\x1f\x8b",), headers={"content-encoding": "gzip"}), ErrorType.TRANSIENT),
    "endless": (Answer((bytes(1 << 20),) * 40), ErrorType.PERMANENT),
}


@SERVICES
@pytest.mark.parametrize("name", FAILURES)
async def test_a_failure_has_its_type_and_a_sentence_and_leaves_nothing(
    tmp_path: Path, opened: Open, name: str
) -> None:
    answer, type = FAILURES[name]
    async with opened(tmp_path, lambda _: answer) as (images, _):
        failure = await failure_of(images)
    assert failure.type is type
    assert failure.message.endswith(".")
    assert not any(word in failure.message for word in ("HTTP", "JSON", "127.0.0.1", "openai", "gemini"))
    assert KEY not in f"{failure.message} {failure.suggestion}"
    assert await stored(images) == []


@SERVICES
async def test_a_prompt_that_is_declined_is_a_permanent_failure(tmp_path: Path, opened: Open) -> None:
    api = openai_api() if opened is openai_service else gemini_api
    async with opened(tmp_path, api) as (images, _):
        failure = await failure_of(images, f"a picture of {FORBIDDEN}")
    assert failure.type is ErrorType.PERMANENT
    assert "rules about content" in failure.message


@pytest.mark.parametrize("finish", ["IMAGE_SAFETY", "PROHIBITED_CONTENT", "IMAGE_RECITATION"])
async def test_an_answer_that_gemini_withholds_counts_as_declined(tmp_path: Path, finish: str) -> None:
    async with gemini_service(tmp_path, [gemini_answer(finish=finish)]) as (images, _):
        assert "rules about content" in (await failure_of(images)).message


@pytest.mark.parametrize(
    "image",
    [SVG, b"GIF89a" + bytes(20), b"\x89PNG\r\n\x1a\n<svg>", b"", b"hello"],
    ids=["svg", "gif", "png", "0", "text"],
)
@SERVICES
async def test_what_is_not_a_png_jpeg_or_webp_is_not_stored(tmp_path: Path, opened: Open, image: bytes) -> None:
    answer = openai_answer(image) if opened is openai_service else gemini_answer(gemini_image(image, "image/png"))
    async with opened(tmp_path, [answer]) as (images, _):
        failure = await failure_of(images)
    assert failure.type is ErrorType.TRANSIENT
    assert "didn't send a picture" in failure.message
    assert await stored(images) == []


async def test_an_image_over_the_limit_is_refused(tmp_path: Path) -> None:
    async with openai_service(tmp_path, [openai_answer(PNG + bytes(MAX_IMAGE_BYTES))]) as (images, _):
        failure = await failure_of(images)
    assert failure.type is ErrorType.PERMANENT
    assert "too large" in failure.message


async def test_base64_that_is_none_is_no_picture(tmp_path: Path) -> None:
    async with openai_service(tmp_path, [told({"data": [{"b64_json": "%%%"}]})]) as (images, _):
        assert "didn't send a picture" in (await failure_of(images)).message


async def test_a_rate_limit_says_how_long_to_wait(tmp_path: Path) -> None:
    answer = openai_refusal(429, "Rate limit reached.", "rate_limit_exceeded", retry_after="17")
    async with openai_service(tmp_path, [answer]) as (images, _):
        failure = await failure_of(images)
    assert (failure.retry_after_s, failure.retryable) == (17.0, True)


async def test_gemini_says_in_the_body_how_long_to_wait(tmp_path: Path) -> None:
    delay: dict[str, Any] = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
    answer = gemini_refusal(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", delay)
    async with gemini_service(tmp_path, [answer]) as (images, _):
        assert (await failure_of(images)).retry_after_s == 34.5


async def test_an_invalid_key_of_gemini_is_about_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "wrong")
    async with gemini_service(tmp_path, gemini_api) as (images, _):
        failure = await failure_of(images)
    assert failure.type is ErrorType.AUTH
    assert "GEMINI_API_KEY" in (failure.suggestion or "")


async def test_nobody_at_the_address_is_a_failure_for_now(tmp_path: Path) -> None:
    async with openai_service(tmp_path, []) as (images, server):
        server._server.close()
        await server._server.wait_closed()
        failure = await failure_of(images)
    assert failure.type is ErrorType.TRANSIENT
    assert "can't reach" in failure.message


async def test_a_service_that_does_not_come_to_an_end_is_given_up(tmp_path: Path) -> None:
    async with openai_service(tmp_path, [Answer((b"{",), end=End.STALL)]) as (images, server):
        images._make_s = 0.2
        failure = await failure_of(images)
        await asyncio.wait_for(server.left.wait(), 5)
    assert failure.type is ErrorType.TRANSIENT
    assert "too long" in failure.message

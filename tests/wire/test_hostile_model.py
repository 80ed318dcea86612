"""A model server that misbehaves: the user learns what happened, and other sessions are unaffected."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon.authoring.scaffold import create
from antiphon.config import TextLadder
from tests.fakes.hostile_model import Mode, hostile_model
from tests.wire.caller import Caller, Message, call
from tests.wire.served import UNLIMITED, Served, serve

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]

MAX_GROWTH_BYTES: Final = 50 << 20
TEXT: Final = {"mode": "text"}

FAILURES: Final = {
    Mode.ENDLESS_LINE: ("too_long", "a line"),
    Mode.ENDLESS_ANSWER: ("too_long", "an answer of more than"),
    Mode.ENDLESS_ARGUMENTS: ("too_long", "arguments"),
    Mode.ENDLESS_ERROR: ("server_error", "HTTP 500"),
    Mode.COMPRESSED_BOMB: ("invalid_response", "did not answer with a chat completion"),
    Mode.THOUSAND_CALLS: ("too_long", "tool calls in one message"),
    Mode.CUT_STREAM: ("cut_off", "was cut off"),
    Mode.CUT_CALL: ("cut_off", "was cut off"),
    Mode.REDIRECT: ("redirected", "redirect"),
    Mode.SILENCE: ("empty", "said nothing"),
    Mode.SAME_CALL: ("looped", "without answering"),
    Mode.SAME_SENTENCE: ("looped", "repeated itself"),
    Mode.GARBAGE: ("invalid_response", "did not answer with a chat completion"),
    Mode.ERROR_500: ("server_error", "HTTP 500"),
    Mode.HANG_UP: ("unreachable", "cannot be reached"),
}
"""Each mode with the kind of failure in the log, and words of the message to the user."""


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    with hostile_model() as reference:
        yield reference


@pytest.fixture(scope="module")
def served(model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("served"), limits=UNLIMITED, model={"text": model}) as served:
        yield served


async def say(caller: Caller, mode: Mode) -> list[Message]:
    """Runs a turn, and returns all its messages until the session is idle."""
    mark = len(caller.received)
    await caller.send("text_message", text=mode)
    await caller.until("state", state="idle")
    return caller.received[mark:]


def only(received: list[Message], type: str) -> Message:
    (message,) = [message for message in received if message["type"] == type]
    return message


def types(received: list[Message]) -> list[str]:
    return [message["type"] for message in received]


def failures(served: Served) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in served.log.splitlines()]
    return [line for line in lines if line["event"] == "model_failed"]


async def request(served: Served, path: str, body: Any = None) -> tuple[int, Any]:
    """The status and the JSON of an HTTP response."""

    def send() -> tuple[int, Any]:
        url = f"http://127.0.0.1:{served.port}{path}"
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data), timeout=60) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    return await asyncio.to_thread(send)


@pytest.mark.parametrize("mode", FAILURES)
async def test_a_model_failure_is_reported_in_words_and_the_session_continues(served: Served, mode: Mode) -> None:
    async with call(served.url, TEXT) as caller:
        received = await say(caller, mode)
        error = only(received, "error")
        assert error["code"] == "model_failed"
        assert FAILURES[mode][1] in error["message"]
        assert all(message["text"].strip() for message in received if message["type"] == "response")
        assert only(await say(caller, Mode.GOOD), "response")["text"] == "All is well."
    assert served.failures == []


@pytest.mark.parametrize("mode", FAILURES)
async def test_a_model_failure_is_reported_over_http_too(served: Served, mode: Mode) -> None:
    status, body = await request(served, "/api/chat", {"message": mode})
    assert (status, body["error"]["code"]) == (502, "model_failed")
    assert FAILURES[mode][1] in body["error"]["message"]


@pytest.mark.parametrize("mode", FAILURES)
async def test_a_failure_of_the_model_leaves_one_line_in_the_log(served: Served, model: str, mode: Mode) -> None:
    before = len(failures(served))
    async with call(served.url, TEXT) as caller:
        await say(caller, mode)
        assert await caller.is_answered()
    (line,) = failures(served)[before:]
    assert line["level"] == "warning"
    assert line["kind"] == FAILURES[mode][0]
    assert line["model"] == model.replace(model[model.index("http") : model.index("#") + 1], "")
    statuses = {Mode.ERROR_500: 500, Mode.ENDLESS_ERROR: 500, Mode.REDIRECT: 307}
    assert line["status"] == statuses.get(mode)


async def test_a_rate_limit_of_the_only_model_is_reported_with_the_time_to_wait(model: str, tmp_path: Path) -> None:
    ladder = {"text": TextLadder.model_validate({"1": model})}
    with serve(tmp_path, limits=UNLIMITED, model={"text": model}, ladder=ladder) as served:
        async with call(served.url, TEXT) as caller:
            received = await say(caller, Mode.ERROR_429)
            assert [message["level"] for message in received if message["type"] == "energy"] == [1, 0]
            assert "try again in" in only(received, "error")["message"]
            assert await caller.is_answered()
        status, body = await request(served, "/api/chat", {"message": Mode.GOOD})
        assert (status, body["error"]["code"]) == (502, "model_failed")
        assert served.failures == []


@pytest.mark.parametrize(
    "mode",
    [
        Mode.ENDLESS_LINE,
        Mode.ENDLESS_ANSWER,
        Mode.ENDLESS_ARGUMENTS,
        Mode.ENDLESS_ERROR,
        Mode.COMPRESSED_BOMB,
        Mode.THOUSAND_CALLS,
        Mode.SAME_SENTENCE,
    ],
)
async def test_endless_output_takes_little_memory(served: Served, mode: Mode) -> None:
    async with call(served.url, TEXT) as caller:
        await say(caller, Mode.GOOD)
        before = served.resident_bytes
        await say(caller, mode)
        assert served.resident_bytes - before < MAX_GROWTH_BYTES


async def test_a_slow_drip_does_not_keep_a_turn_open_forever(model: str, tmp_path: Path) -> None:
    with serve(tmp_path, turn_s=1.0, model={"text": model}) as served:
        async with call(served.url, TEXT) as caller:
            received = await say(caller, Mode.DRIP)
            assert "took longer than" in only(received, "error")["message"]
            assert only(received, "response")["text"] == "One moment. "
        assert (await request(served, "/api/chat", {"message": Mode.DRIP}))[0] == 502
        assert [line["kind"] for line in failures(served)] == ["timeout", "timeout"]


async def test_text_sent_before_a_failure_is_kept(served: Served) -> None:
    async with call(served.url, TEXT) as caller:
        assert only(await say(caller, Mode.CUT_STREAM), "response")["text"] == "Your balance is 1"
        assert only(await say(caller, Mode.ENDLESS_ANSWER), "response")["text"].startswith("word0 word1 word2 ")


@pytest.mark.parametrize("mode", [Mode.CUT_CALL, Mode.ENDLESS_ARGUMENTS, Mode.THOUSAND_CALLS])
async def test_calls_of_a_message_that_failed_do_not_run(served: Served, mode: Mode) -> None:
    async with call(served.url, TEXT) as caller:
        assert "tool_call" not in types(await say(caller, mode))


async def test_an_emoji_split_across_two_chunks_arrives_whole(served: Served) -> None:
    async with call(served.url, TEXT) as caller:
        received = await say(caller, Mode.SPLIT_EMOJI)
        assert only(received, "response")["text"] == "Fine \U0001f600 indeed."
        assert (
            "".join(each["text"] for each in received if each["type"] == "response_chunk") == "Fine \U0001f600 indeed."
        )


async def test_half_characters_in_text_and_calls_are_replaced(served: Served) -> None:
    async with call(served.url, TEXT) as caller:
        received = await say(caller, Mode.LONE_HALVES)
        assert only(received, "response")["text"] == "Well \ufffdthen \ufffd."
        called = only(received, "tool_call")
        assert (called["name"], called["args"]) == ("show_\ufffd", {"code": "\ufffd \ufffd"})
        handle, last_n = caller.session["resume"], caller.received[-1]["n"]
    async with call(served.url, {**TEXT, "resume": handle, "last_n": last_n}) as caller:
        assert only(await say(caller, Mode.GOOD), "response")["text"] == "All is well."


HANDLER = """
from antiphon.tools.context import Args, Context
from antiphon.tools.result import Flyout, FlyoutType, ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    half = chr(0xD83D)
    return ok({"text": half}, spoken=f"You said {half}.", flyout=Flyout(FlyoutType.CODE, half, title=half))
"""


async def test_half_characters_in_a_tool_result_are_replaced(tmp_path: Path) -> None:
    (create(tmp_path / "tools", "echo_it") / "handler.py").write_text(HANDLER)
    with serve(tmp_path) as served:
        async with call(served.url, TEXT) as caller:
            assert await caller.ask("use echo it with good morning") == "You said \ufffd."
            assert caller.every("tool_result")[0]["result"] == {"text": "\ufffd"}
            assert (caller.every("flyout")[0]["content"], caller.every("flyout")[0]["title"]) == ("\ufffd", "\ufffd")
            assert await caller.ask("What is 2 plus 3?") == "2 plus 3 is 5."
        assert served.failures == []


async def test_tool_results_are_spoken_when_the_model_is_silent_after_them(served: Served) -> None:
    async with call(served.url, TEXT) as caller:
        assert only(await say(caller, Mode.SILENCE_AFTER_TOOLS), "response")["text"].startswith("It's ")


async def test_logged_failures_contain_no_user_words(served: Served) -> None:
    words = "my secret is tulip"
    async with call(served.url, TEXT) as caller:
        # There is no mode of that name, so the server breaks off.
        await caller.send("text_message", text=words)
        await caller.until("error")
    assert "tulip" not in served.log


async def test_readiness_reports_the_model_and_its_last_failure(served: Served) -> None:
    await request(served, "/api/chat", {"message": Mode.GOOD})
    status, body = await request(served, "/ready")
    assert (status, body["status"]) == (200, "ok")
    assert body["model"] == {"name": "openai:x", "last_failure": None, "warming": False}
    await request(served, "/api/chat", {"message": Mode.ERROR_500})
    status, body = await request(served, "/ready")
    assert (status, body["status"], body["model"]["name"]) == (200, "ok", "openai:x")
    failure = body["model"]["last_failure"]
    assert (failure["kind"], failure["status"]) == ("server_error", 500)
    assert failure["at"] > 1_700_000_000_000

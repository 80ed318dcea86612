import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

from antiphon.errors import AntiphonError
from antiphon.security.tokens import make_handle, make_token
from antiphon.telemetry.log import MAX_TEXT_CHARS, configure, get_logger

HOSTILE = "one\r\ntwo\x1b[2J\x9b31m\x07\u2028\u202e"


@pytest.fixture(autouse=True)
def untouched_process() -> Iterator[None]:
    handlers = logging.getLogger().handlers
    yield
    logging.getLogger().handlers = handlers
    structlog.reset_defaults()


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


def log_json(out: io.StringIO, event: str = "called", **values: Any) -> Any:
    """The one line that an event makes, read back."""
    configure(json=True, level="info", stream=out)
    get_logger("test").info(event, **values)
    (line,) = out.getvalue().splitlines()
    return json.loads(line)


def log_console(out: io.StringIO, event: str = "called", **values: Any) -> str:
    configure(json=False, level="info", stream=out)
    get_logger("test").info(event, **values)
    return out.getvalue()


def test_an_event_is_one_line_of_json(out: io.StringIO) -> None:
    line = log_json(out, "tool called", tool="calculate", duration_ms=1.5)
    timestamp = line.pop("timestamp")
    assert line == {
        "level": "info",
        "event": "tool called",
        "logger": "test",
        "tool": "calculate",
        "duration_ms": 1.5,
    }
    assert datetime.fromisoformat(timestamp).tzinfo == UTC


def test_a_level_hides_what_is_below_it(out: io.StringIO) -> None:
    configure(json=True, level="warning", stream=out)
    get_logger("test").info("quiet")
    get_logger("test").warning("loud")
    assert [json.loads(line)["event"] for line in out.getvalue().splitlines()] == ["loud"]


def test_a_logger_made_before_configuring_obeys_it(out: io.StringIO) -> None:
    early = get_logger("early")
    configure(json=True, level="info", stream=out)
    early.info("hello")
    assert json.loads(out.getvalue())["logger"] == "early"


def test_stderr_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    configure(json=True, level="info")
    get_logger("test").info("hello")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err)["event"] == "hello"


def test_hostile_text_stays_inert_in_json(out: io.StringIO) -> None:
    line = log_json(out, HOSTILE, value=HOSTILE, **{HOSTILE: 1})
    assert out.getvalue().rstrip("\n").isprintable()
    assert line["event"] == line["value"] == HOSTILE


def test_hostile_text_stays_inert_on_the_console(out: io.StringIO) -> None:
    line = log_console(out, HOSTILE, value=HOSTILE, nested=[{HOSTILE: HOSTILE}], **{HOSTILE: 1})
    assert line.rstrip("\n").isprintable()


def test_an_object_cannot_smuggle_escapes_through_its_repr(out: io.StringIO) -> None:
    class Hostile:
        def __repr__(self) -> str:
            return HOSTILE

    assert log_console(out, value=Hostile()).rstrip("\n").isprintable()


@pytest.mark.parametrize(
    "key",
    [
        "token",
        "confirmation_token",
        "accessToken",
        "client_secret",
        "password",
        "Authorization",
        "x-api-key",
        "apiKey",
        "api_key",
        "resume_handle",
        "handle",
        "Set-Cookie",
    ],
)
def test_a_secret_is_masked(out: io.StringIO, key: str) -> None:
    assert log_json(out, **{key: "hunter2"})[key] == "***"


def test_a_secret_inside_a_value_is_masked(out: io.StringIO) -> None:
    line = log_json(out, request={"headers": [{"authorization": "Bearer hunter2"}]})
    assert line["request"] == {"headers": [{"authorization": "***"}]}


def test_a_secret_is_masked_on_the_console_too(out: io.StringIO) -> None:
    assert "hunter2" not in log_console(out, token="hunter2", deep={"password": ["hunter2"]})


@pytest.mark.parametrize(
    ("key", "value"), [("input_tokens", 12), ("handler", "execute"), ("author", "me"), ("token", None)]
)
def test_text_that_only_resembles_a_secret_is_shown(out: io.StringIO, key: str, value: Any) -> None:
    assert log_json(out, **{key: value})[key] == value


def test_a_long_text_is_truncated(out: io.StringIO) -> None:
    assert log_json(out, body="x" * 100_000)["body"] == "x" * MAX_TEXT_CHARS + "…"


def test_values_unknown_to_json_are_still_written(out: io.StringIO) -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    line = log_json(out, nan=float("nan"), raw=b"\x00", keys={(1, 2): {3}}, cycle=cycle, lone="\ud800")
    assert line["nan"] == "nan"
    assert line["raw"] == "b'\\x00'"
    assert line["keys"] == {"(1, 2)": "{3}"}


def fail_with(message: str) -> None:
    secret = "hunter2"
    raise ValueError(message + secret[:0])


def log_failure(out: io.StringIO, error: Exception, *, json: bool, exception_texts: bool = False) -> str:
    """What is logged of an exception that was raised from another one."""
    configure(json=json, level="info", stream=out, exception_texts=exception_texts)
    try:
        try:
            fail_with("the cause is blue")
        except ValueError as cause:
            raise error from cause
    except Exception:
        get_logger("test").exception("failed")
    return out.getvalue()


def test_an_exception_is_one_line_with_its_frames_and_without_locals(out: io.StringIO) -> None:
    (text,) = log_failure(out, KeyError("green"), json=True, exception_texts=True).splitlines()
    raised, cause = json.loads(text)["exception"]
    assert (raised["exc_type"], raised["exc_value"]) == ("KeyError", "'green'")
    assert (cause["exc_type"], cause["exc_value"]) == ("ValueError", "the cause is blue")
    assert cause["frames"][-1]["name"] == "fail_with"
    assert "hunter2" not in text


@pytest.mark.parametrize("json", [True, False])
def test_the_texts_of_exceptions_stay_out_of_the_log_of_a_server(out: io.StringIO, json: bool) -> None:
    text = log_failure(out, KeyError("green"), json=json)
    assert "green" not in text.replace('KeyError("green")', "")
    assert "the cause is blue" not in text.replace('fail_with("the cause is blue")', "")
    assert "KeyError" in text
    assert "fail_with" in text


@pytest.mark.parametrize("json", [True, False])
def test_our_own_errors_keep_their_text_in_the_log_of_a_server(out: io.StringIO, json: bool) -> None:
    reason = "The disk is full."
    assert reason in log_failure(out, AntiphonError(reason), json=json)


def test_exception_groups_are_shown_and_cycles_end(out: io.StringIO) -> None:
    first, second = KeyError("green"), TypeError("blue")
    first.__context__, second.__context__ = second, first
    text = log_failure(out, ExceptionGroup("two", [first, second]), json=True)
    shown = [each["exc_type"] for each in json.loads(text)["exception"]]
    assert shown[:2] == ["ExceptionGroup", "KeyError"]
    assert "TypeError" in shown


@pytest.mark.parametrize("make", [make_token, make_handle])
@pytest.mark.parametrize("is_json", [True, False])
def test_a_token_is_masked_wherever_it_appears(out: io.StringIO, make: Callable[[], str], is_json: bool) -> None:
    secret = make()
    configure(json=is_json, level="info", stream=out)
    get_logger("test").info(f"got {secret}", path=f"/x/{secret}/y", deep=[{"a": secret}])
    logging.getLogger("library").warning("bad header %s", secret)
    log_failure(out, AntiphonError(f"{secret} is wrong"), json=is_json)
    assert secret not in out.getvalue()


def test_the_repr_of_a_task_never_awaited_is_not_logged(out: io.StringIO) -> None:
    configure(json=True, level="info", stream=out)
    told = "Task exception was never retrieved\nfuture: <Task finished exception=ValueError('green')>"
    logging.getLogger("asyncio").error(told)
    logging.getLogger("asyncio").error("Exception in callback Foo.bar('green')\nhandle: <Handle Foo.bar('green')>")
    assert [json.loads(line)["event"] for line in out.getvalue().splitlines()] == [
        "Task exception was never retrieved",
        "Exception in callback Foo.bar",
    ]


def test_the_text_of_an_exception_cannot_forge_a_line_on_the_console(out: io.StringIO) -> None:
    configure(json=False, level="info", stream=out, exception_texts=True)
    try:
        fail_with("bad\n2026-01-01T00:00:00Z [info] forged\x1b[2J")
    except ValueError:
        get_logger("test").exception("failed")
    head, *traceback = out.getvalue().splitlines()
    assert "failed" in head
    assert [line for line in traceback if not line.startswith("    ")] == []
    assert "\x1b" not in out.getvalue()


def test_a_stream_that_is_not_a_terminal_gets_no_colours(out: io.StringIO) -> None:
    assert not re.search(r"\x1b", log_console(out, tool="calculate"))


def test_library_warnings_are_logged_too(out: io.StringIO) -> None:
    configure(json=True, level="info", stream=out)
    logging.getLogger("library").log(35, "lost %s", "connection")
    line = json.loads(out.getvalue())
    assert (line["level"], line["logger"], line["event"]) == ("warning", "library", "lost connection")


def test_configuring_twice_does_not_duplicate_library_lines(out: io.StringIO) -> None:
    configure(json=True, level="info", stream=out)
    configure(json=True, level="info", stream=out)
    logging.getLogger("library").error("once")
    assert len(out.getvalue().splitlines()) == 1

"""How errors and answers of MCP servers become results of the gate."""

from typing import Any

import pytest
from mcp_types import CallToolResult, EmbeddedResource, TextContent, TextResourceContents

from antiphon.services.mcp.results import NOT_NOW, to_failure, to_result
from antiphon.tools.errors import ErrorType


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        (-32603, 401, ErrorType.AUTH),
        (-32603, 403, ErrorType.AUTH),
        (-32603, 429, ErrorType.RATE_LIMIT),
        (-32603, 500, ErrorType.TRANSIENT),
        (-32603, 400, ErrorType.PERMANENT),
        (-32603, None, ErrorType.TRANSIENT),
        (-32602, None, ErrorType.VALIDATION),
        (-32601, None, ErrorType.NOT_FOUND),
    ],
)
def test_a_failure_has_the_type_of_its_cause(code: int, status: int | None, expected: ErrorType) -> None:
    result = to_failure(code, "boom", status=status)
    assert result.error is not None
    assert result.error.type is expected
    assert result.spoken


def test_a_busy_server_says_how_long_to_wait() -> None:
    error = to_failure(-32603, "", status=429, retry_after_s=7.0).error
    assert error is not None
    assert (error.retryable, error.retry_after_s) == (True, 7.0)


def test_a_failed_action_is_not_repeated() -> None:
    result = to_failure(-32603, "boom", status=None, writes=True)
    assert result.error is not None
    assert (result.error.retryable, result.error.partial_side_effects) == (False, True)
    assert result.spoken == NOT_NOW


def answered(text: str = "", structured: Any = None) -> Any:
    answer = CallToolResult(content=[TextContent(text=text)] if text else [], structured_content=structured)
    return to_result(answer, writes=False).data


def test_structured_content_comes_before_text() -> None:
    assert answered('{"a": 1}', {"a": 1}) == {"a": 1}
    assert answered("", [1, 2]) == {"result": [1, 2]}


def test_structured_content_that_is_too_large_is_cut() -> None:
    data = answered("", {"a": "x" * 70_000})
    assert data["truncated"]
    assert len(data["text"]) < 21_000


def test_an_empty_answer_is_an_answer() -> None:
    assert answered() == {"text": ""}


def test_the_text_of_a_resource_is_text() -> None:
    resource = EmbeddedResource(resource=TextResourceContents(uri="file:///a", text="inside"))
    assert to_result(CallToolResult(content=[resource]), writes=False).data == {"text": "inside"}


@pytest.mark.parametrize("text", ['{"a": 1}', "[1]", "<b>x</b>", "x" * 301, ""])
def test_what_is_not_fit_for_the_ear_is_not_spoken(text: str) -> None:
    assert to_result(CallToolResult(content=[TextContent(text=text)]), writes=False).spoken is None

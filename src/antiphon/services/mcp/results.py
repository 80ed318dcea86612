"""Turns what an MCP server answers into a result of the gate. All of it is untrusted, and bounded here."""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok

if TYPE_CHECKING:
    from mcp_types import CallToolResult

MAX_TEXT_CHARS: Final = 20_000
MAX_STRUCTURED_BYTES: Final = 64 * 1024
MAX_BLOCKS: Final = 100
MAX_SPOKEN_CHARS: Final = 300
MAX_MESSAGE_CHARS: Final = 500

INVALID_PARAMS: Final = -32602
METHOD_NOT_FOUND: Final = -32601

FAILED: Final = "That did not work."
NOT_NOW: Final = "I can't reach the service for that right now. Please try again in a moment."
NOT_ALLOWED: Final = "The service for that did not accept our access."
BUSY: Final = "The service for that is busy right now. Please try again later."
NEEDS_MORE: Final = "The service asks for something that I cannot give it."


def to_result(answer: "CallToolResult", *, writes: bool) -> ToolResult:
    """Makes the result of a call that the server has carried out, or says that it could not."""
    text, attachments = _read(answer)
    if answer.is_error:
        message = " ".join(text.split())[:MAX_MESSAGE_CHARS] or "The server gave no reason."
        return fail(
            ErrorType.PERMANENT,
            f"The server reports an error: {message}",
            suggestion="If the arguments were wrong, correct them and call again. Otherwise tell the user.",
            partial_side_effects=writes,
            spoken=FAILED,
        )
    data = _data(answer.structured_content, text)
    if attachments:
        data["attachments"] = attachments
    return ok(data, spoken=_spoken(text))


def to_failure(
    code: int, message: str, *, status: int | None, retry_after_s: float | None = None, writes: bool = False
) -> ToolResult:
    """Makes the result of a call that the protocol or the transport has failed. `status` is that of the HTTP answer."""
    told = " ".join(message.split())[:MAX_MESSAGE_CHARS]
    if status in (401, 403):
        return fail(ErrorType.AUTH, f"The server refused our access (HTTP {status}).", spoken=NOT_ALLOWED)
    if status == 429:
        return fail(
            ErrorType.RATE_LIMIT,
            "The server received too many requests.",
            retryable=True,
            retry_after_s=retry_after_s or 10.0,
            spoken=BUSY,
        )
    if code == INVALID_PARAMS:
        suggestion = "Correct the arguments and call again."
        return fail(
            ErrorType.VALIDATION, f"The server refused the arguments: {told}", suggestion=suggestion, spoken=FAILED
        )
    if code == METHOD_NOT_FOUND:
        return fail(ErrorType.NOT_FOUND, "The server no longer has this tool.", spoken=FAILED)
    if status is not None and status < 500:
        return fail(ErrorType.PERMANENT, f"The server refused the call: {told}", spoken=FAILED)
    return unavailable(f"The server failed: {told}", writes=writes)


def unavailable(message: str = "The server is not available now.", *, writes: bool = False) -> ToolResult:
    """Makes the result of a call that may work later. Nobody knows how far a call that writes has got."""
    return fail(
        ErrorType.TRANSIENT,
        message,
        retryable=not writes,
        retry_after_s=None if writes else 5.0,
        suggestion="Tell the user that it is not available now, and go on without it.",
        partial_side_effects=writes,
        spoken=NOT_NOW,
    )


def _read(answer: "CallToolResult") -> tuple[str, list[dict[str, Any]]]:
    """Returns the text of an answer, and what else is in it, without its bytes: a model cannot use them."""
    texts: list[str] = []
    attachments: list[dict[str, Any]] = []
    for block in answer.content[:MAX_BLOCKS]:
        content: dict[str, Any] = block.model_dump(by_alias=True, exclude_none=True)
        inner = content.get("resource", {})
        if content["type"] == "text":
            texts.append(content["text"])
        elif "text" in inner:
            texts.append(inner["text"])
        else:
            attachments.append(_describe(content, inner))
    text = _printable("\n".join(texts)[: MAX_TEXT_CHARS + 1])
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]}… (cut)", attachments


def _describe(content: dict[str, Any], inner: dict[str, Any]) -> dict[str, Any]:
    encoded = content.get("data") or inner.get("blob") or ""
    kind = content.get("mimeType") or inner.get("mimeType")
    about = {"type": content["type"], "mime_type": kind, "uri": content.get("uri") or inner.get("uri")}
    short = {key: str(value)[:MAX_MESSAGE_CHARS] for key, value in about.items() if value}
    return {**short, "bytes": len(encoded) * 3 // 4} if encoded else short


def _data(structured: Any, text: str) -> dict[str, Any]:
    if structured is None:
        return {"text": text}
    try:
        encoded = msgspec.json.encode(structured)
    except (ValueError, TypeError, RecursionError):
        return {"text": text}
    if len(encoded) > MAX_STRUCTURED_BYTES:
        cut = encoded[:MAX_TEXT_CHARS].decode("utf-8", "ignore")
        return {"text": f"{cut}… (cut)", "truncated": True}
    return dict(structured) if isinstance(structured, dict) else {"result": structured}


def _spoken(text: str) -> str | None:
    """Returns the text if it is fit for the ear: one short paragraph that is not JSON."""
    said = " ".join(text.split())
    return said if 0 < len(said) <= MAX_SPOKEN_CHARS and said[0] not in "{[<" else None


def _printable(text: str) -> str:
    return "".join(each for each in text if each.isprintable() or each in "\n\t")

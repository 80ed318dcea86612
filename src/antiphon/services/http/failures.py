"""What can go wrong with a service over HTTP, and the `ToolError` for it, with a sentence that can be said to the user.

`name` is always what the assistant calls the service, as in the middle of a sentence: "the weather service". Services
add what only they know, such as what their own words in the body of a refusal mean.
"""

from enum import StrEnum
from typing import Final, TypeVar

import msgspec

from antiphon.models.providers.failures import read_retry_after
from antiphon.tools.capabilities.fetch import Fetched
from antiphon.tools.errors import ErrorType, ToolError

LONGEST_WAIT_S: Final = 3_600.0
DEFAULT_WAIT_S: Final = 60.0
"""How long to wait after a 429 that does not say."""

T = TypeVar("T")


class Trouble(StrEnum):
    """Why there is no answer."""

    FORBIDDEN = "forbidden"
    UNREACHABLE = "unreachable"
    SLOW = "slow"
    BROKEN = "broken"
    TOO_LARGE = "too_large"
    REDIRECTED = "redirected"


class WebError(Exception):
    def __init__(self, trouble: Trouble, message: str, *, was_sent: bool = False) -> None:
        super().__init__(message)
        self.trouble = trouble
        self.was_sent = was_sent
        """Whether the server may have received the request, and may have done what it asks for."""


def explain(error: WebError, name: str, *, writes: bool = False, over_internet: bool = False) -> ToolError:
    """Makes the error for a request that got no answer. `writes` says that the request changes something, and
    `over_internet` that a lost internet connection may be the reason."""
    may_be_done = writes and error.was_sent
    match error.trouble:
        case Trouble.FORBIDDEN:
            return ToolError(ErrorType.VALIDATION, f"I can't open that address. {error}")
        case Trouble.UNREACHABLE:
            return unreachable(name, over_internet=over_internet)
        case Trouble.SLOW:
            return slow(name, may_be_done=may_be_done)
        case Trouble.BROKEN:
            return broken(name, may_be_done=may_be_done)
        case Trouble.TOO_LARGE:
            message = f"{begin(name)} sent more than I can read."
            return ToolError(ErrorType.PERMANENT, message, partial_side_effects=may_be_done)
        case Trouble.REDIRECTED:
            message = f"{begin(name)} has moved to another address."
            return ToolError(ErrorType.PERMANENT, message, suggestion=f"The address must be changed, since {error}.")


def explain_status(answer: Fetched, name: str) -> ToolError:
    """Makes the error for an answer that is not a success."""
    wait_s = read_retry_after(answer.headers)
    details = {"status": answer.status}
    match answer.status:
        case 429:
            return too_many(name, wait_s)
        case 401 | 403:
            return refused(name)
        case 404 | 410:
            return ToolError(ErrorType.NOT_FOUND, f"{begin(name)} has nothing there.", details=details)
        case status if status >= 500 or status == 408:
            return failing(name, wait_s, status=status)
        case _:
            return ToolError(ErrorType.PERMANENT, f"{begin(name)} didn't accept that.", details=details)


def decode(content: bytes, kind: type[T], name: str) -> T:
    """Decodes JSON. Raises `ToolError`."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise broken(name, problem=str(error)[:200]) from error


def unreachable(name: str, *, over_internet: bool = False) -> ToolError:
    reason = " The internet connection may be down." if over_internet else ""
    return ToolError(ErrorType.TRANSIENT, f"I can't reach {name} at the moment.{reason}", retryable=True)


def slow(name: str, *, may_be_done: bool = False) -> ToolError:
    return ToolError(
        ErrorType.TRANSIENT,
        f"{begin(name)} takes too long to answer. Please try again in a moment.",
        retryable=not may_be_done,
        retry_after_s=1.0,
        partial_side_effects=may_be_done,
    )


def broken(name: str, *, may_be_done: bool = False, problem: str | None = None) -> ToolError:
    return ToolError(
        ErrorType.TRANSIENT,
        f"{begin(name)} sent an answer that I can't read.",
        retryable=not may_be_done,
        details=None if problem is None else {"problem": problem},
        partial_side_effects=may_be_done,
    )


def failing(name: str, wait_s: float | None = None, *, status: int | None = None) -> ToolError:
    return ToolError(
        ErrorType.TRANSIENT,
        f"{begin(name)} has a problem at the moment. Please try again later.",
        retryable=True,
        retry_after_s=None if wait_s is None else _bounded(wait_s),
        details=None if status is None else {"status": status},
    )


def refused(name: str, suggestion: str | None = None) -> ToolError:
    return ToolError(ErrorType.AUTH, f"{begin(name)} doesn't let me in.", suggestion=suggestion)


def too_many(name: str, wait_s: float | None = None) -> ToolError:
    return ToolError(
        ErrorType.RATE_LIMIT,
        f"{begin(name)} wants me to slow down. Please try again in a moment.",
        retryable=True,
        retry_after_s=DEFAULT_WAIT_S if wait_s is None else _bounded(wait_s),
    )


def begin(name: str) -> str:
    """Returns the name as it begins a sentence."""
    return f"{name[:1].upper()}{name[1:]}"


def _bounded(wait_s: float) -> float:
    return min(max(wait_s, 1.0), LONGEST_WAIT_S)

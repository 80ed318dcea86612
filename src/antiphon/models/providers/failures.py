"""What can go wrong with the server of a model, and the `ModelError` for it, with a sentence for people."""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Final

from antiphon.models.base import FailureKind, ModelError
from antiphon.models.bounded import LimitExceeded, explain_limit
from antiphon.models.providers.references import Endpoint
from antiphon.security.quotes import add_quote, quote

_RATE_WORDS: Final = re.compile(r"rate.?limit|quota|resource.?exhausted|too many requests", re.IGNORECASE)
_WAIT_A_WHILE: Final = frozenset({408, 409, 425})


class ConnectionLost(Exception):
    """The connection failed, or broke."""

    def __init__(self, *, has_connected: bool) -> None:
        super().__init__("the connection was lost")
        self.has_connected = has_connected


class TimedOut(Exception):
    """The server was silent for too long."""


class Refusal(Exception):
    """The server answered with an HTTP status other than success; its body is decoded if it was JSON."""

    def __init__(self, status: int, body: object, headers: Mapping[str, str]) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.body = body
        self.headers = headers


class StreamedError(Exception):
    """An error that came in the middle of a stream; its body is as the server sent it."""

    def __init__(self, body: object) -> None:
        super().__init__("the stream has an error in it")
        self.body = body


FAILURES: Final = (ConnectionLost, TimedOut, Refusal, StreamedError, LimitExceeded, ValueError, RecursionError)
"""What may be raised while a server is asked and its answer is read: what `explain` takes."""


def explain(error: Exception, name: str, endpoint: Endpoint) -> ModelError:
    match error:
        case LimitExceeded():
            return explain_limit(name, error)
        case TimedOut():
            return ModelError(f"{name} did not answer in time.", kind=FailureKind.TIMEOUT)
        case ConnectionLost():
            message = f"{name} cannot be reached, or broke off. Check that a server is running at {endpoint.url}."
            return ModelError(message, kind=FailureKind.UNREACHABLE)
        case Refusal():
            return _explain_refusal(error, name, endpoint)
        case StreamedError():
            said = quote(error.body, endpoint.api_key)
            code = error.body.get("code") if isinstance(error.body, dict) else None
            limited = str(code) == "429" or _RATE_WORDS.search(said) is not None
            kind = FailureKind.RATE_LIMITED if limited else FailureKind.SERVER_ERROR
            return ModelError(add_quote(f"{name} broke off with an error", said), rate_limited=limited, kind=kind)
        case _:
            message = f"{name} did not answer with a chat completion. Is {endpoint.url} the right address?"
            return ModelError(message, retryable=False, kind=FailureKind.INVALID_RESPONSE)


def cut_off(name: str) -> ModelError:
    return ModelError(f"The answer of {name} was cut off before its end. Please try again.", kind=FailureKind.CUT_OFF)


def _explain_refusal(error: Refusal, name: str, endpoint: Endpoint) -> ModelError:
    status, said = error.status, quote(error.body, endpoint.api_key)
    retry_after_s = read_retry_after(error.headers)
    refused = partial(ModelError, status=status)
    if status < 400:
        message = (
            f"{name} answered with a redirect to another address, which is not followed. "
            "Set the address of the server itself as model.text."
        )
        return refused(message, retryable=False, kind=FailureKind.REDIRECTED)
    if status == 429 or (status < 500 and _RATE_WORDS.search(said)):
        message = add_quote(f"{name} accepts no more requests for now", said)
        return refused(message, rate_limited=True, retry_after_s=retry_after_s, kind=FailureKind.RATE_LIMITED)
    if status in (401, 403):
        # The server's own words may hold a part of the key.
        problem = "refused the API key" if endpoint.api_key else "requires an API key"
        return refused(f"{name} {problem}. Check {endpoint.key_variable}.", retryable=False)
    if status == 404:
        return refused(add_quote(f"{name} was not found at {endpoint.url}", said), retryable=False)
    if status >= 500:
        message = add_quote(f"{name} had an internal error (HTTP {status})", said)
        return refused(message, retry_after_s=retry_after_s, kind=FailureKind.SERVER_ERROR)
    message = add_quote(f"{name} refused the request (HTTP {status})", said)
    return refused(message, retryable=status in _WAIT_A_WHILE, retry_after_s=retry_after_s)


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns seconds from now. A date is compared with the server's own, so that no two clocks have to agree."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        wait_s = float(value)
    except ValueError:
        try:
            wait_s = (parsedate_to_datetime(value) - parsedate_to_datetime(headers["date"])).total_seconds()
        except (ValueError, TypeError, KeyError):
            return None
    return max(wait_s, 0.0) if math.isfinite(wait_s) else None

"""Explains what went wrong with a chat completion, as a `ModelError` with a sentence for people."""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Final

import openai

from antiphon.models.base import FailureKind, ModelError
from antiphon.models.bounded import LimitExceeded, explain_limit
from antiphon.models.providers.references import Endpoint
from antiphon.security.quotes import add_quote, quote

_RATE_WORDS: Final = re.compile(r"rate.?limit|quota|resource.?exhausted|too many requests", re.IGNORECASE)
_WAIT_A_WHILE: Final = frozenset({408, 409, 425})


class StreamedError(Exception):
    """An error that came in the middle of a stream; its body is as the server sent it."""

    def __init__(self, body: object) -> None:
        super().__init__("the stream has an error in it")
        self.body = body


def explain(error: Exception, name: str, endpoint: Endpoint) -> ModelError:
    """Explains an error of the SDK, or one raised while the server's bytes were read."""
    match error:
        case LimitExceeded():
            return explain_limit(name, error)
        case openai.APITimeoutError():
            return ModelError(f"{name} did not answer in time.", kind=FailureKind.TIMEOUT)
        case openai.APIConnectionError():
            message = f"{name} cannot be reached, or broke off. Check that a server is running at {endpoint.url}."
            return ModelError(message, kind=FailureKind.UNREACHABLE)
        case openai.APIStatusError():
            return _refusal(error, name, endpoint)
        case StreamedError():
            said = quote(error.body, endpoint.api_key)
            code = error.body.get("code") if isinstance(error.body, dict) else None
            limited = str(code) == "429" or _RATE_WORDS.search(said) is not None
            kind = FailureKind.RATE_LIMITED if limited else FailureKind.SERVER_ERROR
            return ModelError(add_quote(f"{name} broke off with an error", said), rate_limited=limited, kind=kind)
        case _:
            message = f"{name} did not answer with a chat completion. Is {endpoint.url} the right address?"
            return ModelError(message, retryable=False, kind=FailureKind.INVALID_RESPONSE)


def _refusal(error: openai.APIStatusError, name: str, endpoint: Endpoint) -> ModelError:
    status, said = error.status_code, quote(error.body, endpoint.api_key)
    retry_after_s = read_retry_after(error.response.headers)
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

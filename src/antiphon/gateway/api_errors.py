"""Errors of the HTTP endpoints in OpenAI's format: a status, and a JSON object that its SDKs turn into exceptions."""

import math
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from starlette.responses import Response

from antiphon.errors import AntiphonError
from antiphon.models.live import TurnFailed


class ErrorKind(StrEnum):
    """The field `type` of an error."""

    INVALID_REQUEST = "invalid_request_error"
    RATE_LIMIT = "rate_limit_error"
    SERVER = "server_error"


class ApiError(AntiphonError):
    """Raised by an endpoint, and sent to the client as its response."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after_s: float | None = None,
        may_retry: bool = True,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = code
        self.param = param
        """The field of the request that is wrong, such as `messages[0].role`."""
        self.retry_after_s = retry_after_s
        self.may_retry = may_retry
        """The vendor's SDKs repeat a request that failed with certain statuses, unless this is False."""

    @property
    def body(self) -> dict[str, Any]:
        error = {"message": str(self), "type": _kind_of(self.status), "param": self.param, "code": self.error_code}
        return {"error": error}

    def response(self) -> Response:
        headers = {} if self.retry_after_s is None else {"Retry-After": str(math.ceil(self.retry_after_s))}
        if not self.may_retry:
            headers["x-should-retry"] = "false"
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return reply(self.body, self.status, headers)


def reply(body: Struct | dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(body), status, headers, "application/json")


def invalid(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """Makes the error for a request that is wrong and would be wrong again."""
    return ApiError(400, message, code=code, param=param)


def unsupported(param: str, message: str) -> ApiError:
    """Makes the error for a field that is valid for OpenAI and cannot be honoured here."""
    return invalid(message, param, "unsupported_value")


def too_fast(message: str, wait_s: float) -> ApiError:
    return ApiError(429, message, code="rate_limit_exceeded", retry_after_s=min(wait_s, 3_600.0))


def model_failed(failed: TurnFailed, *, may_retry: bool) -> ApiError:
    """Makes the error for an answer that the model behind this server did not complete."""
    if failed.rate_limited:
        retry_after_s = failed.retry_after_s
        return ApiError(
            429, failed.message, code="rate_limit_exceeded", retry_after_s=retry_after_s, may_retry=may_retry
        )
    return ApiError(502, failed.message, code="model_failed", may_retry=may_retry and failed.retryable)


def _kind_of(status: int) -> ErrorKind:
    if status == 429:
        return ErrorKind.RATE_LIMIT
    return ErrorKind.SERVER if status >= 500 else ErrorKind.INVALID_REQUEST

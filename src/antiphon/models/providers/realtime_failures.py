"""Explains what went wrong in an OpenAI or Azure Realtime session, with a sentence for people."""

import re
from collections.abc import Mapping
from typing import Final

from websockets.exceptions import ConnectionClosed

from antiphon.models.base import FailureKind, ModelError
from antiphon.models.live import CloseKind, UpstreamError
from antiphon.models.providers.connect_errors import Place
from antiphon.models.providers.realtime_events import ErrorDetails, Response
from antiphon.security.quotes import add_quote, quote

ACTIVE_RESPONSE: Final = "conversation_already_has_active_response"
EMPTY_COMMIT: Final = "input_audio_buffer_commit_empty"
SESSION_EXPIRED: Final = "session_expired"

NORMAL_CLOSE: Final = 1000
GOING_AWAY: Final = 1001
TOO_BIG: Final = 1009

_KINDS: Final[Mapping[str, CloseKind]] = {
    "invalid_api_key": CloseKind.CONFIGURATION,
    "invalid_model": CloseKind.CONFIGURATION,
    "missing_model": CloseKind.CONFIGURATION,
    "model_not_found": CloseKind.CONFIGURATION,
    "DeploymentNotFound": CloseKind.CONFIGURATION,
    "beta_api_shape_disabled": CloseKind.CONFIGURATION,
    "insufficient_quota": CloseKind.QUOTA,
    "rate_limit_exceeded": CloseKind.QUOTA,
    SESSION_EXPIRED: CloseKind.GO_AWAY,
}
_KEY_CODES: Final = frozenset({"invalid_api_key", "unauthorized"})
_MODEL_CODES: Final = frozenset({"invalid_model", "missing_model", "model_not_found", "DeploymentNotFound"})
_QUOTA_WORDS: Final = re.compile(r"rate.?limit|quota|too many requests", re.IGNORECASE)
_EXPIRED_WORDS: Final = re.compile(r"maximum duration|session.{0,20}expired", re.IGNORECASE)
_RETRY_WORDS: Final = re.compile(r"try again in (\d+(?:\.\d+)?)(ms|s|m)\b", re.IGNORECASE)
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}


def explain_error(error: ErrorDetails, place: Place, *, reset_s: float | None = None) -> UpstreamError:
    """Explains an error that the server has sent. `reset_s` is when its rate limits are reset, if that is known."""
    code, said = error.code or error.type or "", quote(error.message or "", place.api_key)
    kind = _kind_of(code, said)
    name = place.name
    match kind:
        case CloseKind.CONFIGURATION if code in _KEY_CODES:
            # The server's own words hold a part of the key.
            message = f"{name} refused the API key. Check {place.key_variable}."
        case CloseKind.CONFIGURATION if code in _MODEL_CODES:
            message = add_quote(f"{name} was not found at {place.url}", said)
        case CloseKind.CONFIGURATION:
            message = add_quote(f"{name} refused the session", said)
        case CloseKind.QUOTA:
            message = add_quote(f"{name} accepts no more requests for now", said)
            return UpstreamError(message, kind, retry_after_s=_retry_after_s(said) or reset_s)
        case CloseKind.GO_AWAY:
            message = f"The session with {name} has reached its longest duration."
        case _:
            message = add_quote(f"{name} had an error", said)
    return UpstreamError(message, kind)


def is_final(error: ErrorDetails) -> bool:
    """Whether no answer can be expected after this error, whatever it is about: a limit, the key or the model."""
    return _kind_of(error.code or error.type or "", error.message or "") in (CloseKind.QUOTA, CloseKind.CONFIGURATION)


def explain_refused_session(error: ErrorDetails, place: Place) -> UpstreamError:
    """Explains why a session was not opened, or its settings were not accepted."""
    explained = explain_error(error, place)
    if explained.close_kind is not CloseKind.TRANSIENT or error.type == "server_error":
        return explained
    message = add_quote(f"{place.name} refused the settings of the session", quote(error.message or "", place.api_key))
    return UpstreamError(message, CloseKind.CONFIGURATION)


def explain_response(response: Response, place: Place, reset_s: float | None) -> ModelError:
    """Explains why a response did not complete."""
    details = response.status_details
    if details is not None and details.error is not None:
        return explain_error(details.error, place, reset_s=reset_s)
    if details is not None and details.reason == "max_output_tokens":
        message = f"The answer of {place.name} was cut off, because it became too long. Ask for a shorter one."
        return ModelError(message, kind=FailureKind.TOO_LONG)
    if details is not None and details.reason == "content_filter":
        message = f"The content filter of {place.name} stopped the answer. Please ask in other words."
        return ModelError(message, kind=FailureKind.REFUSED)
    message = f"{place.name} could not finish its answer. Please try again."
    return ModelError(message, kind=FailureKind.SERVER_ERROR)


def explain_close(closed: ConnectionClosed, place: Place, *, is_open: bool) -> UpstreamError:
    """Explains the end of a connection; `is_open` is false before the session was set up."""
    frame = closed.rcvd or closed.sent
    if frame is None:
        message = f"The connection to {place.name} was lost."
        return UpstreamError(message, CloseKind.TRANSIENT, kind=FailureKind.UNREACHABLE)
    name, reason = place.name, frame.reason
    # OpenAI's own closes, such as 3000 and 4004, have the type and the code of the error as their reason.
    kind, separator, code = reason.partition(".")
    is_code = bool(separator) and f"{kind}{code}".replace("_", "").isalnum()
    error = ErrorDetails(kind, code) if is_code else ErrorDetails(message=reason)
    explained = explain_error(error, place)
    if explained.close_kind is CloseKind.GO_AWAY or (frame.code == GOING_AWAY and is_open):
        return UpstreamError(f"The session with {name} has reached its end.", CloseKind.GO_AWAY)
    if explained.close_kind is not CloseKind.TRANSIENT:
        return explained
    if is_code and not is_open:
        return explain_refused_session(ErrorDetails(kind, code, reason), place)
    said = quote(reason, place.api_key)
    if frame.code == NORMAL_CLOSE:
        return UpstreamError(add_quote(f"{name} has ended the session", said), CloseKind.INTENDED)
    if frame.code == TOO_BIG:
        message = f"{name} sent a message that is too large, so the connection was closed."
        return UpstreamError(message, CloseKind.TRANSIENT, kind=FailureKind.TOO_LONG)
    message = add_quote(f"The connection to {name} has ended ({frame.code})", said)
    return UpstreamError(message, CloseKind.TRANSIENT)


def _kind_of(code: str, said: str) -> CloseKind:
    if code in _KINDS:
        return _KINDS[code]
    if code in _KEY_CODES:
        return CloseKind.CONFIGURATION
    if _QUOTA_WORDS.search(code) or _QUOTA_WORDS.search(said):
        return CloseKind.QUOTA
    return CloseKind.GO_AWAY if _EXPIRED_WORDS.search(said) else CloseKind.TRANSIENT


def _retry_after_s(said: str) -> float | None:
    """Finds the wait in a text such as "Please try again in 1.2s"."""
    found = _RETRY_WORDS.search(said)
    return float(found[1]) * _SECONDS[found[2].lower()] if found else None

"""Explains how a connection to Gemini Live ended: by the close code and by its text, since one code has many causes."""

import re
from dataclasses import dataclass
from typing import Final

from google.genai import errors

from antiphon.models.base import FailureKind
from antiphon.models.live import CloseKind, UpstreamError
from antiphon.models.providers.connect_errors import Place, explain_connect_error
from antiphon.security.quotes import add_quote, quote

ABNORMAL: Final = 1006
"""What the SDK reports if the connection was lost without a close frame."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """Reasons that contain the pattern mean this, whatever the code."""

    pattern: "re.Pattern[str]"
    kind: CloseKind
    sentence: str
    """`{name}` stands for the model. The server's own words are added unless the sentence says all there is to say."""
    quotes: bool = False


def _rule(pattern: str, kind: CloseKind, sentence: str, *, quotes: bool = False) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE), kind, sentence, quotes)


# A reason has at most 123 bytes, so long texts arrive cut: the patterns match their beginnings.
_RULES: Final = (
    _rule(
        r"quota|resource.{0,10}exhausted|rate.?limit|too many (requests|sessions)",
        CloseKind.QUOTA,
        "{name} accepts nothing more for now, since a limit of the account is reached",
        quotes=True,
    ),
    _rule(
        r"api.?key|unauthenticated|invalid authentication|permission.?denied",
        CloseKind.CONFIGURATION,
        # The server's own words may hold a part of the key.
        "{name} refused the API key. Check {key_variable}.",
    ),
    _rule(
        r"is not found for api version|not supported for bidi|model.{0,80}not found",
        CloseKind.CONFIGURATION,
        "There is no model {name} at this server, or it has no live mode. Check model.voice.",
    ),
    _rule(
        r"goaway|session duration expired",
        CloseKind.GO_AWAY,
        "The time of the connection to {name} was over.",
    ),
    _rule(
        r"session not found|invalid session handle|requested entity was not found",
        CloseKind.DEAD_HANDLE,
        "{name} no longer knows the session that was to be resumed.",
    ),
    _rule(
        r"not supported for this model|is not implemented, or supported",
        CloseKind.CONFIGURATION,
        "{name} does not support something that it was asked for",
        quotes=True,
    ),
    _rule(
        r"deadline expired|currently unavailable|internal error|operation was aborted|operation was cancelled",
        CloseKind.TRANSIENT,
        "{name} is not available at the moment",
        quotes=True,
    ),
)
_REFUSED_CODES: Final = (1003, 1007, 1008, 1010)
"""What was sent is refused, and will be again."""


def explain_end(
    error: BaseException, place: Place, *, is_open: bool, was_resumed: bool, goes_away: bool
) -> UpstreamError:
    """Explains an error of the SDK or of the socket. `is_open` tells whether the setup was complete."""
    if isinstance(error, errors.APIError):
        reason = error.details if isinstance(error.details, str) else quote(error.details)
        explained = explain_close(int(error.code or ABNORMAL), reason, place, is_open=is_open, was_resumed=was_resumed)
    else:
        unexpected = UpstreamError(
            f"{place.name} failed unexpectedly. Please try again.", CloseKind.TRANSIENT, kind=FailureKind.UNEXPECTED
        )
        explained = explain_connect_error(error, place) or unexpected
    if goes_away and explained.close_kind in (CloseKind.TRANSIENT, CloseKind.INTENDED):
        return UpstreamError(f"The time of the connection to {place.name} was over.", CloseKind.GO_AWAY)
    return explained


def explain_close(code: int, reason: str, place: Place, *, is_open: bool, was_resumed: bool) -> UpstreamError:
    """Explains a close frame. `was_resumed` tells whether the connection was made with a handle."""
    said = quote(reason, place.api_key)
    for rule in _RULES:
        if not rule.pattern.search(reason):
            continue
        if rule.kind is CloseKind.DEAD_HANDLE and not was_resumed:
            # There was no handle: an open session was lost, or what was asked for does not exist.
            kind = CloseKind.TRANSIENT if is_open else CloseKind.CONFIGURATION
            return UpstreamError(add_quote(f"{place.name} refused the session", said), kind)
        sentence = rule.sentence.format(name=place.name, key_variable=place.key_variable)
        return UpstreamError(add_quote(sentence, said) if rule.quotes else sentence, rule.kind)
    if code == 1000:
        return UpstreamError(f"{place.name} has ended the session.", CloseKind.INTENDED)
    if code in _REFUSED_CODES:
        if was_resumed and not is_open:
            # A session that cannot be resumed is also refused as an invalid argument.
            return UpstreamError(f"{place.name} refused to resume the session.", CloseKind.DEAD_HANDLE)
        return UpstreamError(
            add_quote(f"{place.name} refused what it was sent ({code})", said), CloseKind.CONFIGURATION
        )
    if code == ABNORMAL:
        message = f"The connection to {place.name} was lost. Check the network, or try again."
        return UpstreamError(message, CloseKind.TRANSIENT, kind=FailureKind.CUT_OFF)
    return UpstreamError(add_quote(f"{place.name} closed the connection ({code})", said), CloseKind.TRANSIENT)

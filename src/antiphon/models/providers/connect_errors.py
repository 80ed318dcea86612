"""Explains why a WebSocket to a provider could not be opened, or broke, for all SDKs that use `websockets`."""

import json
import socket
import ssl
from dataclasses import dataclass, field
from typing import Final

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from antiphon.models.base import FailureKind
from antiphon.models.live import CloseKind, UpstreamError
from antiphon.models.providers.failures import read_retry_after
from antiphon.security.quotes import add_quote, quote

BUSY: Final = (408, 409, 425)
"""Refusals that may be gone at the next try."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is, for sentences about it."""

    name: str
    """The model's name."""
    url: str
    key_variable: str
    api_key: str | None = field(repr=False)


def explain_connect_error(error: BaseException, place: Place) -> UpstreamError | None:
    """Returns None for an error that has nothing to do with the connection."""
    match error:
        case InvalidStatus():
            return _explain_status(error, place)
        case TimeoutError():
            message = f"{place.name} did not answer in time. Check the network, or try again later."
            return UpstreamError(message, CloseKind.TRANSIENT, kind=FailureKind.TIMEOUT)
        case ssl.SSLCertVerificationError():
            message = (
                f"The certificate of {place.url} is not trusted ({error.verify_message}). "
                "For a server of your own, set SSL_CERT_FILE to its certificate."
            )
            return UpstreamError(message, CloseKind.CONFIGURATION)
        case ssl.SSLError():
            message = f"{place.url} does not speak TLS as it should. Check the address and the port."
            return UpstreamError(message, CloseKind.CONFIGURATION)
        case socket.gaierror():
            message = f"{place.name} cannot be reached: the address {place.url} was not found. Check the network."
            return UpstreamError(message, CloseKind.TRANSIENT, kind=FailureKind.UNREACHABLE)
        case InvalidURI():
            message = f"{place.url} is not an address that {place.name} can be reached at."
            return UpstreamError(message, CloseKind.CONFIGURATION)
        case InvalidHandshake():
            message = f"{place.url} did not answer as a WebSocket server. Is it the right address?"
            return UpstreamError(message, CloseKind.CONFIGURATION, kind=FailureKind.INVALID_RESPONSE)
        case OSError() | ConnectionClosed() | EOFError():
            message = f"{place.name} cannot be reached, or broke off. Check the network and that {place.url} is up."
            return UpstreamError(message, CloseKind.TRANSIENT, kind=FailureKind.UNREACHABLE)
    return None


def _explain_status(error: InvalidStatus, place: Place) -> UpstreamError:
    response, name = error.response, place.name
    status, said = response.status_code, quote(_read_body(bytes(response.body or b"")), place.api_key)
    wait_s = read_retry_after({key.lower(): value for key, value in response.headers.raw_items()})
    if status == 429:
        message = add_quote(f"{name} accepts no more sessions for now", said)
        return UpstreamError(message, CloseKind.QUOTA, status=status, retry_after_s=wait_s)
    if status in (401, 403) or (status == 400 and "api key" in said.lower()):
        # The server's own words may hold a part of the key.
        problem = "refused the API key" if place.api_key else "requires an API key"
        message = f"{name} {problem}. Check {place.key_variable}."
        return UpstreamError(message, CloseKind.CONFIGURATION, status=status)
    if status == 404:
        message = add_quote(f"{name} was not found at {place.url}", said)
        return UpstreamError(message, CloseKind.CONFIGURATION, status=status)
    if status >= 500 or status in BUSY:
        message = add_quote(f"{name} is not available at the moment (HTTP {status})", said)
        kind = FailureKind.SERVER_ERROR
        return UpstreamError(message, CloseKind.TRANSIENT, kind=kind, status=status, retry_after_s=wait_s)
    message = add_quote(f"{name} refused the connection (HTTP {status})", said)
    return UpstreamError(message, CloseKind.CONFIGURATION, status=status)


def _read_body(body: bytes) -> object:
    text = body[:10_000].decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

"""What can go wrong with an image service, and the `ToolError` for it, with a sentence that can be said to the user."""

import re
from collections.abc import Mapping
from typing import Any, Final

from antiphon.models.base import ModelError
from antiphon.models.providers.failures import ConnectionLost, Refusal, TimedOut, read_retry_after
from antiphon.models.providers.references import Endpoint
from antiphon.security.quotes import add_quote, quote
from antiphon.services.http import failures as http
from antiphon.services.http.failures import Trouble, WebError
from antiphon.services.images.formats import MAX_IMAGE_BYTES, NotAnImage, TooLarge
from antiphon.tools.errors import ErrorType, ToolError

SERVICE: Final = "the image service"
NOT_CONFIGURED: Final = "I can't make pictures yet: no image service is set up on this server."
DECLINED: Final = "The image service declined to make that picture, because of its rules about content."

_POLICY_CODES: Final = frozenset({"moderation_blocked", "content_policy_violation", "content_filter", "contentfilter"})
_POLICY_WORDS: Final = re.compile(r"safety system|content.?(?:policy|filter|moderation)|moderation|guardrail", re.I)
_RETRY_DELAY: Final = re.compile(r"(\d{1,6}(?:\.\d+)?)s")


class Declined(Exception):
    """The service refuses to make this image, because of its rules about content."""


FAILURES: Final = (
    *(Declined, Refusal, TimedOut, ConnectionLost, WebError, NotAnImage, TooLarge),
    *(ValueError, RecursionError),
)
"""What may be raised while a service is asked: what `explain` takes."""


def not_configured() -> ToolError:
    return ToolError(
        ErrorType.PERMANENT,
        NOT_CONFIGURED,
        suggestion="Whoever runs the server can set images.model in antiphon.toml: "
        '"openai:gpt-image-2.5-flare" with OPENAI_API_KEY, "gemini:gemini-3.1-flash-image" with GEMINI_API_KEY, or '
        '"openai:URL#NAME" for a server of their own. Offer to draft a prompt instead; do not call this again.',
    )


def unusable(error: ModelError) -> ToolError:
    """Makes the error for a service that is configured, but lacks its key or a package."""
    return ToolError(
        ErrorType.PERMANENT,
        "I can't make pictures at the moment: the image service of this server is not set up completely.",
        suggestion=f"{error} Tell the user; do not call this again.",
    )


def explain(error: Exception, name: str, endpoint: Endpoint) -> ToolError:
    """`name` is the model's name without the address of its server, because models are told this."""
    match error:
        case Declined():
            return _declined()
        case Refusal():
            return _explain_refusal(error, name, endpoint)
        case TooLarge() | WebError(trouble=Trouble.TOO_LARGE):
            most = f"{MAX_IMAGE_BYTES // 1024**2} MB"
            return ToolError(
                ErrorType.PERMANENT,
                "The image service sent a picture that is too large for this server.",
                suggestion=f"{name} sent more than {most}. A smaller size may work.",
            )
        case NotAnImage() | WebError(trouble=Trouble.FORBIDDEN):
            failure = ToolError(ErrorType.TRANSIENT, "The image service didn't send a picture.", retryable=True)
            return _without_picture(failure, f"{name} sent no PNG, JPEG or WebP.")
        case TimedOut():
            return _without_picture(http.slow(SERVICE), f"{name} did not answer.")
        case ConnectionLost():
            return _without_picture(http.unreachable(SERVICE), f"{name} cannot be reached.")
        case WebError():
            return _without_picture(http.explain(error, SERVICE), f"The picture of {name} cannot be downloaded.")
    return _without_picture(http.broken(SERVICE), f"The answer of {name} is invalid.")


def _declined() -> ToolError:
    return ToolError(
        ErrorType.PERMANENT,
        DECLINED,
        suggestion="Tell the user kindly, and offer to word it differently. Do not call again with the same prompt.",
    )


def _explain_refusal(error: Refusal, name: str, endpoint: Endpoint) -> ToolError:
    status, said = error.status, quote(error.body, endpoint.api_key)
    wait_s = read_retry_after(error.headers)
    is_about_key = status in (401, 403) or (status == 400 and "api key" in said.lower())
    if _is_about_content(error, said):
        return _declined()
    if status == 429:
        failure = http.too_many(SERVICE, wait_s or _read_retry_delay(error.body))
        failure.suggestion = add_quote(f"{name} is limited", said)
        return failure
    if is_about_key:
        # The service's own words may hold a part of the key.
        return ToolError(
            ErrorType.AUTH,
            "The image service doesn't accept the key of this server.",
            suggestion=f"Whoever runs the server should check {endpoint.key_variable}. Do not call this again.",
        )
    if status >= 500 or status in (408, 409, 425):
        return _without_picture(http.failing(SERVICE, wait_s), add_quote(f"HTTP {status}", said))
    if status < 400:
        # The address may be private, so it is not named.
        why = f"{name} answered with a redirect, which is not followed. Check the address in images.model."
        return ToolError(
            ErrorType.PERMANENT, "The image service is not at the address in the settings.", suggestion=why
        )
    return ToolError(
        ErrorType.PERMANENT,
        "The image service doesn't know its model." if status == 404 else "The image service refused that request.",
        suggestion=add_quote(f"{name} answered with HTTP {status}", said),
    )


def _is_about_content(error: Refusal, said: str) -> bool:
    code = str(_detail(error.body).get("code") or "").lower()
    return code in _POLICY_CODES or (error.status in (400, 422) and _POLICY_WORDS.search(said) is not None)


def _detail(body: object) -> Mapping[str, Any]:
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _read_retry_delay(body: object) -> float | None:
    """Reads how long to wait from the details of a refusal of Gemini's, which has no header for it."""
    details = _detail(body).get("details")
    for detail in details if isinstance(details, list) else ():
        match detail:
            case {"retryDelay": str(delay)} if (found := _RETRY_DELAY.fullmatch(delay)) is not None:
                return float(found[1])
    return None


def _without_picture(failure: ToolError, why: str) -> ToolError:
    """Adds what the model is told."""
    failure.suggestion = f"{why} No picture was made."
    return failure

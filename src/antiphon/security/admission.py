"""Who a caller is, and why one is refused, in the words that every endpoint shares."""

from dataclasses import dataclass
from enum import StrEnum

from antiphon.errors import AntiphonError


@dataclass(frozen=True, slots=True)
class Caller:
    user: str
    authenticated: bool
    token_id: str | None = None
    is_admin: bool = False
    """Whether the token is the operator's, who may read and change what belongs to others."""


class RefusalKind(StrEnum):
    UNAUTHENTICATED = "unauthenticated"
    """A valid token is required."""
    WRONG_TOKENS = "wrong_tokens"
    """Too many wrong tokens came from this address recently."""
    FULL = "full"
    """Too many connections or requests came from this user or address recently."""
    BLOCKED = "blocked"
    """This user is blocked for a while."""


class AdmissionRefused(AntiphonError):
    """The caller may not enter. The message says why, and what to do."""

    code = "admission_refused"

    def __init__(
        self,
        kind: RefusalKind,
        message: str,
        *,
        retry_after_s: float | None = None,
        until_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s
        self.until_ms = until_ms
        """When a block ends, as Unix time in milliseconds."""

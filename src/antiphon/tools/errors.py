"""What can go wrong with a tool: error types for the model, and exceptions for the operator."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from antiphon.errors import AntiphonError


class ErrorType(StrEnum):
    VALIDATION = "VALIDATION"
    NOT_FOUND = "NOT_FOUND"
    SESSION_INACTIVE = "SESSION_INACTIVE"
    SESSION_ACTIVE = "SESSION_ACTIVE"
    MODE_RESTRICTED = "MODE_RESTRICTED"
    TRANSIENT = "TRANSIENT"
    PERMANENT = "PERMANENT"
    RATE_LIMIT = "RATE_LIMIT"
    AUTH = "AUTH"
    CONFLICT = "CONFLICT"
    CONFIRMATION_REQUIRED = "CONFIRMATION_REQUIRED"
    INTERNAL = "INTERNAL"


class ToolError(Exception):
    """An expected failure. A handler may raise it anywhere; the gate turns it into a result."""

    def __init__(
        self,
        type: ErrorType,
        message: str,
        *,
        retryable: bool = False,
        suggestion: str | None = None,
        retry_after_s: float | None = None,
        details: Mapping[str, Any] | None = None,
        partial_side_effects: bool = False,
    ) -> None:
        super().__init__(message)
        self.type = type
        self.message = message
        self.retryable = retryable
        self.suggestion = suggestion
        self.retry_after_s = retry_after_s
        self.details = details
        self.partial_side_effects = partial_side_effects


class RegistryError(AntiphonError):
    """The artifact cannot be loaded, or the registry is locked."""

    code = "tools_registry"


class RegistryChanged(RegistryError):
    """A session's tools are no longer the process's tools; in development that is fatal."""

    code = "tools_changed"


class ClientToolError(AntiphonError):
    """A client has declared a tool that cannot be used. The message says why."""

    code = "client_tool"

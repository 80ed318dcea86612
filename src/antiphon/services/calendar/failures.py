"""The ways in which only calendars fail, as errors with a sentence for the user and advice for the model."""

from antiphon.services.http import failures as http
from antiphon.tools.errors import ErrorType, ToolError


def refused(service: str, advice: str) -> ToolError:
    return http.refused(service, f"Tell the user that the access to the calendar must be renewed: {advice}")


def forbidden(service: str) -> ToolError:
    return ToolError(
        ErrorType.AUTH,
        f"{http.begin(service)} doesn't allow me to do that.",
        suggestion="The account has no right to do this in that calendar.",
    )


def unknown_calendar(name: str, known: list[str]) -> ToolError:
    return ToolError(
        ErrorType.NOT_FOUND,
        f"I don't know a calendar called {name}.",
        suggestion=f"The calendars are: {', '.join(known)}.",
    )


def no_such_event() -> ToolError:
    return ToolError(
        ErrorType.NOT_FOUND,
        "That event is not in your calendar any more.",
        suggestion="List the events again; it may have been deleted or moved.",
    )


def changed_meanwhile() -> ToolError:
    return ToolError(
        ErrorType.CONFLICT,
        "Someone has just changed that event, so I left it as it is.",
        suggestion="List the events again, and ask the user what to do.",
    )


def unknown_outcome(service: str) -> ToolError:
    """A write whose answer did not arrive. Asking again is safe: the event's id is made from the request."""
    return ToolError(
        ErrorType.TRANSIENT,
        f"{http.begin(service)} didn't answer, so I don't know whether that was done.",
        partial_side_effects=True,
        suggestion="Look at the calendar before you offer to do it again. A repeated request does not double an event.",
    )

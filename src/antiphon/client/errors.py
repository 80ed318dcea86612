"""What can go wrong between a client and its server."""

from antiphon.errors import AntiphonError


class ClientError(AntiphonError):
    code = "client"


class Disconnected(ClientError):
    """There is no connection, or none any more."""

    code = "disconnected"

    def __init__(self, message: str, *, close_code: int | None = None, come_back: bool) -> None:
        super().__init__(message)
        self.close_code = close_code
        """None if there was no connection to close."""
        self.come_back = come_back
        """Whether the same may succeed another time."""


class TurnLost(ClientError):
    """The connection broke, and what was typed will not be answered: it never arrived, or its session is gone."""

    code = "turn_lost"

    def __init__(self) -> None:
        super().__init__("The connection broke before your message was answered. Send it again.")

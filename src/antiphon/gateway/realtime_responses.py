"""The responses of a Realtime conversation, one at a time, and how each of them ends."""

from collections.abc import Callable
from typing import Any

from antiphon.gateway.realtime_items import CLIENT_CANCELLED, TURN_DETECTED, Emit, Items, ResponseWriter, Status
from antiphon.gateway.realtime_settings import RealtimeSettings
from antiphon.models.live import Usage


class Responses:
    """The response under way, and what has happened to it. It ends when the session's turn does, or with calls of the
    client's functions."""

    def __init__(
        self, emit: Emit, items: Items, *, conversation_id: Callable[[], str], has_calls: Callable[[], bool]
    ) -> None:
        """`has_calls` tells whether the session's turn waits for the client's functions."""
        self._emit = emit
        self._items = items
        self._conversation_id = conversation_id
        self._has_calls = has_calls
        self.active: ResponseWriter | None = None
        self._last: ResponseWriter | None = None
        """The newest response that is over."""
        self.failure: dict[str, Any] | None = None
        """What has gone wrong in the response under way."""
        self.is_cancelled = False
        """Whether the client has stopped the turn under way."""
        self.was_interrupted = False
        """Whether the turn under way was stopped, by whomever."""

    def begin(self, settings: RealtimeSettings, *, metadata: Any = None, turn: int = 0) -> ResponseWriter:
        """Begins a response. If the turn waits for the client's functions, it goes on with that turn."""
        response = ResponseWriter(
            emit=self._emit,
            items=self._items,
            settings=settings,
            conversation_id=self._conversation_id(),
            metadata=metadata,
            turn=turn,
        )
        if self._has_calls() and self._last is not None:
            last = self._last
            response.turn, response.before_ms, response.before_text = last.turn, last.before_ms, last.before_text
        self.active, self.failure = response, None
        response.start()
        return response

    def begin_turn(self) -> None:
        """Another turn of the session begins."""
        self.is_cancelled = self.was_interrupted = False

    def is_over(self, turn: int) -> bool:
        """Whether the client has been told that the answer to this turn is over."""
        return self.active is None and self._last is not None and self._last.turn == turn and not self._has_calls()

    def add_usage(self, usage: Usage) -> None:
        if self.active is not None:
            before = self.active.usage or Usage(usage.turn, 0, 0)
            self.active.usage = Usage(
                usage.turn, before.input_tokens + usage.input_tokens, before.output_tokens + usage.output_tokens
            )

    @property
    def is_interrupted_by_user(self) -> bool:
        return self.was_interrupted and not self.is_cancelled and self.failure is None

    def rest(self) -> bool:
        """The session rests: the response is over if its turn has begun. Returns whether it is."""
        is_over = self.active is not None and bool(self.active.turn)
        if is_over:
            if self.was_interrupted and self.failure is None:
                self.cancel(CLIENT_CANCELLED if self.is_cancelled else TURN_DETECTED)
            else:
                self.complete()
        self.was_interrupted = self.is_cancelled = False
        return is_over

    def complete(self) -> None:
        """The response is over. If something has gone wrong in it, it has failed."""
        failure = self.failure
        self._finish(Status.COMPLETED if failure is None else Status.FAILED, error=failure)

    def cancel(self, reason: str) -> None:
        self._finish(Status.CANCELLED, reason=reason)

    def _finish(self, status: Status, *, reason: str | None = None, error: dict[str, Any] | None = None) -> None:
        response, self.active, self.failure = self.active, None, None
        if response is not None:
            self._last = response
            response.finish(status, reason=reason, error=error)

"""The responses of a realtime conversation, one at a time.

The server has one response at a time, and with voice activity detection it starts some of them by itself. A response
that is asked for while another one is active, or not yet created, or being cancelled, waits until that one is done.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from antiphon.models.providers.connect_errors import Place
from antiphon.models.providers.realtime_events import ClientEvent, ErrorDetails, OutputItem, Response
from antiphon.models.providers.realtime_failures import ACTIVE_RESPONSE, explain_error, is_final
from antiphon.models.providers.upstream import Answer, Turns
from antiphon.telemetry.log import get_logger

RELEASE_S: Final = 5.0
"""How long a response waits for another one to be done, or for the server to create it, before it is asked for."""
REQUEST_KEY: Final = "request"
"""The key of a response's metadata under which it is recognised."""

log = get_logger(__name__)


@dataclass(eq=False, slots=True)
class ResponseRequest:
    """A response that the session needs."""

    answer: Answer
    settings: Mapping[str, Any]
    event_id: str = field(default_factory=lambda: f"request_{uuid4().hex[:16]}")


@dataclass(eq=False, slots=True)
class ActiveResponse:
    """A response from when it is asked for, or created by the server, until it is done."""

    answer: Answer | None
    """None if nothing but its existence is known."""
    request: ResponseRequest | None = None
    """None if the server has created it by itself."""
    id: str | None = None
    """None until it is created."""
    is_cancelled: bool = False
    calls: dict[str, OutputItem] = field(default_factory=dict)
    """The completed calls, by the ids of their items."""


class Responses:
    def __init__(self, send: Callable[[ClientEvent], None], turns: Turns, place: Place) -> None:
        self.active: ActiveResponse | None = None
        self.reset_s: float | None = None
        """When the rate limits are reset, as the server last told."""
        self._send = send
        self._turns = turns
        self._place = place
        self._waiting: ResponseRequest | None = None
        """The response that is asked for next."""
        self._release: asyncio.TimerHandle | None = None
        self._expected: Answer | None = None
        """The answer for which the server creates the response by itself."""
        self._make_update: Callable[[], ClientEvent] | None = None
        """Makes a change of the session, which waits until no response is active."""
        self._sent_update: tuple[str, Callable[[], ClientEvent]] | None = None
        """The id of the last change that was sent, and what has made it."""
        self._returns_metadata = False
        """Whether the server is known to return the metadata of a request. A compatible one may not."""

    def ask(self, answer: Answer, settings: Mapping[str, Any] | None = None) -> None:
        """Asks for a response. The active one is cancelled if it belongs to another answer."""
        self._waiting = ResponseRequest(answer, settings or {})
        self.cancel_unwanted()
        self.proceed()

    def expect(self, answer: Answer) -> None:
        """The server will create the response to this answer by itself."""
        self._expected = answer
        self.cancel_unwanted()
        self._start_timer()

    def update_session(self, make_update: Callable[[], ClientEvent]) -> None:
        """Changes the session as soon as no response is active. The change is made then."""
        self._make_update = make_update
        self.proceed()

    def cancel_unwanted(self) -> None:
        """Cancels the active response if nobody waits for its answer any more."""
        active = self.active
        if active is None or active.id is None or active.is_cancelled:
            return
        if active.answer is None or active.answer is not self._turns.answer:
            active.is_cancelled = True
            self._send({"type": "response.cancel", "response_id": active.id})

    def note_cancelled(self) -> None:
        """The server cancels the active response by itself. One that it has not created yet must be cancelled later."""
        if self.active is not None and self.active.id is not None:
            self.active.is_cancelled = True

    def proceed(self) -> None:
        """Sends what waits for the active response to be done, if it is."""
        if self._waiting is not None and self._waiting.answer is not self._turns.answer:
            self._waiting = None
        if self.active is not None or self._expected is not None:
            if self._waiting is not None:
                self._start_timer()
            return
        self.close()
        make_update, self._make_update = self._make_update, None
        if make_update is not None:
            event_id = f"update_{uuid4().hex[:16]}"
            self._send({**make_update(), "event_id": event_id})
            self._sent_update = (event_id, make_update)
        request, self._waiting = self._waiting, None
        if request is not None:
            self.active = ActiveResponse(request.answer, request)
            response = {**request.settings, "metadata": {REQUEST_KEY: request.event_id}}
            self._send({"type": "response.create", "event_id": request.event_id, "response": response})

    def close(self) -> None:
        """No timer is left."""
        if self._release is not None:
            self._release.cancel()
            self._release = None

    # The server's events.

    def take_created(self, response: Response) -> None:
        active = self.active
        requested = active.request if active is not None and active.id is None else None
        request_id = response.metadata.get(REQUEST_KEY) if isinstance(response.metadata, dict) else None
        is_requested = requested is not None and request_id == requested.event_id
        self._returns_metadata = self._returns_metadata or is_requested
        may_be_requested = request_id is None and self._expected is None and not self._returns_metadata
        if active is not None and requested is not None and (is_requested or may_be_requested):
            active.id = response.id
        elif request_id is None and self._expected is not None:
            # If another one was asked for at the same moment, the server refuses that one.
            self.active = ActiveResponse(self._expected, id=response.id)
            self._expected = None
            self.close()
        elif request_id is not None or (active is not None and active.answer is not None):
            # It was given up, or is one too many.
            self._send({"type": "response.cancel", "response_id": response.id})
            return
        else:
            # The server answers without having been asked: results of calls, or a silence of the user.
            self.active = ActiveResponse(self._turns.answer or self._turns.hear(), id=response.id)
        self._turns.watch()
        self.cancel_unwanted()
        self.proceed()

    def take_done(self, response: Response) -> ActiveResponse | None:
        """Returns the response that is done; None for one that nobody knows. `proceed` is to be called then."""
        done = self.active
        if done is None or (done.id != response.id and (done.answer is not None or done.id is not None)):
            return None
        self.active = None
        return done

    def take_refusal(self, error: ErrorDetails) -> bool:
        """Returns whether the error was about a request for a response, or about a change that must wait for one."""
        active = self.active
        if self._sent_update is not None and error.event_id == self._sent_update[0]:
            # A response that the server had started was active.
            make_update, self._sent_update = self._sent_update[1], None
            self._make_update = self._make_update or (make_update if active is not None else None)
            return active is not None
        if error.code == ACTIVE_RESPONSE and error.event_id is None and self._expected is not None:
            # The server could not create the response to what it heard, so it must be asked for.
            answer, self._expected = self._expected, None
            self.ask(answer)
            return True
        requested = active.request if active is not None else None
        if active is None or requested is None or not self._is_refused(requested, error):
            return False
        if error.code != ACTIVE_RESPONSE:
            self.active = None
            self._turns.fail(requested.answer, explain_error(error, self._place, reset_s=self.reset_s))
            self.proceed()
            return True
        # The active response is one that the server has created. It is not wanted, and it will be done.
        self.active = ActiveResponse(None, id=active.id)
        if self._waiting is None:
            self._waiting = ResponseRequest(requested.answer, requested.settings)
        self.cancel_unwanted()
        self.proceed()
        return True

    def _is_refused(self, requested: ResponseRequest, error: ErrorDetails) -> bool:
        """Whether the error is about this request. Every event has an id, but not every server tells which it means."""
        if error.event_id is not None:
            return error.event_id == requested.event_id
        is_pending = self.active is not None and self.active.id is None
        return is_pending and (error.code == ACTIVE_RESPONSE or error.type == "server_error" or is_final(error))

    def _start_timer(self) -> None:
        if self._release is None:
            self._release = asyncio.get_running_loop().call_later(RELEASE_S, self._stop_waiting)

    def _stop_waiting(self) -> None:
        """Asks for the response that waits, or that the server should have created."""
        log.warning("model_response_overdue", model=self._place.name)
        self._release = None
        if self._waiting is None and self._expected is not None:
            self._waiting = ResponseRequest(self._expected, {})
        self.active = self._expected = None
        self.proceed()

"""uvicorn's two kinds of connection, with the deadlines and bounds that it leaves out."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.protocol import OPEN

from antiphon.protocol.closing import BAD_UTF8, RESTARTING, TOO_LARGE
from antiphon.server.whole_frames import read_binary

MAX_HEADER_BYTES: Final = 16 * 1024
"""The longest head of a request, its first line included."""

MAX_FRAGMENTS: Final = 256
"""Of one message. Empty fragments add nothing to its length, so without this they could go on for ever."""

MAX_WAITING: Final = 8
"""Messages that may wait for the application before no more are read."""

Tap = Callable[[bytes], bool]
"""Takes a binary message as soon as it has come. Where it gives False, the message is to be received instead."""

AUDIO: Final = "antiphon.audio"
"""The extension of a WebSocket's scope whose `tap` sets or takes away a `Tap`: no task need be woken for a microphone's
frames, of which there are fifty a second.

The application keeps the order of messages by a promise: it is done with each one that it has received before it waits
for anything else."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    header_s: float = 10.0
    """From the first moment of a connection, or the first byte of a later request, to the end of the header."""
    body_s: float = 30.0
    """From the end of the header to the end of the body."""
    write_s: float = 20.0
    """In which the other side must take what was written to it."""
    linger_s: float = 2.0
    """How long the rest of a refused message is read and thrown away, so that its sender can read why."""


class _Alarm:
    """One timer that cuts a connection, unless it is called off in time."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def set(self, delay_s: float, cut: Callable[[], object]) -> None:
        self.call_off()
        self._timer = asyncio.get_running_loop().call_later(delay_s, cut)

    def call_off(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _ReadByItsPeer(asyncio.Protocol):
    """A connection that is cut if the other side does not take what was written to it."""

    transport: asyncio.Transport
    deadlines: Deadlines

    def __init__(self, *args: Any, deadlines: Deadlines, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.deadlines = deadlines
        self._write_alarm = _Alarm()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_alarm.set(self.deadlines.write_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._write_alarm.call_off()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._write_alarm.call_off()
        super().connection_lost(exc)


class _StrictParser(h11.Connection):
    """Refuses a request whose end two parsers could see in different places.

    h11 reads the chunks and leaves Content-Length out. A proxy in front that does the opposite would take a part of the
    body for the next request, or the next request for a part of the body.
    """

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version < b"1.1"):
                raise h11.RemoteProtocolError("two ways to tell where the body ends")
        return event


class HttpConnection(_ReadByItsPeer, H11Protocol):
    """h11, not the quicker httptools: it bounds the length of a header, and a WebSocket leaves it at the handshake."""

    def __init__(self, *args: Any, deadlines: Deadlines, **keywords: Any) -> None:
        super().__init__(*args, deadlines=deadlines, **keywords)
        self.conn = _StrictParser(h11.SERVER, self.config.h11_max_incomplete_event_size or MAX_HEADER_BYTES)
        self._request_alarm = _Alarm()
        self._awaited: object = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        # With a mark of 0, writing counts as paused whenever the system did not take everything at once. That makes one
        # deadline do for slow readers and for a close that waits to be flushed, which asyncio lets wait for ever.
        transport.set_write_buffer_limits(high=0)
        super().connection_made(transport)
        self._await(h11.IDLE)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_ours = self.transport.get_protocol() is self and not self.transport.is_closing()
        self._await(self.conn.their_state if is_ours else None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._await(None)
        super().connection_lost(exc)

    def _await(self, state: object) -> None:
        """The time runs from the change of state: a client cannot prolong it by a byte now and then."""
        if state is self._awaited:
            return
        self._awaited = state
        self._request_alarm.call_off()
        if state is h11.IDLE:
            self._request_alarm.set(self.deadlines.header_s, self.transport.abort)
        elif state is h11.SEND_BODY:
            self._request_alarm.set(self.deadlines.body_s, self.transport.abort)


class WebSocketConnection(_ReadByItsPeer, WebSocketsSansIOProtocol):
    _refused = False
    _tap: Tap | None = None

    async def run_asgi(self) -> None:
        self.scope["extensions"][AUDIO] = {"tap": self._set_tap}
        await super().run_asgi()

    def _set_tap(self, tap: Tap | None) -> None:
        self._tap = tap

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        rest = self._take_whole(data) if self._is_between_messages() else data
        if rest:
            super().data_received(rest)

    def _is_between_messages(self) -> bool:
        conn = self.conn
        return conn.state is OPEN and conn.current_size is None and not conn.reader.buffer

    def _take_whole(self, data: bytes) -> bytes:
        """Hands over the binary messages at the beginning of the data, and gives what is left."""
        at = 0
        while (found := read_binary(data, at, self.config.ws_max_size)) is not None:
            message, at = found
            if not self._is_tapped(message):
                self.curr_msg_data_type, self.frames = "bytes", [message]
                self._hand_over()
        return data[at:] if at else data

    def _is_tapped(self, message: bytes) -> bool:
        # An empty queue means that all before this was handled, not only taken: whoever waits at an asyncio.Queue is
        # woken when something is put, but takes it out only when it runs, and then keeps the promise of `AUDIO`.
        return self._tap is not None and self.queue.empty() and self._tap(message)

    def shutdown(self) -> None:
        """Says why it closes; uvicorn sends the bare code."""
        if self.conn.state is not OPEN or self.close_sent:
            super().shutdown()
            return
        self.stop_keepalive()
        code, reason = RESTARTING.code, RESTARTING.reason
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.conn.send_close(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.close()

    def handle_ping(self) -> None:
        """Leaves out a pong that would have to wait: from a client that never reads they would fill the memory."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def send_receive_event_to_app(self) -> None:
        """A client's bad UTF-8 is worth a line in the log; uvicorn would write a traceback."""
        if self.curr_msg_data_type == "text" and not _is_utf8(b"".join(self.frames)):
            self.logger.warning("text that is not UTF-8 was refused")
            self.conn.fail(BAD_UTF8.code, BAD_UTF8.reason)
            self.handle_parser_exception()
            return
        self._hand_over()

    def _hand_over(self) -> None:
        """Lets a few messages wait. uvicorn would stop reading at the first and go on when it is taken, which changes
        the system's list of sockets twice for every frame of a microphone: a fifth of what a frame cost."""
        if self.read_paused or self.queue.qsize() >= MAX_WAITING:
            super().send_receive_event_to_app()
            return
        self.read_paused = True
        super().send_receive_event_to_app()
        self.read_paused = False

    def handle_cont(self, event: Frame) -> None:
        if self._refused:
            return
        if len(self.frames) < MAX_FRAGMENTS:
            super().handle_cont(event)
            return
        self.conn.fail(TOO_LARGE.code, "a message has too many fragments")
        self.handle_parser_exception()

    def handle_parser_exception(self) -> None:
        """Says why, and reads on for a moment: closing with bytes unread is a reset, which can overtake the reason."""
        closing = cast(Any, self.conn.close_sent)
        self._refused = self.close_sent = True
        self.frames = []
        self.stop_keepalive()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": closing.code, "reason": closing.reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        # uvicorn keeps a connection with this timer open after the application has returned.
        self.close_timer = self.loop.call_later(self.deadlines.linger_s, self.transport.abort)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True

"""uvicorn's two kinds of connection, with the deadlines and limits that it lacks.

They override private parts of uvicorn and websockets, so `pyproject.toml` has upper bounds for both.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets import frames
from websockets.protocol import OPEN

from antiphon.protocol.closing import BAD_UTF8, RESTARTING, TOO_LARGE
from antiphon.protocol.limits import FRAME_LIMIT_EXTENSION

MAX_HEADER_BYTES: Final = 16 * 1024
"""The longest header of a request, including its first line."""

MAX_FRAGMENTS: Final = 256
"""The most fragments of one message. Empty ones do not add to its length, so they need a limit of their own."""

Tap = Callable[[bytes], bool]
"""Takes a binary message as soon as it arrives. If it returns False, the application receives the message instead."""

AUDIO: Final = "antiphon.audio"
"""The extension of a WebSocket's scope whose `tap` sets or removes a `Tap`, so that no task has to be woken for the
frames of a microphone, of which there are fifty a second.

The application must finish each message that it receives before it waits for anything else: this keeps the order."""

_BINARY: Final = 0x82
"""The first byte of a binary message in a single frame, without extensions."""
_MASKED: Final = 0x80
_LONG: Final = _MASKED | 126
"""The second byte of a frame whose length is in the next two bytes."""
_MIN_FRAME_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Deadlines:
    header_s: float = 10.0
    """From the opening of a connection, or the first byte of a later request, to the end of the header."""
    body_s: float = 30.0
    """From the end of the header to the end of the body."""
    write_s: float = 20.0
    """How long the other side may take to read what was written to it."""
    linger_s: float = 2.0
    """How long the rest of a refused message is read and dropped, so that its sender can read the reason."""


class _Timer:
    """One timer that aborts a connection unless it is cancelled in time."""

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None

    def start(self, delay_s: float, abort: Callable[[], object]) -> None:
        self.cancel()
        self._handle = asyncio.get_running_loop().call_later(delay_s, abort)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class _WriteDeadline(asyncio.Protocol):
    """A connection that is aborted if the other side does not read what was written to it."""

    transport: asyncio.Transport
    deadlines: Deadlines

    def __init__(self, *args: Any, deadlines: Deadlines, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.deadlines = deadlines
        self._write_timer = _Timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer.start(self.deadlines.write_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._write_timer.cancel()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._write_timer.cancel()
        super().connection_lost(exc)


class _StrictParser(h11.Connection):
    """Refuses a request whose end two parsers could find in different places.

    h11 reads the chunks and ignores Content-Length. A proxy in front that does the opposite would take a part of the
    body for the next request, or the next request for a part of the body.
    """

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version < b"1.1"):
                raise h11.RemoteProtocolError("two ways to tell where the body ends")
        return event


class HttpConnection(_WriteDeadline, H11Protocol):
    """Uses h11 although httptools is faster: h11 limits the length of a header, and WebSockets leave it at once."""

    def __init__(self, *args: Any, deadlines: Deadlines, **keywords: Any) -> None:
        super().__init__(*args, deadlines=deadlines, **keywords)
        self.conn = _StrictParser(h11.SERVER, self.config.h11_max_incomplete_event_size or MAX_HEADER_BYTES)
        self._request_timer = _Timer()
        self._awaited: object = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # With a limit of 0, writing counts as paused whenever the system did not take everything at once. So the same
        # deadline covers slow readers and a close that waits to be flushed, which asyncio would let wait forever.
        # TLS pauses at the limit instead of above it, so 0 would pause for good.
        transport.set_write_buffer_limits(high=0 if transport.get_extra_info("sslcontext") is None else 1)
        self._await(h11.IDLE)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_ours = self.transport.get_protocol() is self and not self.transport.is_closing()
        self._await(self.conn.their_state if is_ours else None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._await(None)
        super().connection_lost(exc)

    def _await(self, state: object) -> None:
        """Starts the deadline when the state changes: a client cannot extend it by sending a byte now and then."""
        if state is self._awaited:
            return
        self._awaited = state
        self._request_timer.cancel()
        if state is h11.IDLE:
            self._request_timer.start(self.deadlines.header_s, self.transport.abort)
        elif state is h11.SEND_BODY:
            self._request_timer.start(self.deadlines.body_s, self.transport.abort)


class WebSocketConnection(_WriteDeadline, WebSocketsSansIOProtocol):
    _refused = False
    _tap: Tap | None = None

    async def run_asgi(self) -> None:
        self.scope["extensions"][AUDIO] = {"tap": self._set_tap}
        self.scope["extensions"][FRAME_LIMIT_EXTENSION] = {"set": self._set_frame_limit}
        await super().run_asgi()

    def _set_frame_limit(self, max_bytes: int) -> None:
        self.conn.max_message_size = max_bytes

    def _set_tap(self, tap: Tap | None) -> None:
        self._tap = tap

    def data_received(self, data: bytes) -> None:
        """Reads binary messages that arrived whole in one step, and leaves everything else to the library.

        The library reads each frame with a coroutine, field by field, and uvicorn wakes a task for each message. A
        microphone frame through the whole server took 37 µs of CPU that way, 32 µs with the frame read in one step, and
        23 µs with the tap too (40 connections at 50 frames a second, medians of four interleaved runs).
        """
        if self._refused:
            return
        rest = self._take_whole(data) if self._is_between_messages() else data
        if rest:
            super().data_received(rest)

    def _is_between_messages(self) -> bool:
        conn = self.conn
        return conn.state is OPEN and conn.current_size is None and not conn.reader.buffer

    def _take_whole(self, data: bytes) -> bytes:
        """Delivers the binary messages at the beginning of the data, and returns the rest."""
        at = 0
        while (found := read_binary(data, at, self.config.ws_max_size)) is not None:
            message, at = found
            if not self._is_tapped(message):
                self.curr_msg_data_type, self.frames = "bytes", [message]
                super().send_receive_event_to_app()
        return data[at:] if at else data

    def _is_tapped(self, message: bytes) -> bool:
        # An empty queue means that everything before this was handled, not only taken: a task that waits at an
        # asyncio.Queue takes an item out only when it runs, and then it finishes the item first, as `AUDIO` requires.
        return self._tap is not None and self.queue.empty() and self._tap(message)

    def shutdown(self) -> None:
        """Closes with a reason; uvicorn sends only the code."""
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
        """Drops a pong that would have to wait: for a client that never reads, they would fill the memory."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def send_receive_event_to_app(self) -> None:
        """Refuses text that is not UTF-8 with one line in the log; uvicorn would log a traceback."""
        if self.curr_msg_data_type == "text" and not _is_utf8(b"".join(self.frames)):
            self.logger.warning("refused a text message that is not UTF-8")
            self.conn.fail(BAD_UTF8.code, BAD_UTF8.reason)
            self.handle_parser_exception()
            return
        super().send_receive_event_to_app()

    def handle_cont(self, event: frames.Frame) -> None:
        if self._refused:
            return
        if len(self.frames) < MAX_FRAGMENTS:
            super().handle_cont(event)
            return
        self.conn.fail(TOO_LARGE.code, "a message has too many fragments")
        self.handle_parser_exception()

    def handle_parser_exception(self) -> None:
        """Sends the reason and reads on for a moment: closing with unread bytes is a reset, which can overtake it."""
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


def read_binary(data: bytes, at: int, max_bytes: int) -> tuple[bytes, int] | None:
    """Reads the client's binary message that begins at `at`, and returns it with the place where it ends.

    Returns None for anything that the library has to judge: another kind of frame, a fragment, a frame that is not
    masked, is too large, or has not arrived completely.
    """
    if len(data) - at < _MIN_FRAME_BYTES or data[at] != _BINARY:
        return None
    size, body = data[at + 1], at + 6
    if size == _LONG:
        size, body = data[at + 2] << 8 | data[at + 3], at + 8
    elif _MASKED <= size < _LONG:
        size -= _MASKED
    else:
        return None
    end = body + size
    if size > max_bytes or end > len(data):
        return None
    # websockets chooses the compiled function where there is one.
    return frames.apply_mask(data[body:end], data[body - 4 : body]), end  # type: ignore[attr-defined]


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True

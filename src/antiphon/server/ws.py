"""The WebSocket endpoint: passes messages between a client and its session, within the client's quotas."""

import asyncio
from collections import deque
from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from antiphon.protocol import client_messages as c
from antiphon.protocol import codec, limits
from antiphon.protocol.closing import (
    BLOCKED,
    FULL,
    INTERNAL,
    NO_HELLO,
    NORMAL,
    TOO_FAST,
    TOO_SLOW,
    UNAUTHENTICATED,
    Close,
)
from antiphon.protocol.errors import ErrorCode, ProtocolError
from antiphon.protocol.server_messages import Audio, Error, ServerMessage, Timeout
from antiphon.security.admission import AdmissionRefused, RefusalKind
from antiphon.security.quota import Account, Kind, Quota
from antiphon.security.tokens import bearer
from antiphon.server.admission import Admission
from antiphon.server.connections import AUDIO
from antiphon.session.hub import STORE_CLOSE, STORE_ERROR, ActiveSession, Hub
from antiphon.session.tool_runner import charge_to
from antiphon.storage.base import StoreUnavailable
from antiphon.telemetry.log import get_logger

HELLO_GRACE_S: Final = 1.5
"""How long a client may take to send the optional hello. Nothing is sent before, since hello may resume a session. It
comes one round trip after the connection was accepted: with 0.3 s, clients behind slow networks, or that were busy with
other connections, lost their conversation. A client that sends anything else does not wait."""
MAX_WAITING_BYTES: Final = 4 << 20
"""If a client leaves more than this unread, queued speech is dropped; if that is not enough, the client is closed. A
minute of speech fits in."""

LEAVING_S: Final = 5.0
"""How long pending work may take when a socket is closed."""

MAX_REFUSED: Final = 200
"""How many frames over the quota are refused before the socket is closed."""

MESSAGES_AHEAD: Final = 50.0
AUDIO_AHEAD_S: Final = 1.0
"""What a socket takes from the quota in advance: 50 microphone frames. Checking two limits on three accounts for each
frame took a fifth of its cost."""

_AUDIO: Final = f'{{"type":"{codec.tag_of(Audio)}",'
"""How an `audio` message begins: the type is the first field of every message."""

log = get_logger(__name__)


class SocketLink:
    """The sending side of a socket: a queue with one writer, limited by what the client leaves unread."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._frames: deque[str | bytes] = deque()
        self._waiting_bytes = 0
        self._max_bytes = MAX_WAITING_BYTES
        """How much may wait. A replay raises it."""
        self._writing_bytes = 0
        """The size of the frame that is being written."""
        self._wakeup = asyncio.Event()
        self.closing: Close | None = None

    def send(self, frame: str | bytes, *, is_replay: bool = False) -> None:
        if self.closing is not None:
            return
        self._frames.append(frame)
        self._waiting_bytes += len(frame)
        if is_replay:
            # A client that reconnects has not read what it missed, however much that is.
            self._max_bytes = max(self._max_bytes, self._waiting_bytes + MAX_WAITING_BYTES)
        if self._waiting_bytes > self._max_bytes:
            self._drop_speech()
        if self._waiting_bytes > self._max_bytes:
            self.close(TOO_SLOW)
        self._wakeup.set()

    def _drop_speech(self) -> None:
        """Drops all queued speech: a client that is so far behind would get it a minute late."""
        self._frames = deque(frame for frame in self._frames if not _is_speech(frame))
        self._waiting_bytes = sum(map(len, self._frames)) + self._writing_bytes

    def close(self, close: Close) -> None:
        """Closes after the queue is sent, unless the queue is too long."""
        if self.closing is None:
            self.closing = close
            if close is TOO_SLOW:
                self._frames.clear()
            self._wakeup.set()

    async def write(self) -> None:
        """Sends until the socket should be closed, and then closes it."""
        while True:
            while self._frames:
                frame = self._frames.popleft()
                self._writing_bytes = len(frame)
                if isinstance(frame, str):
                    await self._socket.send_text(frame)
                else:
                    await self._socket.send_bytes(frame)
                self._waiting_bytes -= self._writing_bytes
                self._writing_bytes = 0
                self._max_bytes = min(self._max_bytes, self._waiting_bytes + MAX_WAITING_BYTES)
            if self.closing is not None:
                await self._socket.close(self.closing.code, self.closing.reason)
                return
            self._wakeup.clear()
            await self._wakeup.wait()


class Endpoint:
    """`/ws`."""

    def __init__(self, hub: Hub, admission: Admission, quota: Quota) -> None:
        self._hub = hub
        self._admission = admission
        self._quota = quota

    async def talk(self, socket: WebSocket) -> None:
        await socket.accept()
        link = SocketLink(socket)
        writer = asyncio.create_task(link.write())
        reading = _Reader(socket, link, hub=self._hub, admission=self._admission, quota=self._quota)
        reader = asyncio.create_task(reading.read())
        try:
            await asyncio.wait([writer, reader], return_when=asyncio.FIRST_COMPLETED)
            if link.closing is None and reader.done():
                writer.cancel()
            # The other task notices and ends by itself. A cancelled reader could be using a store: that would lose the
            # connection to it, and a session that has just begun would never be left.
            await asyncio.wait([writer, reader], timeout=LEAVING_S)
        finally:
            for task in (writer, reader):
                task.cancel()
            for outcome in await asyncio.gather(writer, reader, return_exceptions=True):
                if isinstance(outcome, Exception) and not isinstance(outcome, WebSocketDisconnect | RuntimeError):
                    log.error("socket_failed", exc_info=outcome)


@dataclass(slots=True)
class _QuotaAdvance:
    """What a socket has taken from one quota in advance."""

    kind: Kind
    portion: float
    left: float = 0.0


class _Reader:
    """The receiving side: authenticates the client, and passes its messages to the session."""

    def __init__(self, socket: WebSocket, link: SocketLink, *, hub: Hub, admission: Admission, quota: Quota) -> None:
        self._hub = hub
        self._admission = admission
        self._quota = quota
        self._socket = socket
        self._link = link
        self._active: ActiveSession | None = None
        self._account = Account(address=socket.client.host if socket.client else None)
        self._messages = _QuotaAdvance(Kind.MESSAGE, MESSAGES_AHEAD)
        self._audio_s = _QuotaAdvance(Kind.AUDIO_S, AUDIO_AHEAD_S)
        self._refused = 0.0
        extensions: dict[str, Any] = socket.scope.get("extensions") or {}
        # Without the extension, audio is received like any other message.
        self._set_tap = extensions.get(AUDIO, {"tap": lambda tap: None})["tap"]

    async def read(self) -> None:
        for_good = False
        try:
            first = await self._enter()
            if self._active is None:
                return
            self._set_tap(self._take)
            if first is not None:
                self._take(first)
            while self._link.closing is None:
                self._take(await self._receive())
        except WebSocketDisconnect as gone:
            for_good = gone.code == NORMAL.code
        except AdmissionRefused as refused:
            self._turn_away(refused)
        except StoreUnavailable as error:
            log.error("socket_refused", error=str(error))
            self._refuse(STORE_ERROR, STORE_CLOSE)
        except Exception:
            self._fail()
        finally:
            self._set_tap(None)
            if self._active is not None:
                self._hub.detach(self._active, self._link, for_good=for_good)

    async def _enter(self) -> str | bytes | None:
        """Authenticates the client and enters its session. Returns the first frame if it was not a hello."""
        self._admission.count(self._account)
        frame = await self._first_frame()
        if self._link.closing is not None:
            return None
        hello = c.Hello()
        if isinstance(frame, str):
            try:
                decoded = codec.decode(frame)
            except ProtocolError:
                decoded = None
            if isinstance(decoded, c.Hello):
                hello, frame = decoded, None
        token = hello.token or _bearer_of(self._socket)
        caller = await self._admission.identify(token, address=self._account.address, route=self._socket.url.path)
        self._account = replace(self._account, user=caller.user)
        self._active = await self._hub.attach(caller.user, hello, self._link, authenticated=caller.authenticated)
        self._active.token_id = caller.token_id
        self._account = replace(self._account, session=self._active.id)
        self._active.runner.charge(charge_to(self._quota, self._account, self._hub.clock))
        return frame

    def _turn_away(self, refused: AdmissionRefused) -> None:
        match refused.kind:
            case RefusalKind.UNAUTHENTICATED:
                self._refuse(Error(str(refused), ErrorCode.UNAUTHENTICATED), UNAUTHENTICATED)
            case RefusalKind.WRONG_TOKENS:
                self._refuse(Error(str(refused), ErrorCode.TOO_FAST, retryable=True), FULL)
            case RefusalKind.BLOCKED:
                self._refuse(Timeout(refused.until_ms or 0, refused.retry_after_s or 0.0, str(refused)), BLOCKED)
            case RefusalKind.FULL:
                self._link.close(FULL)

    async def _first_frame(self) -> str | bytes | None:
        """Waits for hello, which must come in time if a token is required and the header has none."""
        must = self._admission.requires_token and _bearer_of(self._socket) is None
        try:
            async with asyncio.timeout(limits.HELLO_LIMIT_S if must else HELLO_GRACE_S):
                return await self._receive()
        except TimeoutError:
            if must:
                self._link.close(NO_HELLO)
            return None

    async def _receive(self) -> str | bytes:
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005), message.get("reason"))
        text, data = message.get("text"), message.get("bytes")
        return text if text is not None else data or b""

    def _take(self, frame: str | bytes) -> bool:
        """Returns False if the socket is being closed. The reader then receives the audio, wakes up and ends."""
        if self._link.closing is not None:
            return False
        try:
            self._handle(frame)
        except Exception:
            self._fail()
        return True

    def _handle(self, frame: str | bytes) -> None:
        """Handles a frame without waiting: the tap may deliver the next audio frame at any time."""
        assert self._active is not None
        runner = self._active.runner
        self._active.settle_handle()
        if not self._admit(self._messages, 1):
            return
        try:
            message = codec.decode(frame)
        except ProtocolError as error:
            runner.outbox.send(Error(str(error), error.code))
            return
        if not isinstance(message, c.AudioFrame):
            runner.post(message)
        elif self._admit(self._audio_s, len(message.pcm) / (2 * limits.MICROPHONE_HZ)):
            runner.hear(message.pcm, playing=message.playing)

    def _admit(self, ahead: _QuotaAdvance, amount: float) -> bool:
        """Returns whether the quota allows it. A client that does not slow down when told is closed."""
        assert self._active is not None
        if not self._refused and amount <= ahead.left:
            ahead.left -= amount
            return True
        if self._is_within_quota(ahead, amount):
            # Ten accepted frames make up for a refused one, so that a long session is not closed for old offences.
            self._refused = max(0.0, self._refused - 0.1)
            return True
        self._refused += 1
        if self._refused == 1:
            self._active.runner.outbox.send(Error(TOO_FAST.reason, ErrorCode.TOO_FAST, retryable=True))
        if self._refused > MAX_REFUSED:
            self._link.close(TOO_FAST)
        return False

    def _is_within_quota(self, ahead: _QuotaAdvance, amount: float) -> bool:
        if amount <= ahead.left:
            ahead.left -= amount
            return True
        now_s = self._hub.clock.monotonic()
        if self._quota.take(ahead.kind, self._account, amount + ahead.portion, now_s, is_optional=True) == 0:
            ahead.left += ahead.portion
            return True
        return self._quota.take(ahead.kind, self._account, amount, now_s) == 0

    def _fail(self) -> None:
        log.exception("socket_reader_failed")
        self._link.close(INTERNAL)

    def _refuse(self, told: ServerMessage, close: Close) -> None:
        self._link.send(codec.encode(told, 1))
        self._link.close(close)


def _is_speech(frame: str | bytes) -> bool:
    return isinstance(frame, bytes) or frame.startswith(_AUDIO)


def _bearer_of(socket: WebSocket) -> str | None:
    return bearer(socket.headers.get("authorization"))

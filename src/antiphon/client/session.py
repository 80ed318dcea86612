"""A client's session. One task reads and reconnects, and puts what it receives into the inbox of the caller."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from itertools import count
from os import PathLike
from typing import Final

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed
from websockets.protocol import OPEN

from antiphon.client.answers import Answer
from antiphon.client.asking import ANSWER_S, Decide, Tell, ask_in, resolve_in, speak_in
from antiphon.client.events import Disconnected, Incoming, Reconnecting
from antiphon.client.resuming import STEADY_S, Backoff, ResumePosition, TypedTurn
from antiphon.protocol.client_messages import ClientMessage, Confirm, Hello, TextMessage
from antiphon.protocol.closing import CLOSES, NORMAL
from antiphon.protocol.codec import decode_audio, decode_server, encode_client, encode_microphone
from antiphon.protocol.errors import ProtocolError
from antiphon.protocol.server_messages import ConfirmationRequest, GoAway, ServerMessage, SpeechFrame

INBOX: Final = 1_000
"""How many messages wait for a caller that does not read. After that the server has to wait too, and may close."""
LOST: Final = 1006
"""The close code of a connection that was lost without one."""
GOING_AWAY: Final = 1001
APPLICATION: Final = 4000
"""Close codes from here on belong to the server. After an unknown one, the client does not reconnect."""

_COME_BACK: Final = {close.code: close.come_back for close in CLOSES}
_log: Final = logging.getLogger(__name__)

Dial = Callable[[], Awaitable[ClientConnection]]


class Session:
    """Made by `connect`. Each message is delivered once, so there should be only one reader at a time."""

    def __init__(self, dial: Dial, hello: Hello, *, backoff: Backoff | None) -> None:
        self._dial = dial
        self._backoff = backoff
        self._position = ResumePosition(hello)
        self._inbox: asyncio.Queue[tuple[int, Incoming] | None] = asyncio.Queue(INBOX)
        self._connection: ClientConnection | None = None
        self._dialled: ClientConnection | None = None
        """The newest connection, which is closed at the end."""
        self._connections = 0
        self._changed = asyncio.Condition()
        self._ended: Disconnected | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def handle(self) -> str | None:
        """The handle for resuming the session in the `Hello` of another connection. Keep it in memory only."""
        return self._position.handle

    @property
    def last_n(self) -> int:
        """The number of the last message that was received."""
        return self._position.last_n

    @property
    def conversation_id(self) -> str | None:
        """None until the server has introduced the session."""
        return self._position.session.conversation_id if self._position.session else None

    async def start(self) -> None:
        connection = await self._open()
        self._reader = asyncio.create_task(self._run(connection))

    async def messages(self) -> AsyncIterator[Incoming]:
        """Yields everything that arrives until the server ends the session. Raises `Disconnected` at any other end."""
        while (arrived := await self._next()) is not None:
            yield arrived[1]
        if self._ended is not None and self._ended.close_code != NORMAL.code:
            raise self._ended

    async def ask(
        self,
        text: str,
        *,
        confirm: Decide | None = None,
        timeout_s: float = ANSWER_S,
        tell: Tell = lambda incoming: None,
    ) -> Answer:
        """Asks a question, and returns the whole answer.

        `confirm` decides about calls that need approval: a function of the `ConfirmationRequest` that returns a bool,
        async or not. Without it, `ConfirmationNeeded` is raised. `tell` is called with everything that arrives, such
        as the chunks of the answer. In voice, the spoken answer is in `Answer.pcm`, and it counts as heard.

        Raises `AnswerFailed`, `NoAnswer` after `timeout_s`, `TurnLost` or `Disconnected`.
        """
        return await ask_in(self, text, confirm, timeout_s, tell)

    async def speak(
        self,
        recording: "bytes | str | PathLike[str]",
        *,
        confirm: Decide | None = None,
        tell: Tell = lambda incoming: None,
    ) -> Answer:
        """Speaks a WAV file (its content or its path; 16,000 Hz, mono, 16 bits) as a microphone would, in real time,
        and returns the answer with its audio.

        Raises `RecordingError`, `VoiceUnavailable`, `NoAnswer`, and what `ask` raises.
        """
        return await speak_in(self, recording, confirm, tell)

    async def resolve(
        self,
        request: ConfirmationRequest,
        *,
        approved: bool,
        timeout_s: float = ANSWER_S,
        tell: Tell = lambda incoming: None,
    ) -> Answer:
        """Answers a `ConfirmationRequest`, and returns what came of it."""
        return await resolve_in(self, request, approved, timeout_s, tell)

    def take_waiting(self) -> list[Incoming]:
        """Takes what has arrived and was not read yet."""
        taken: list[Incoming] = []
        while not self._inbox.empty():
            arrived = self._inbox.get_nowait()
            if arrived is None:
                self._inbox.put_nowait(None)
                break
            taken.append(arrived[1])
        return taken

    async def type(self, text: str) -> AsyncIterator[Incoming]:
        """Sends a message, and yields what arrives until its answer is over; first, what had arrived before.

        In voice, the answer is over when the caller has reported its playback. Raises `TurnLost` or `Disconnected`.
        """
        connection = await self._ready()
        sent_on, earlier = self._connections, self._inbox.qsize()
        await self._send(connection, encode_client(TextMessage(text)))
        turn = TypedTurn()
        while not turn.over:
            arrived = await self._next()
            if arrived is None:
                assert self._ended is not None
                raise self._ended
            came_on, incoming = arrived
            yield incoming
            if earlier:
                earlier -= 1
            else:
                turn.follow(incoming, came_back=came_on > sent_on)

    async def send(self, message: ClientMessage) -> None:
        """Sends a message, after a reconnect if necessary. One that is sent as the connection breaks may be lost.

        Raises `Disconnected` if there will be no connection any more.
        """
        await self._send(await self._ready(), encode_client(message))

    async def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        """Sends microphone audio: PCM16 little-endian, 16 kHz, mono. Without a connection it is dropped.

        `playing`: the assistant's speech is being played, and the microphone may pick it up.
        """
        connection = self._connection
        if connection is not None:
            with suppress(ConnectionClosed):
                await connection.send(encode_microphone(pcm, playing=playing))
        elif self._ended is not None:
            raise self._ended

    async def confirm(self, confirmation_token: str, *, approved: bool) -> None:
        """Sends the user's answer to a `ConfirmationRequest`. The outcome is among the `messages`."""
        await self.send(Confirm(confirmation_token, approved))

    async def aclose(self) -> None:
        """Ends the session for good."""
        if self._reader is not None:
            self._reader.cancel()
            with suppress(asyncio.CancelledError):
                await self._reader
        if self._dialled is not None:
            await self._dialled.close(NORMAL.code)

    # Sending.

    async def _ready(self) -> ClientConnection:
        """Returns an open connection, and waits for one if necessary."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._is_open() or self._ended is not None)
        if self._ended is not None:
            raise self._ended
        assert self._connection is not None
        return self._connection

    def _is_open(self) -> bool:
        return self._connection is not None and self._connection.state is OPEN

    async def _send(self, connection: ClientConnection, frame: str) -> None:
        try:
            await connection.send(frame)
        except ConnectionClosed as closed:
            if self._backoff is None:
                raise _explain(closed) from None

    # Receiving.

    async def _next(self) -> tuple[int, Incoming] | None:
        """Returns what has arrived, with the number of its connection; None after the end."""
        arrived = await self._inbox.get()
        if arrived is None:
            self._inbox.put_nowait(None)
        return arrived

    async def _tell(self, *incoming: Incoming) -> None:
        for each in incoming:
            await self._inbox.put((self._connections, each))

    async def _run(self, connection: ClientConnection) -> None:
        loop = asyncio.get_running_loop()
        attempt = 0
        try:
            while True:
                opened_s = loop.time()
                lost = await self._read(connection)
                await self._set(None)
                await self._tell(*self._position.close())
                if self._backoff is None or not lost.come_back:
                    raise lost
                await self._tell(Reconnecting(str(lost)))
                attempt = 0 if loop.time() - opened_s >= STEADY_S else attempt
                connection, attempt = await self._come_back(self._backoff, attempt)
        except Disconnected as ended:
            self._ended = ended
            await self._set(None)
            await self._inbox.put(None)

    async def _come_back(self, backoff: Backoff, tried: int) -> tuple[ClientConnection, int]:
        for attempt in count(tried + 1):
            await asyncio.sleep(backoff.delay_s(attempt))
            try:
                return await self._open(), attempt
            except Disconnected as failed:
                if not failed.come_back:
                    raise
        raise AssertionError("unreachable")

    async def _open(self) -> ClientConnection:
        self._dialled = connection = await self._dial()
        # A server that refuses may have closed already; reading tells the reason.
        with suppress(ConnectionClosed):
            await connection.send(encode_client(self._position.open()))
        self._connections += 1
        await self._set(connection)
        return connection

    async def _set(self, connection: ClientConnection | None) -> None:
        async with self._changed:
            self._connection = connection
            self._changed.notify_all()

    async def _read(self, connection: ClientConnection) -> Disconnected:
        """Reads until the connection is lost, and returns the reason."""
        leave_at_s: float | None = None
        try:
            while True:
                async with asyncio.timeout_at(leave_at_s):
                    message = _decode(await connection.recv())
                if isinstance(message, GoAway) and self._backoff is not None:
                    # The current answer may still arrive, so the server closes, and the client only if it does not.
                    leave_at_s = asyncio.get_running_loop().time() + message.time_left_ms / 1000
                if message is not None:
                    await self._tell(*self._position.take(message))
        except ConnectionClosed as closed:
            return _explain(closed)
        except TimeoutError:
            await connection.close(GOING_AWAY)
            return Disconnected("The server is shutting down.", close_code=GOING_AWAY, come_back=True)


def _decode(frame: str | bytes) -> ServerMessage | SpeechFrame | None:
    """Returns None for an unknown message, since the server may be newer."""
    try:
        return decode_server(frame) if isinstance(frame, str) else decode_audio(frame)
    except ProtocolError as error:
        _log.debug("ignored a message: %s", error)
        return None


def _explain(closed: ConnectionClosed) -> Disconnected:
    code = closed.rcvd.code if closed.rcvd else LOST
    if closed.rcvd is None:
        message = "The connection was lost."
    else:
        message = f"The server closed the connection: {closed.rcvd.reason or 'without a reason'} ({code})."
    return Disconnected(message, close_code=code, come_back=_COME_BACK.get(code, code < APPLICATION))

"""OpenAI Realtime and Azure OpenAI Realtime as live models, through OpenAI's SDK.

Antiphon keeps the conversation, so the SDK's own reconnecting is not used: it would open a session that knows nothing.

This module needs the package `openai`.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final, cast

import openai
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from websockets.exceptions import ConnectionClosed

from antiphon.audio.resample import Resampler
from antiphon.clock import Clock, SystemClock
from antiphon.models.base import FailureKind
from antiphon.models.live import (
    CloseKind,
    GoAway,
    LiveContext,
    LiveEvent,
    LiveProfile,
    ModelFactory,
    ToolAnswer,
    UpstreamError,
)
from antiphon.models.providers.connect_errors import Place, explain_connect_error
from antiphon.models.providers.realtime_conversation import RealtimeConversation
from antiphon.models.providers.realtime_events import (
    APPEND,
    ClientEvent,
    ErrorDetails,
    ServerEvent,
    UnreadableEvent,
    append_audio,
    create_item,
    encode,
    read_event,
)
from antiphon.models.providers.realtime_failures import (
    SESSION_EXPIRED,
    explain_close,
    explain_error,
    explain_refused_session,
    is_final,
)
from antiphon.models.providers.realtime_profiles import (
    REALTIME_HZ,
    RealtimeOptions,
    profile_for,
    session_settings,
    voice_settings,
)
from antiphon.models.providers.upstream import INPUT_HZ, Outgoing, Turns, Upstream
from antiphon.security.addresses import OPENAI_KEY, OPENAI_URL, leads_here
from antiphon.telemetry.log import get_logger

CONNECT_WITHIN_S: Final = 9.0
"""How long it may take until the session is set up. The session gives a model 10 seconds to connect."""
ANSWER_WITHIN_S: Final = 30.0
"""How long the server may be silent while an answer is awaited."""
CLOSE_WITHIN_S: Final = 1.0
MAX_EVENT_BYTES: Final = 4 << 20
MAX_UNREADABLE: Final = 20
"""How many messages that are not events are ignored before the connection is given up."""
ANNOUNCE_S: Final = 300.0
"""How long before its end the end of a session is announced."""
AZURE_KEY: Final = "AZURE_OPENAI_API_KEY"
AZURE_PATH: Final = "/openai/v1"

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RealtimeEndpoint:
    """A model at OpenAI, on Azure or on a compatible server, and how it is reached. All sessions share it."""

    model: str
    profile: LiveProfile
    place: Place
    client: openai.AsyncOpenAI
    socket_options: dict[str, Any]

    async def open(self) -> AsyncRealtimeConnection:
        options = cast(Any, self.socket_options)
        return await self.client.realtime.connect(model=self.model, websocket_connection_options=options).enter()


def openai_endpoint(model: str, url: str | None, api_key: str | None) -> RealtimeEndpoint:
    """`url` is the address of a compatible server, with its `/v1`; None for OpenAI itself."""
    name = f"openai-realtime:{model}"
    headers: dict[str, Any] = {}
    if api_key is None:
        # The SDK requires a key, so without one the header is removed again.
        headers["Authorization"] = openai.Omit()
    return _endpoint(model, name, url or OPENAI_URL, api_key, OPENAI_KEY, headers)


def azure_endpoint(deployment: str, url: str, api_key: str | None) -> RealtimeEndpoint:
    """`url` is the address of the Azure resource."""
    address = url.rstrip("/")
    address = address if address.endswith(AZURE_PATH) else f"{address}{AZURE_PATH}"
    headers: dict[str, Any] = {"Authorization": openai.Omit()}
    if api_key is not None:
        headers["api-key"] = api_key
    return _endpoint(deployment, f"azure-realtime:{deployment}", address, api_key, AZURE_KEY, headers)


def _endpoint(
    model: str, name: str, url: str, api_key: str | None, key_variable: str, headers: dict[str, Any]
) -> RealtimeEndpoint:
    is_local = leads_here(url)
    options: dict[str, Any] = {
        "max_size": MAX_EVENT_BYTES,
        "compression": None,
        "open_timeout": CONNECT_WITHIN_S,
        "close_timeout": CLOSE_WITHIN_S,
    }
    if is_local:
        # A proxy would resolve a loopback address to its own machine.
        options["proxy"] = None
    if url.startswith("https:"):
        # Made once: to load the certificates takes tens of milliseconds.
        options["ssl"] = ssl.create_default_context()
    if not url.startswith(OPENAI_URL):
        # They belong to an account at OpenAI, and the SDK reads them from the environment.
        headers |= {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
    client = openai.AsyncOpenAI(base_url=url, api_key=api_key or "none", default_headers=headers, max_retries=0)
    profile = profile_for(model, name=name, needs_network=not is_local)
    return RealtimeEndpoint(model, profile, Place(name, url, key_variable, api_key), client, options)


class OpenAIRealtime:
    """One conversation with a realtime model. Azure's is the same at another address."""

    def __init__(
        self,
        endpoint: RealtimeEndpoint,
        options: RealtimeOptions | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.profile = endpoint.profile
        self._endpoint = endpoint
        self._place = endpoint.place
        self._options = options or RealtimeOptions()
        self._clock = clock or SystemClock()
        self._voice: str | None = None
        self._speed = 1.0
        self._connection: AsyncRealtimeConnection | None = None
        self._resampler = Resampler(INPUT_HZ, REALTIME_HZ)
        self._upstream = Upstream(self.profile.name)
        self._outgoing = Outgoing(self._write_audio, self.profile.name)
        self._announcement: asyncio.TimerHandle | None = None
        self._event_numbers = count(1)
        turns = Turns(
            self._upstream.emit,
            name=self.profile.name,
            output_hz=REALTIME_HZ,
            answer_within_s=ANSWER_WITHIN_S,
        )
        self._conversation = RealtimeConversation(self._send, self._upstream.emit, turns, self._place, REALTIME_HZ)

    # The life of the connection.

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        self._upstream.check_not_closed()
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                expires_at = await self._open_session(context)
        except BaseException as error:
            await self._disconnect()
            explained = None if isinstance(error, UpstreamError) else self._explain(error)
            if explained is None:
                raise
            raise explained from error
        self._announce_end(expires_at)
        self._upstream.open(self._read(), self._write())

    async def _open_session(self, context: LiveContext) -> float | None:
        """Sets the session up, and returns when it expires, if that is known."""
        self._connection = await self._endpoint.open()
        created = await self._expect("session.created")
        settings = session_settings(self._endpoint.model, self._options, context, self._voice, self._speed)
        await self._write_event({"type": "session.update", "session": settings})
        await self._expect("session.updated")
        for item in self._conversation.earlier.history(context.history):
            # It is written while the server's events are read: there are two for each item.
            self._send(create_item(item))
        return created.session.expires_at if created.session is not None else None

    async def _expect(self, kind: str) -> ServerEvent:
        assert self._connection is not None
        for _ in range(MAX_UNREADABLE):
            event = read_event(await self._connection.recv_bytes())
            if event.type == kind:
                return event
            if event.type == "error" and event.error is not None:
                raise explain_refused_session(event.error, self._place)
        raise UnreadableEvent

    def _explain(self, error: BaseException) -> UpstreamError | None:
        """Explains why the session could not be set up; None if that has another reason."""
        match error:
            case TimeoutError():
                message = f"{self.profile.name} did not open a session in time. Check the network, or try again later."
                return UpstreamError(message, CloseKind.TRANSIENT, kind=FailureKind.TIMEOUT)
            case ConnectionClosed():
                return explain_close(error, self._place, is_open=False)
            case UnreadableEvent():
                message = f"{self._place.url} did not answer as a realtime server. Is it the right address?"
                return UpstreamError(message, CloseKind.CONFIGURATION, kind=FailureKind.INVALID_RESPONSE)
        return explain_connect_error(error, self._place)

    def _announce_end(self, expires_at: float | None) -> None:
        """Tells about the end of the session some time before it."""
        longest_s = self.profile.max_session_s or 0.0
        left_s = longest_s if expires_at is None else expires_at - self._clock.now_ms() / 1000
        if not 0 < left_s <= longest_s:
            # One of the two clocks is wrong.
            left_s = longest_s
        notice_s = min(ANNOUNCE_S, left_s / 2)
        loop = asyncio.get_running_loop()
        goodbye = GoAway(int(notice_s * 1000))
        self._announcement = loop.call_later(left_s - notice_s, self._upstream.emit, goodbye)

    async def _read(self) -> None:
        assert self._connection is not None
        unreadable = 0
        final_error: ErrorDetails | None = None
        """An error before a close explains it better than the reason of the close."""
        try:
            while unreadable < MAX_UNREADABLE:
                data = await self._connection.recv_bytes()
                try:
                    event = read_event(data)
                except UnreadableEvent:
                    unreadable += 1
                    log.warning("model_event_unreadable", model=self.profile.name, size=len(data))
                    continue
                if event.error is not None and event.error.code == SESSION_EXPIRED:
                    await self._lose(explain_error(event.error, self._place))
                    return
                if event.type in ("error", "response.created"):
                    final_error = event.error if event.error is not None and is_final(event.error) else None
                self._conversation.take(event)
            message = f"{self.profile.name} sent what I cannot read, so the connection was closed."
            await self._lose(UpstreamError(message, CloseKind.TRANSIENT, kind=FailureKind.INVALID_RESPONSE))
        except ConnectionClosed as closed:
            # Also a close with 1000 or 1001, after which the SDK's own iteration would just end.
            told = explain_close(closed, self._place, is_open=True)
            await self._lose(told if final_error is None else explain_error(final_error, self._place))
        except Exception:
            await self._fail()

    async def _write(self) -> None:
        try:
            await self._outgoing.run()
        except ConnectionClosed:
            # The reader tells why.
            return
        except TimeoutError:
            message = f"{self.profile.name} takes no more data. Check the network."
            await self._lose(UpstreamError(message, CloseKind.TRANSIENT, kind=FailureKind.TIMEOUT))
        except Exception:
            await self._fail()

    async def _fail(self) -> None:
        """Ends the connection after an error that nobody expected."""
        log.exception("model_connection_failed", model=self.profile.name)
        message = f"The connection to {self.profile.name} failed unexpectedly. Please try again."
        await self._lose(UpstreamError(message, CloseKind.TRANSIENT, kind=FailureKind.UNEXPECTED))

    async def _lose(self, error: UpstreamError) -> None:
        self._stop_timers()
        self._upstream.lose(error)
        await self._disconnect()

    async def _disconnect(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    def _stop_timers(self) -> None:
        self._conversation.close()
        if self._announcement is not None:
            self._announcement.cancel()

    def events(self) -> AsyncIterator[LiveEvent]:
        return self._upstream.events()

    async def close(self) -> None:
        self._stop_timers()
        await self._upstream.close()
        await self._disconnect()

    # Commands.

    def set_voice(self, voice: str | None, speed: float) -> None:
        """A voice that is chosen after the model has spoken is used from the next connection on."""
        self._voice, self._speed = voice, speed
        if self._upstream.is_open:
            self._conversation.update_voice(voice_settings(self._options, voice, speed))

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        if self._upstream.is_open:
            self._conversation.hear(len(pcm) / 2 / INPUT_HZ * 1000, playing=playing)
            self._outgoing.put_audio(pcm)

    def end_audio(self, turn: str) -> None:
        if self._upstream.is_open:
            self._outgoing.put(self._flush_audio)
            self._conversation.end_audio(turn)

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        self._upstream.check_open()
        self._conversation.respond(turn, text, ran)

    def say(self, turn: str, text: str) -> None:
        self._upstream.check_open()
        self._conversation.say(turn, text)

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        if self._upstream.is_open:
            self._conversation.send_tool_results(turn, answers)

    def interrupt(self, turn: str, heard: str | None = None) -> None:
        if self._upstream.is_open:
            self._conversation.interrupt(turn, heard)

    # Writing.

    def _send(self, event: ClientEvent) -> None:
        self._outgoing.put(partial(self._write_event, event))

    async def _write_event(self, event: ClientEvent) -> None:
        assert self._connection is not None
        if event["type"] != APPEND:
            # By its id, an error is told from one about another event.
            event.setdefault("event_id", f"event_{next(self._event_numbers)}")
        # The SDK's `send` walks through every field of an event to check its name, for audio fifty times a second.
        await self._connection.send_raw(encode(event))

    async def _write_audio(self, pcm: bytes) -> None:
        if resampled := self._resampler.push(pcm):
            await self._write_event(append_audio(resampled))

    async def _flush_audio(self) -> None:
        if rest := self._resampler.push(b"", last=True):
            await self._write_event(append_audio(rest))


def realtime_factory(endpoint: RealtimeEndpoint, options: RealtimeOptions | None = None) -> ModelFactory:
    """Makes the live models of an endpoint."""
    return ModelFactory(endpoint.profile, lambda: OpenAIRealtime(endpoint, options))

"""Opens sessions of Gemini Live: the SDK's client, the setup, and the history that a new session is given."""

import asyncio
import base64
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import cache
from typing import Any, Final, cast

from google import genai
from google.genai import errors, types
from google.genai.live import AsyncSession
from pydantic import ValidationError
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.protocol import State

from antiphon.models.base import FailureKind
from antiphon.models.live import CloseKind, LiveContext, ToolAnswer, UpstreamError
from antiphon.models.providers.connect_errors import Place
from antiphon.models.providers.gemini_closes import explain_end
from antiphon.models.providers.gemini_content import function_response, tell_history, user_content
from antiphon.models.providers.gemini_profiles import GeminiProfile, gemini_profile, profile_for
from antiphon.models.providers.references import DEFAULT_URLS, KEY_VARIABLES, Provider
from antiphon.models.providers.upstream import INPUT_HZ
from antiphon.security.addresses import leads_here
from antiphon.telemetry.log import get_logger
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import Transcript

API_VERSION: Final = "v1beta"
"""Not the SDK's own `v1`: Google's reference of the Live API has only this one, and preview models are found here."""
SETUP_S: Final = 8.0
"""How long connecting and the setup may take. It is less than a session waits, so that the sentence is ours."""
REFUSAL_S: Final = 1.0
"""How long the reason is awaited after an answer to the setup that is not its completion."""
CLOSE_S: Final = 1.0
"""How long the server may take to close a connection that is closed here."""
MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""A minute of speech in one message. The WebSocket library's own limit, 1 MiB, is less than servers send at once."""
INPUT_MIME: Final = f"audio/pcm;rate={INPUT_HZ}"
BROKEN: Final = (errors.APIError, ConnectionClosed, InvalidHandshake, InvalidURI, OSError, EOFError)
"""What the SDK raises when there is no connection, or none any more."""

_AUDIO_HEAD: Final = b'{"realtime_input": {"audio": {"data": "'
_AUDIO_TAIL: Final = b'", "mime_type": "' + INPUT_MIME.encode() + b'"}}}'

log = get_logger(__name__)


def send_audio_now(session: AsyncSession, pcm: bytes) -> bool:
    """Sends what `send_realtime_input(audio=…)` would send, unless that takes waiting, and returns whether it has.

    The SDK takes 150 µs to validate and convert what has the same form fifty times a second, which is 40 % of a core
    for fifty sessions. This takes 10 µs. The SDK gives no other way to its socket, and the socket's own `send` takes
    longer to check its state than to write.
    """
    socket = session._ws
    if socket.state is not State.OPEN or socket.paused:
        return False
    socket.protocol.send_text(_encode_audio(pcm))
    try:
        socket.send_data()
    except (OSError, RuntimeError):
        return False  # The connection is lost, and `send` tells why.
    return True


async def send_audio(session: AsyncSession, pcm: bytes) -> None:
    """Does the same, and waits for the network. Raises `ConnectionClosed`."""
    await session._ws.send(_encode_audio(pcm), text=True)


def _encode_audio(pcm: bytes) -> bytes:
    return _AUDIO_HEAD + base64.urlsafe_b64encode(pcm) + _AUDIO_TAIL


async def receive(session: AsyncSession) -> types.LiveServerMessage:
    """Returns the next message, as the SDK's `receive` would yield it.

    The SDK first takes a message apart to drop fields that it does not know, which takes longer than all that is done
    with the message here. That is left to it for messages that have such fields, and for the end of a connection.
    """
    try:
        raw = await session._ws.recv(decode=False)
    except ConnectionClosed:
        return await session._receive()
    try:
        return types.LiveServerMessage.model_validate_json(raw)
    except ValidationError:
        return await AsyncSession(session._api_client, cast(ClientConnection, _Received(raw)))._receive()


class _Received:
    """A message that was received, for the SDK to read as if from its socket."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    async def recv(self, *, decode: bool) -> bytes:
        return self._raw


class GeminiClient:
    """The SDK's client, which all sessions of a model share."""

    def __init__(self, model: str, url: str | None, api_key: str | None) -> None:
        """`url` is the address of another server than Google's. The SDK always uses TLS with it."""
        self.model = model
        self.kind = gemini_profile(model)
        self.profile = profile_for(model)
        self.place = Place(
            name=self.profile.name,
            url=url or DEFAULT_URLS[Provider.GEMINI_LIVE],
            key_variable=KEY_VARIABLES[Provider.GEMINI_LIVE],
            api_key=api_key,
        )
        socket_options: dict[str, Any] = {
            "max_size": MAX_MESSAGE_BYTES,
            # Gemini answers pings after 8 to 30 s, and the library would close the connection before.
            "ping_interval": None,
            # Audio hardly becomes smaller, and compressing it takes as long as sending it.
            "compression": None,
            "open_timeout": SETUP_S,
            "close_timeout": CLOSE_S,
        }
        if leads_here(self.place.url):
            socket_options["proxy"] = None
        options = types.HttpOptions(base_url=self.place.url, api_version=API_VERSION, async_client_args=socket_options)
        _warm_up()
        # The SDK insists on a key. A server of one's own may need none.
        self._sdk = genai.Client(vertexai=False, api_key=api_key or "none", http_options=options)

    async def open(
        self, context: LiveContext, *, resume: str | None, voice: str | None
    ) -> tuple[AsyncSession, AsyncExitStack]:
        """Returns a session that is set up, and what closes it. Raises `UpstreamError`."""
        history: list[types.Content | types.ContentDict] = []
        if resume is None:
            history += tell_history(context.history, ends_with_user=not self.kind.declares_history)
        config = _make_config(self.kind, context, resume=resume, voice=voice, has_history=bool(history))
        try:
            async with AsyncExitStack() as stack, asyncio.timeout(SETUP_S):
                connecting = self._sdk.aio.live.connect(model=self.model, config=config)
                session = await stack.enter_async_context(connecting)
                if session.setup_complete is None:
                    raise await self._explain_refusal(session)
                if history:
                    await session.send_client_content(turns=history, turn_complete=self.kind.declares_history)
                return session, stack.pop_all()
        except TimeoutError as error:
            message = f"{self.place.name} did not answer within {SETUP_S:.0f} seconds. Check the network, or try again."
            raise UpstreamError(message, CloseKind.TRANSIENT, kind=FailureKind.TIMEOUT) from error
        except BROKEN as error:
            raise explain_end(
                error, self.place, is_open=False, was_resumed=resume is not None, goes_away=False
            ) from error
        except UpstreamError:
            raise
        except Exception as error:
            # The SDK fails in many ways over an answer that it cannot read.
            message = f"{self.place.name} answered with something else than a session. Is {self.place.url} the address?"
            raise UpstreamError(message, CloseKind.TRANSIENT, kind=FailureKind.INVALID_RESPONSE) from error

    async def _explain_refusal(self, session: AsyncSession) -> Exception:
        """The server answered the setup with something else. The SDK hides what it was, but a close may follow."""
        try:
            async with asyncio.timeout(REFUSAL_S):
                async for _ in session.receive():
                    pass
        except errors.APIError as error:
            return error
        except Exception as error:
            log.debug("model_refusal_unreadable", model=self.place.name, error=type(error).__name__)
        message = f"{self.place.name} answered the setup with an error. Check the model's name and the tools."
        return UpstreamError(message, CloseKind.TRANSIENT, kind=FailureKind.INVALID_RESPONSE)


def _make_config(
    kind: GeminiProfile, context: LiveContext, *, resume: str | None, voice: str | None, has_history: bool
) -> types.LiveConnectConfig:
    config = types.LiveConnectConfig(
        response_modalities=[types.Modality.AUDIO],
        session_resumption=types.SessionResumptionConfig(handle=resume),
        input_audio_transcription=types.AudioTranscriptionConfig(),
        output_audio_transcription=types.AudioTranscriptionConfig(),
        context_window_compression=types.ContextWindowCompressionConfig(sliding_window=types.SlidingWindow()),
    )
    if context.system:
        config.system_instruction = types.Content(role="user", parts=[types.Part(text=context.system)])
    if context.tools:
        config.tools = [types.Tool(function_declarations=[_declare(kind, tool) for tool in context.tools])]
    if voice is not None:
        chosen = types.PrebuiltVoiceConfig(voice_name=voice)
        config.speech_config = types.SpeechConfig(voice_config=types.VoiceConfig(prebuilt_voice_config=chosen))
    if kind.thinking_level is not None:
        config.thinking_config = types.ThinkingConfig(thinking_level=types.ThinkingLevel(kind.thinking_level))
    if has_history and kind.declares_history:
        config.history_config = types.HistoryConfig(initial_history_in_client_content=True)
    return config


def _declare(kind: GeminiProfile, tool: Mapping[str, Any]) -> types.FunctionDeclaration:
    try:
        declaration = types.FunctionDeclaration.model_validate(dict(tool))
    except ValueError as error:
        name = tool.get("name", "without a name")
        message = f"The parameters of the tool {name} cannot be written for Gemini. Change or remove the tool."
        raise UpstreamError(message, CloseKind.CONFIGURATION) from error
    if kind.behavior is not None:
        declaration.behavior = types.Behavior(kind.behavior)
    return declaration


@cache
def _warm_up() -> None:
    """Has pydantic build its validators, a fifth of a second which no session should wait for at their first use."""
    kind = GeminiProfile(behavior="NON_BLOCKING", thinking_level="LOW")
    tool = {"name": "sample", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}
    context = LiveContext("Hello.", Transcript(), (), (tool,), Mode.VOICE)
    config = _make_config(kind, context, resume="handle", voice="Puck", has_history=True)
    types.LiveConnectParameters(model="sample", config=config).model_dump(exclude_none=True)
    types.LiveClientContent(turns=[user_content("Hello.")]).model_dump(mode="json", exclude_none=True)
    types.LiveSendRealtimeInputParameters.model_validate({"text": "Hello."})
    call = ToolCall("sample", "sample", {})
    types.LiveClientToolResponse(function_responses=[function_response(ToolAnswer(call, {}), None)]).model_dump()
    part = {"inlineData": {"mimeType": INPUT_MIME, "data": "AAAA"}}
    content = {"modelTurn": {"parts": [part]}, "outputTranscription": {"text": "Hello."}, "turnComplete": True}
    types.LiveServerMessage.model_validate({"serverContent": content, "toolCall": {"functionCalls": [{"name": "a"}]}})

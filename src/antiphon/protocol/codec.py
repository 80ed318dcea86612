"""Decodes and encodes frames, without input or output.

Whatever a frame contains, the result is a message or a `ProtocolError`."""

import binascii
from collections.abc import Sequence
from struct import Struct as Layout
from typing import Any, Final, Union

import msgspec
from msgspec import DecodeError, ValidationError
from msgspec.json import Decoder, Encoder
from msgspec.structs import replace

from antiphon.protocol.client_messages import CLIENT_MESSAGES, AudioFrame, ClientMessage, Settings
from antiphon.protocol.errors import ErrorCode, ProtocolError
from antiphon.protocol.limits import MAX_FRAME_BYTES
from antiphon.protocol.server_messages import SERVER_MESSAGES, ServerMessage, SpeechFrame
from antiphon.sound_format import SAMPLE_BYTES, write_wav

PLAYING: Final = 0b1
"""The flag of a microphone frame that was recorded while the client was playing the assistant's speech."""
SPEECH: Final = 0x01
"""The first byte of a binary frame from the server."""

_SPEECH_HEADER: Final = Layout(">BIII")
_QUOTED: Final = 120
"""How many characters of the client's own text an error repeats."""

# Everything that msgspec raises for bad input. A lone surrogate and bad UTF-8 raise Python's own errors.
_REFUSED: Final = (DecodeError, UnicodeError, RecursionError)


def tag_of(message: type[ClientMessage] | type[ServerMessage]) -> str:
    """Returns the `type` of a message on the wire."""
    return str(message.__struct_config__.tag)


class _Envelope(msgspec.Struct):
    type: str | None = None


# `Union[tuple]` is a type at run time only, so the annotations give the decoders their types.
_client: Final[Decoder[ClientMessage]] = Decoder(Union[CLIENT_MESSAGES])  # noqa: UP007
_server: Final[Decoder[ServerMessage]] = Decoder(Union[SERVER_MESSAGES])  # noqa: UP007
_envelope: Final = Decoder(_Envelope)
_encode: Final = Encoder().encode
_CLIENT_TYPES: Final = tuple(map(tag_of, CLIENT_MESSAGES))
_SERVER_TYPES: Final = tuple(map(tag_of, SERVER_MESSAGES))
_SETTINGS: Final = tag_of(Settings)


def decode(frame: str | bytes) -> ClientMessage | AudioFrame:
    """Decodes a client's frame: text is a message, bytes are microphone audio."""
    # For text these are characters; the transport has already limited the bytes.
    if len(frame) > MAX_FRAME_BYTES:
        raise ProtocolError(ErrorCode.TOO_LARGE, f"A frame may have at most {MAX_FRAME_BYTES} bytes.")
    if isinstance(frame, bytes):
        # With one byte of flags, a whole number of samples makes an odd length.
        if len(frame) % SAMPLE_BYTES == 0 or len(frame) == 1:
            raise ProtocolError(ErrorCode.BAD_AUDIO, "An audio frame is one byte of flags and whole 16-bit samples.")
        return AudioFrame(frame[0] & PLAYING == PLAYING, frame[1:])
    try:
        return _client.decode(frame)
    except _REFUSED as error:
        raise _refusal(frame, error, _CLIENT_TYPES) from None


def encode(message: ServerMessage, n: int) -> str:
    """Encodes a message as the `n`th of its session."""
    numbered = replace(message, n=n)
    try:
        return _encode(numbered).decode()
    except UnicodeEncodeError:
        # A model's or a tool's text may contain half of a surrogate pair, cut between two chunks.
        return _encode(_repair(msgspec.to_builtins(numbered))).decode()


def encode_audio(n: int, turn: int, seq: int, pcm: bytes) -> bytes:
    """Encodes speech for a client that takes binary audio: PCM16, 22,050 Hz."""
    return _SPEECH_HEADER.pack(SPEECH, n, turn, seq) + pcm


def wav_base64(pcm: bytes, hz: int) -> str:
    """Makes the `data` of an `audio` message from PCM16 mono."""
    return binascii.b2a_base64(write_wav(pcm, hz), newline=False).decode("ascii")


def decode_server(text: str) -> ServerMessage:
    """For clients: decodes a text frame. Clients ignore an `UNKNOWN_TYPE`, since the server may be newer."""
    try:
        return _server.decode(text)
    except _REFUSED as error:
        raise _refusal(text, error, _SERVER_TYPES) from None


def decode_audio(frame: bytes) -> SpeechFrame:
    """For clients: decodes a binary frame."""
    header = _SPEECH_HEADER.size
    if len(frame) <= header or (len(frame) - header) % SAMPLE_BYTES or frame[0] != SPEECH:
        raise ProtocolError(ErrorCode.BAD_AUDIO, f"A speech frame is a header of {header} bytes and 16-bit samples.")
    _, n, turn, seq = _SPEECH_HEADER.unpack_from(frame)
    return SpeechFrame(n, turn, seq, frame[header:])


def encode_client(message: ClientMessage) -> str:
    """For clients: encodes a message, without the fields that are not set."""
    return _encode(message).decode()


def encode_microphone(pcm: bytes, *, playing: bool = False) -> bytes:
    """For clients: encodes microphone audio, PCM16 little-endian, 16 kHz, mono."""
    return (b"\x01" if playing else b"\x00") + pcm


def _refusal(text: str, error: Exception, known: Sequence[str]) -> ProtocolError:
    """Explains what is wrong with a text frame, which is parsed again for its type."""
    if not isinstance(error, ValidationError):
        return _malformed(error)
    try:
        kind = _envelope.decode(text).type
    except ValidationError as unfit:
        if _place(unfit)[1]:
            return ProtocolError(ErrorCode.UNKNOWN_TYPE, 'The "type" of a message must be a string.')
        return ProtocolError(
            ErrorCode.BAD_MESSAGE, 'A message must be a JSON object, such as {"type": "ping", "t": 1}.'
        )
    except _REFUSED as broken:
        # The JSON is broken after the invalid field.
        return _malformed(broken)
    if kind is None:
        return ProtocolError(ErrorCode.UNKNOWN_TYPE, 'The message has no "type".')
    return _invalid(kind, error, known)


def _malformed(error: Exception) -> ProtocolError:
    if isinstance(error, RecursionError):
        return ProtocolError(ErrorCode.BAD_JSON, "The message is nested too deeply.")
    if isinstance(error, UnicodeError):
        return ProtocolError(ErrorCode.BAD_JSON, "The message is not valid Unicode.")
    return ProtocolError(ErrorCode.BAD_JSON, f"The message is not JSON: {error}.")


def _invalid(kind: str, error: ValidationError, known: Sequence[str]) -> ProtocolError:
    if kind not in known:
        types = ", ".join(known)
        return ProtocolError(ErrorCode.UNKNOWN_TYPE, f'There is no message "{kind[:_QUOTED]}". Known: {types}.')
    what, field = _place(error)
    where = f'field "{field}" of "{kind}"' if field else f'"{kind}"'
    return ProtocolError(_code(kind, what), f"Wrong {where}: {what}.")


def _code(kind: str, what: str) -> ErrorCode:
    if kind == _SETTINGS:
        return ErrorCode.BAD_SETTINGS
    return ErrorCode.TOO_LARGE if " of length <= " in what else ErrorCode.BAD_MESSAGE


def _place(error: ValidationError) -> tuple[str, str]:
    """Splits an error of msgspec, "… - at `$.field`", into the problem and the field."""
    what, at, path = str(error).rpartition(" - at `$")
    if not at:
        what, path = path, ""
    what = what.replace("`", "")[:_QUOTED]
    return what[:1].lower() + what[1:], path.rstrip("`").lstrip(".")


def _repair(value: Any) -> Any:
    """Joins halves of surrogate pairs that are next to each other, and replaces other halves by U+FFFD."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_repair(key): _repair(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_repair(inner) for inner in value]
    return value

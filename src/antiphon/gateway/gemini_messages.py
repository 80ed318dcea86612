"""The messages of Gemini Live's BidiGenerateContent: what clients send, in either case, and what they are sent.

Google's own SDKs mix `snake_case` and `camelCase` in one message. The protocol's JSON allows both for every field, and
a server answers in `camelCase`.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from antiphon.errors import AntiphonError
from antiphon.protocol.closing import Close

INVALID: Final = 1007
"""The close code for a message that is wrong."""
POLICY: Final = 1008
FAILED: Final = 1011
MAX_REASON_BYTES: Final = 123
"""All that a close frame can hold."""


class GeminiError(AntiphonError):
    """A message cannot be accepted. This protocol has no error message: the connection is closed."""

    code = "gemini"

    def __init__(self, message: str, close_code: int = INVALID) -> None:
        super().__init__(message)
        self.close = closing(close_code, message)


def closing(code: int, reason: str) -> Close:
    return Close(code, reason.encode()[:MAX_REASON_BYTES].decode("utf-8", "ignore"), come_back=code == FAILED)


class _Message(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    pass


class Blob(_Message, frozen=True, kw_only=True):
    data: str = ""
    mime_type: str = ""
    display_name: Any = None

    @property
    def content(self) -> bytes:
        """Google's SDKs send URL-safe base64; others send the standard alphabet."""
        standard = self.data.replace("-", "+").replace("_", "/").rstrip("=")
        try:
            return b64decode(standard + "=" * (-len(standard) % 4), validate=True)
        except ValueError:
            raise GeminiError("Invalid value at 'data' (TYPE_BYTES): Base64 decoding failed.") from None


class FunctionCall(_Message, frozen=True, kw_only=True):
    name: str
    id: str | None = None
    args: dict[str, Any] | None = None
    partial_args: Any = None
    will_continue: Any = None


class FunctionResponse(_Message, frozen=True, kw_only=True):
    id: str | None = None
    name: str | None = None
    response: dict[str, Any] | None = None
    scheduling: Any = None
    will_continue: bool | None = None
    parts: Any = None

    @property
    def output(self) -> Any:
        """The result: `output` if it is given, else the whole object."""
        given = self.response or {}
        return given.get("output", given)

    @property
    def error(self) -> str | None:
        error = (self.response or {}).get("error")
        return None if error is None else error if isinstance(error, str) else msgspec.json.encode(error).decode()


class Part(_Message, frozen=True, kw_only=True):
    text: str | None = None
    thought: bool | None = None
    thought_signature: Any = None
    inline_data: Blob | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    file_data: Any = None
    executable_code: Any = None
    code_execution_result: Any = None
    video_metadata: Any = None
    media_resolution: Any = None
    part_metadata: Any = None


class Content(_Message, frozen=True, kw_only=True):
    parts: Sequence[Part] = ()
    role: str | None = None

    @property
    def text(self) -> str:
        return "".join(part.text or "" for part in self.parts if not part.thought)


class PrebuiltVoice(_Message, frozen=True, kw_only=True):
    voice_name: str | None = None


class VoiceConfig(_Message, frozen=True, kw_only=True):
    prebuilt_voice_config: PrebuiltVoice | None = None
    replicated_voice_config: Any = None
    voice: Any = None


class SpeechConfig(_Message, frozen=True, kw_only=True):
    voice_config: VoiceConfig | None = None
    language_code: Any = None
    multi_speaker_voice_config: Any = None


class GenerationConfig(_Message, frozen=True, kw_only=True):
    """What is not used here only tunes the answer, and is accepted."""

    response_modalities: Sequence[str] | None = None
    speech_config: SpeechConfig | None = None
    audio_timestamp: Any = None
    candidate_count: Any = None
    enable_affective_dialog: Any = None
    enable_enhanced_civic_answers: Any = None
    frequency_penalty: Any = None
    max_output_tokens: Any = None
    media_resolution: Any = None
    presence_penalty: Any = None
    seed: Any = None
    stop_sequences: Any = None
    temperature: Any = None
    thinking_config: Any = None
    top_k: Any = None
    top_p: Any = None


class FunctionDeclaration(_Message, frozen=True, kw_only=True):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    parameters_json_schema: dict[str, Any] | None = None
    response: Any = None
    response_json_schema: Any = None
    behavior: Any = None

    @property
    def schema(self) -> dict[str, Any] | None:
        """The parameters as a JSON schema."""
        if self.parameters_json_schema is not None:
            return self.parameters_json_schema
        return None if self.parameters is None else to_json_schema(self.parameters)


class Tool(_Message, frozen=True, kw_only=True):
    function_declarations: Sequence[FunctionDeclaration] = ()
    google_search: Any = None
    google_search_retrieval: Any = None
    google_maps: Any = None
    code_execution: Any = None
    url_context: Any = None
    retrieval: Any = None
    computer_use: Any = None
    file_search: Any = None
    enterprise_web_search: Any = None


class SessionResumption(_Message, frozen=True, kw_only=True):
    handle: str | None = None
    transparent: Any = None


class ActivityDetection(_Message, frozen=True, kw_only=True):
    disabled: bool | None = None
    start_of_speech_sensitivity: Any = None
    end_of_speech_sensitivity: Any = None
    prefix_padding_ms: Any = None
    silence_duration_ms: Any = None


class RealtimeInputConfig(_Message, frozen=True, kw_only=True):
    automatic_activity_detection: ActivityDetection | None = None
    activity_handling: str | None = None
    turn_coverage: Any = None
    interim_transcript_timestamp_enabled: Any = None


class HistoryConfig(_Message, frozen=True, kw_only=True):
    initial_history_in_client_content: bool | None = None


class Setup(_Message, frozen=True, kw_only=True):
    model: str
    generation_config: GenerationConfig | None = None
    system_instruction: Content | None = None
    tools: Sequence[Tool] | None = None
    realtime_input_config: RealtimeInputConfig | None = None
    session_resumption: SessionResumption | None = None
    input_audio_transcription: dict[str, Any] | None = None
    output_audio_transcription: dict[str, Any] | None = None
    history_config: HistoryConfig | None = None
    context_window_compression: Any = None
    proactivity: Any = None
    explicit_vad_signal: Any = None
    safety_settings: Any = None
    labels: Any = None


class ClientContent(_Message, frozen=True, kw_only=True):
    turns: Sequence[Content] | None = None
    turn_complete: bool | None = None


class RealtimeInput(_Message, frozen=True, kw_only=True):
    audio: Blob | None = None
    text: str | None = None
    audio_stream_end: bool | None = None
    activity_start: dict[str, Any] | None = None
    activity_end: dict[str, Any] | None = None
    video: Any = None
    media_chunks: Sequence[Blob] | None = None


class ToolResponse(_Message, frozen=True, kw_only=True):
    function_responses: Sequence[FunctionResponse] = ()


class UpdatedTools(_Message, frozen=True, kw_only=True):
    tools: Sequence[Tool] | None = None


class ContextUpdate(_Message, frozen=True, kw_only=True):
    system_instruction: Content | None = None
    tools: UpdatedTools | None = None


class ClientMessage(_Message, frozen=True, kw_only=True):
    """One of these is set."""

    setup: Setup | None = None
    client_content: ClientContent | None = None
    realtime_input: RealtimeInput | None = None
    tool_response: ToolResponse | None = None
    context_update: ContextUpdate | None = None


_FREE: Final = frozenset(
    {"args", "response", "parametersJsonSchema", "responseJsonSchema", "default", "example", "labels"}
)
"""Fields whose values are the client's own JSON, which is not renamed."""


def decode(frame: str | bytes) -> ClientMessage:
    """Raises `GeminiError`."""
    try:
        return msgspec.convert(camelize(msgspec.json.decode(frame)), ClientMessage)
    except msgspec.ValidationError as error:
        raise GeminiError(explain(str(error))) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise GeminiError("Invalid JSON payload received.") from None


def camelize(value: Any, *, names_are_free: bool = False) -> Any:
    """Renames all fields to `camelCase`, except those of the client's own JSON."""
    if isinstance(value, list):
        return [camelize(each) for each in value]
    if not isinstance(value, dict):
        return value
    renamed = {}
    for name, inner in value.items():
        key = name if names_are_free else _camel(name)
        is_free = key in _FREE and not names_are_free
        renamed[key] = inner if is_free else camelize(inner, names_are_free=key == "properties" and not names_are_free)
    return renamed


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*?)`(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
_WRONG: Final = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)


def explain(problem: str) -> str:
    """Words what msgspec says as Google does."""
    unknown, wrong = _UNKNOWN.fullmatch(problem), _WRONG.fullmatch(problem)
    if unknown is not None:
        at = f" at '{_snake(unknown['path'])}'" if unknown["path"] else ""
        return f'Invalid JSON payload received. Unknown name "{unknown["name"]}"{at}: Cannot find field.'
    assert wrong is not None
    return f"Invalid value at '{_snake(wrong['path'] or 'the message')}': {wrong['what']}."


def _snake(path: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: f"_{found[1].lower()}", path)


_NUMBERS: Final = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_NOT_JSON_SCHEMA: Final = ("nullable", "propertyOrdering", "example")


def to_json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Converts Google's kind of schema, an older dialect with types in capitals and `nullable`."""
    made: dict[str, Any] = {}
    for key, value in schema.items():
        match key, value:
            case "type", str():
                if value != "TYPE_UNSPECIFIED":
                    made["type"] = value.lower()
            case "properties", dict():
                made[key] = {name: to_json_schema(each) for name, each in value.items() if isinstance(each, dict)}
            case (("items" | "additionalProperties"), dict()):
                made[key] = to_json_schema(value)
            case "anyOf", list():
                made[key] = [to_json_schema(each) for each in value if isinstance(each, dict)]
            case _, str() if key in _NUMBERS and value.isdecimal():
                # The protocol's JSON has 64-bit numbers as strings.
                made[key] = int(value)
            case _ if key not in _NOT_JSON_SCHEMA:
                made[key] = value
    if schema.get("nullable") and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    return made


# What clients are sent.


def server_content(**fields: Any) -> dict[str, Any]:
    return {"serverContent": fields}


def text_part(text: str) -> dict[str, Any]:
    return server_content(modelTurn={"role": "model", "parts": [{"text": text}]})


def audio_part(pcm: bytes, hz: int) -> dict[str, Any]:
    data = {"mimeType": f"audio/pcm;rate={hz}", "data": b64encode(pcm).decode()}
    return server_content(modelTurn={"role": "model", "parts": [{"inlineData": data}]})


def usage_metadata(input_tokens: int, output_tokens: int) -> dict[str, int]:
    return {
        "promptTokenCount": input_tokens,
        "responseTokenCount": output_tokens,
        "totalTokenCount": input_tokens + output_tokens,
    }

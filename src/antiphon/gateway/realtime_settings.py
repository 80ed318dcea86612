"""The settings of a Realtime session: how `session.update` changes them, and how clients are told of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
from msgspec import UNSET

from antiphon.audio import g711
from antiphon.gateway.client_calls import ToolDeclaration
from antiphon.gateway.realtime_events import (
    AudioFormat,
    AudioInput,
    AudioOutput,
    FunctionTool,
    McpTool,
    RealtimeError,
    ResponseSettings,
    SemanticVad,
    ServerVad,
    SessionSettings,
    ToolChoice,
    TurnDetection,
    VoiceId,
)

PCM_HZ: Final = 24_000
TEXT: Final = "text"
AUDIO: Final = "audio"
DEFAULT_VOICE: Final = "default"
VAD_DEFAULTS: Final[Mapping[str, Any]] = {
    "threshold": 0.5,
    "prefix_padding_ms": 300,
    "silence_duration_ms": 500,
    "idle_timeout_ms": None,
    "create_response": True,
    "interrupt_response": True,
}
"""What the vendor documents. The local voice decides about the ends of turns by itself, whatever these say."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How audio is written in one of the formats."""

    hz: int
    decode: Callable[[bytes], bytes]
    encode: Callable[[bytes], bytes]


CODECS: Final[Mapping[str, Codec]] = {
    "audio/pcm": Codec(PCM_HZ, bytes, bytes),
    "audio/pcmu": Codec(g711.G711_HZ, g711.decode_ulaw, g711.encode_ulaw),
    "audio/pcma": Codec(g711.G711_HZ, g711.decode_alaw, g711.encode_alaw),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RealtimeSettings:
    model: str
    instructions: str = ""
    modality: str = AUDIO
    input_format: str = "audio/pcm"
    output_format: str = "audio/pcm"
    turn_detection: TurnDetection | None = field(default_factory=ServerVad)
    transcription: Mapping[str, Any] | None = None
    noise_reduction: Any = None
    voice: str = DEFAULT_VOICE
    speed: float = 1.0
    tools: tuple[FunctionTool, ...] = ()
    uses_tools: bool = True
    max_output_tokens: Any = "inf"
    truncation: Any = "auto"

    @property
    def creates_responses(self) -> bool:
        """Whether the end of a spoken turn brings about a response."""
        return self.turn_detection is not None and self.turn_detection.create_response is not False

    @property
    def interrupts_responses(self) -> bool:
        """Whether speech stops the response under way."""
        return self.turn_detection is not None and self.turn_detection.interrupt_response is not False

    @property
    def declarations(self) -> list[ToolDeclaration]:
        return [ToolDeclaration(tool.name, tool.description or "", tool.parameters) for tool in self.tools]

    def updated(self, asked: SessionSettings) -> "RealtimeSettings":
        """Returns the settings after an update. Raises `RealtimeError`; then nothing has changed."""
        changed: dict[str, Any] = {}
        if asked.instructions is not UNSET:
            changed["instructions"] = asked.instructions or ""
        if asked.output_modalities:
            changed["modality"] = only_modality(asked.output_modalities, "session.output_modalities")
        if asked.tools is not UNSET:
            changed["tools"] = only_functions(asked.tools or (), "session.tools")
        if asked.tool_choice is not UNSET:
            changed["uses_tools"] = allows_tools(asked.tool_choice, "session.tool_choice")
        if asked.prompt is not UNSET and asked.prompt is not None:
            raise RealtimeError(
                "Stored prompts do not exist here. Send the text as 'session.instructions'.",
                "invalid_value",
                param="session.prompt",
            )
        for name in ("max_output_tokens", "truncation"):
            given = getattr(asked, name)
            if given is not UNSET and given is not None:
                changed[name] = given
        if asked.audio:
            changed |= _input_changes(asked.audio.input or AudioInput())
            changed |= _output_changes(asked.audio.output or AudioOutput())
        return replace(self, **changed)

    def for_response(self, asked: ResponseSettings | None) -> "RealtimeSettings":
        """Returns the settings of one response. Raises `RealtimeError`."""
        if asked is None:
            return self
        if asked.conversation not in (None, "auto"):
            raise RealtimeError(
                "A response outside of the conversation is not supported. Use 'auto', or open another session.",
                "invalid_value",
                param="response.conversation",
            )
        for name in ("input", "prompt", "tools"):
            if getattr(asked, name):
                raise RealtimeError(
                    f"'response.{name}' is not supported. Add items to the conversation, or update the session.",
                    "invalid_value",
                    param=f"response.{name}",
                )
        changed: dict[str, Any] = {}
        if asked.instructions is not None:
            changed["instructions"] = asked.instructions
        if asked.output_modalities:
            changed["modality"] = only_modality(asked.output_modalities, "response.output_modalities")
        if asked.tool_choice is not None:
            changed["uses_tools"] = allows_tools(asked.tool_choice, "response.tool_choice")
        return replace(self, **changed)

    def shown(self, *, id: str, expires_at: int) -> dict[str, Any]:
        """Returns the `session` of `session.created` and `session.updated`."""
        return {
            "object": "realtime.session",
            "type": "realtime",
            "id": id,
            "model": self.model,
            "output_modalities": [self.modality],
            "instructions": self.instructions,
            "tools": msgspec.to_builtins(self.tools),
            "tool_choice": "auto" if self.uses_tools else "none",
            "max_output_tokens": self.max_output_tokens,
            "tracing": None,
            "truncation": self.truncation,
            "prompt": None,
            "expires_at": expires_at,
            "audio": {
                "input": {
                    "format": _format(self.input_format),
                    "transcription": self.transcription,
                    "noise_reduction": self.noise_reduction,
                    "turn_detection": _detection(self.turn_detection),
                },
                "output": {"format": _format(self.output_format), "voice": self.voice, "speed": self.speed},
            },
            "include": None,
        }

    def shown_output(self) -> dict[str, Any]:
        """Returns the `audio` of a response."""
        return {"output": {"format": _format(self.output_format), "voice": self.voice}}


def only_modality(modalities: tuple[str, ...], param: str) -> str:
    if len(modalities) != 1:
        raise RealtimeError(f"'{param}' must be ['audio'] or ['text'], not both.", "invalid_value", param=param)
    return modalities[0]


def only_functions(tools: tuple[FunctionTool | McpTool, ...], param: str) -> tuple[FunctionTool, ...]:
    for place, tool in enumerate(tools):
        if isinstance(tool, McpTool):
            raise RealtimeError(
                "MCP servers cannot be connected by a client. Ask the operator of this server for their tools.",
                "invalid_value",
                param=f"{param}[{place}].type",
            )
    return tuple(tool for tool in tools if isinstance(tool, FunctionTool))


def allows_tools(choice: ToolChoice | None, param: str) -> bool:
    if choice not in (None, "auto", "none"):
        raise RealtimeError(
            f"'{param}' must be 'auto' or 'none'; a call cannot be forced here.", "invalid_value", param=param
        )
    return choice != "none"


def _input_changes(asked: AudioInput) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    if isinstance(asked.format, AudioFormat):
        changed["input_format"] = asked.format.type
    for name in ("transcription", "noise_reduction", "turn_detection"):
        given = getattr(asked, name)
        if given is not UNSET:
            changed[name] = given
    return changed


def _output_changes(asked: AudioOutput) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    if isinstance(asked.format, AudioFormat):
        changed["output_format"] = asked.format.type
    match asked.voice:
        case VoiceId(id=id):
            changed["voice"] = id
        case str(name):
            changed["voice"] = name
    if isinstance(asked.speed, float):
        changed["speed"] = asked.speed
    return changed


def _format(type: str) -> dict[str, Any]:
    return {"type": type, "rate": PCM_HZ} if type == "audio/pcm" else {"type": type}


def _detection(detection: TurnDetection | None) -> dict[str, Any] | None:
    match detection:
        case None:
            return None
        case ServerVad():
            given = msgspec.to_builtins(detection)
            return {"type": "server_vad", **{n: v if given[n] is None else given[n] for n, v in VAD_DEFAULTS.items()}}
        case SemanticVad():
            return {
                "type": "semantic_vad",
                "eagerness": detection.eagerness or "auto",
                "create_response": detection.create_response is not False,
                "interrupt_response": detection.interrupt_response is not False,
            }

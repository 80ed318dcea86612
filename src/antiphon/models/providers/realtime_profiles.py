"""The realtime models of OpenAI and what they can do, and the settings of a session with one. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from antiphon.models.live import LiveContext, LiveProfile

REALTIME_HZ: Final = 24_000
"""The only rate of PCM that the API takes and gives."""
MAX_SESSION_S: Final = 3_600.0
CONTEXT_TOKENS: Final = 28_000
"""The context has 32,768 tokens, of which 4,096 are kept for the answer."""
MIN_SPEED: Final = 0.25
MAX_SPEED: Final = 1.5

VOICES: Final = ("marin", "cedar", "alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse")
CUSTOM_VOICE: Final = "voice_"
"""How the id of a voice of one's own begins."""
DEFAULT_VOICE: Final = "marin"
DEFAULT_TRANSCRIPTION: Final = "gpt-transcribe"


class TurnDetection(StrEnum):
    """How the server decides that the user has finished."""

    SERVER_VAD = "server_vad"
    """After half a second of silence."""
    SEMANTIC_VAD = "semantic_vad"
    """By what was said: after an unfinished sentence it waits longer."""


@dataclass(frozen=True, slots=True)
class RealtimeOptions:
    """What can be chosen about the sessions with a realtime model."""

    transcription: str | None = DEFAULT_TRANSCRIPTION
    """The model that writes down what the user says, on Azure the name of its deployment. None for no transcripts."""
    turn_detection: TurnDetection = TurnDetection.SERVER_VAD
    voice: str = DEFAULT_VOICE
    """The voice if the user has chosen none."""
    reasoning_effort: str | None = None
    """`minimal`, `low`, `medium`, `high` or `xhigh`, for models that reason. None for the model's own."""


@dataclass(frozen=True, slots=True)
class RealtimeTraits:
    """What a family of models can do."""

    reasons: bool
    """Whether it takes `reasoning`, and `parallel_tool_calls`."""


TRAITS: Final = (
    ("gpt-realtime-2.1", RealtimeTraits(reasons=True)),
    ("gpt-realtime-2", RealtimeTraits(reasons=True)),
    ("gpt-realtime-1.5", RealtimeTraits(reasons=False)),
    ("gpt-realtime", RealtimeTraits(reasons=False)),
)
"""The models that are known, by what their names contain, the more special names first. Azure's deployments are often
named after their model."""
UNKNOWN: Final = RealtimeTraits(reasons=False)


def traits_of(model: str) -> RealtimeTraits:
    return next((traits for name, traits in TRAITS if name in model and not _is_dated(model, name)), UNKNOWN)


def _is_dated(model: str, name: str) -> bool:
    """Whether what looks like a version is the year of a snapshot, as in `gpt-realtime-2025-08-28`."""
    return name == "gpt-realtime-2" and "gpt-realtime-20" in model


def profile_for(model: str, *, name: str | None = None, needs_network: bool = True) -> LiveProfile:
    return LiveProfile(
        name=name or f"openai-realtime:{model}",
        hears=True,
        output_hz=REALTIME_HZ,
        needs_network=needs_network,
        tool_schemas="openai_realtime",
        keeps_context=True,
        voices=VOICES,
        max_session_s=MAX_SESSION_S,
        context_tokens=CONTEXT_TOKENS,
    )


def session_settings(
    model: str, options: RealtimeOptions, context: LiveContext, voice: str | None, speed: float
) -> dict[str, Any]:
    """Returns the `session` of a `session.update`."""
    pcm = {"type": "audio/pcm", "rate": REALTIME_HZ}
    transcription = {"model": options.transcription} if options.transcription else None
    detection = {"type": str(options.turn_detection), "create_response": True, "interrupt_response": True}
    settings: dict[str, Any] = {
        "type": "realtime",
        "instructions": context.system,
        "output_modalities": ["audio"],
        "audio": {
            "input": {"format": pcm, "transcription": transcription, "turn_detection": detection},
            "output": {"format": pcm, **voice_settings(options, voice, speed)},
        },
        "tools": [dict(tool) for tool in context.tools],
        "tool_choice": "auto",
    }
    if traits_of(model).reasons:
        settings["parallel_tool_calls"] = True
        if options.reasoning_effort is not None:
            settings["reasoning"] = {"effort": options.reasoning_effort}
    return settings


def voice_settings(options: RealtimeOptions, voice: str | None, speed: float) -> dict[str, Any]:
    """Returns the voice and the speed. A voice that the API does not have is one of another model."""
    chosen = voice if voice in VOICES or (voice or "").startswith(CUSTOM_VOICE) else options.voice
    is_custom = chosen is not None and chosen.startswith(CUSTOM_VOICE)
    return {"voice": {"id": chosen} if is_custom else chosen, "speed": min(max(speed, MIN_SPEED), MAX_SPEED)}

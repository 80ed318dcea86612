"""What a Gemini Live client sends, in our words: earlier turns, tools, audio, and how it has set its session up."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from antiphon.gateway.client_calls import ToolDeclaration
from antiphon.gateway.gemini_messages import POLICY, Blob, Content, GeminiError, Setup, Tool
from antiphon.gateway.session import audio_s
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage

MIN_HZ: Final = 8_000
MAX_HZ: Final = 96_000
MAX_ACTIVITY_S: Final = 300.0
"""The longest turn whose end the client marks itself."""
MAX_HELD_S: Final = 30.0
"""How much speech waits for the end of an answer that may not be interrupted."""
NO_INTERRUPTION: Final = "NO_INTERRUPTION"

_PCM: Final = re.compile(r"audio/(?:pcm|l16)(?:\s*;.*)?", re.IGNORECASE)
_RATE: Final = re.compile(r";\s*rate=(\d{1,6})(?:\s*;|\s*\Z)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """How a client has set its session up."""

    speaks: bool
    """Whether answers are spoken; otherwise they are text."""
    voice: str | None
    instructions: str
    tools: Sequence[ToolDeclaration]
    marks_activity: bool
    """Whether the client says itself when the user speaks."""
    interrupts: bool
    """Whether speech interrupts an answer."""
    wants_input_text: bool
    wants_output_text: bool
    """Whether the client wants the words of what is spoken."""
    is_resumable: bool
    handle: str | None
    begins_with_history: bool
    """Whether the first turns are history, which is not answered."""


def read_setup(setup: Setup, *, has_voice: bool) -> LiveSettings:
    """Raises `GeminiError`."""
    generation = setup.generation_config
    modalities = [each.upper() for each in (generation and generation.response_modalities) or ("AUDIO",)]
    if modalities not in (["AUDIO"], ["TEXT"]):
        raise GeminiError("Request contains an invalid argument: response_modalities must be one of AUDIO and TEXT.")
    speaks = modalities == ["AUDIO"]
    if speaks and not has_voice:
        raise GeminiError("This server has no voice. Set response_modalities to TEXT.", POLICY)
    speech = generation and generation.speech_config
    voice = speech and speech.voice_config and speech.voice_config.prebuilt_voice_config
    realtime = setup.realtime_input_config
    detection = realtime and realtime.automatic_activity_detection
    resumption = setup.session_resumption
    return LiveSettings(
        speaks=speaks,
        voice=voice.voice_name if voice else None,
        instructions=setup.system_instruction.text if setup.system_instruction else "",
        tools=read_tools(setup.tools or ()),
        marks_activity=bool(detection and detection.disabled),
        interrupts=not (realtime and realtime.activity_handling == NO_INTERRUPTION),
        wants_input_text=setup.input_audio_transcription is not None,
        wants_output_text=setup.output_audio_transcription is not None,
        is_resumable=resumption is not None,
        handle=resumption.handle or None if resumption else None,
        begins_with_history=bool(setup.history_config and setup.history_config.initial_history_in_client_content),
    )


def read_tools(tools: Sequence[Tool]) -> list[ToolDeclaration]:
    """Raises `GeminiError` for tools that Google runs."""
    declared = []
    for tool in tools:
        for name in tool.__struct_fields__:
            if name != "function_declarations" and getattr(tool, name) is not None:
                raise GeminiError(f"{name} is not available here. This server has tools of its own.", POLICY)
        for each in tool.function_declarations:
            declared.append(ToolDeclaration(each.name, each.description or "", each.schema))
    return declared


def read_turns(turns: Sequence[Content]) -> list[Message]:
    """Converts turns to messages. Raises `GeminiError` for parts that are neither text nor calls and their results."""
    messages: list[Message] = []
    names: dict[str, str] = {}
    for turn in turns:
        calls: list[CallMade] = []
        results: list[ToolMessage] = []
        for part in turn.parts:
            if part.inline_data is not None or part.file_data is not None:
                raise GeminiError("client_content may have text only. Send audio with realtime_input.")
            if part.function_call is not None:
                call = part.function_call
                made = CallMade(call.id or f"call_{len(names)}", call.name, call.args or {})
                names[made.id] = made.name
                calls.append(made)
            if part.function_response is not None:
                given = part.function_response
                id = given.id or next((each for each, name in names.items() if name == given.name), "")
                if id in names:
                    results.append(ToolMessage(id, names.pop(id), given.output, ok=given.error is None))
        if turn.role == "model":
            messages.append(AssistantMessage(turn.text, tuple(calls)))
        else:
            messages += results
            if turn.text:
                messages.append(UserMessage(turn.text))
    return messages


def read_audio(blob: Blob) -> tuple[bytes, int]:
    """Returns PCM16 and its rate. Raises `GeminiError`."""
    if _PCM.fullmatch(blob.mime_type) is None:
        raise GeminiError(f"Unsupported mime type {blob.mime_type[:40]!r}. Send audio/pcm;rate=16000.")
    found = _RATE.search(blob.mime_type)
    hz = int(found[1]) if found else MICROPHONE_HZ
    if not MIN_HZ <= hz <= MAX_HZ:
        raise GeminiError(f"The rate of the audio is {hz}. It must be between {MIN_HZ} and {MAX_HZ}.")
    return blob.content, hz


class Activity:
    """The audio of a turn whose beginning and end the client marks."""

    def __init__(self) -> None:
        self._pcm = bytearray()
        self._hz = MICROPHONE_HZ

    def add(self, pcm: bytes, hz: int) -> None:
        """Raises `GeminiError` if the turn is too long."""
        if hz != self._hz:
            self._pcm, self._hz = bytearray(), hz
        if audio_s(self._pcm, hz) + audio_s(pcm, hz) > MAX_ACTIVITY_S:
            raise GeminiError(f"An activity may last at most {MAX_ACTIVITY_S:.0f} s. Send activity_end earlier.")
        self._pcm += pcm

    @property
    def hz(self) -> int:
        return self._hz

    @property
    def pcm(self) -> bytes:
        return bytes(self._pcm)


class HeldAudio:
    """Speech that waits for the end of an answer. If it is too much, the oldest is dropped."""

    def __init__(self) -> None:
        self._pieces: list[tuple[bytes, int]] = []
        self._seconds = 0.0

    def add(self, pcm: bytes, hz: int) -> None:
        self._pieces.append((pcm, hz))
        self._seconds += audio_s(pcm, hz)
        while self._seconds > MAX_HELD_S:
            self._seconds -= audio_s(*self._pieces.pop(0))

    def take(self) -> list[tuple[bytes, int]]:
        taken, self._pieces, self._seconds = self._pieces, [], 0.0
        return taken

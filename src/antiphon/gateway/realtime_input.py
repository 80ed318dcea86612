"""The input audio buffer of a Realtime client."""

from typing import Final

from antiphon.gateway.realtime_events import RealtimeError
from antiphon.gateway.session import audio_s

MIN_COMMIT_MS: Final = 100
MAX_BUFFER_S: Final = 300.0
"""The longest turn that a client may commit by itself."""
MAX_HELD_S: Final = 30.0
"""How much speech waits until the session listens: its voice is being connected, or a response may not be
interrupted."""
ONSET_MS: Final = 300
"""How long speech usually lasts before it is noticed."""


class InputAudio:
    """The input audio buffer, and where in it the user speaks. Times count from the beginning of the session."""

    def __init__(self) -> None:
        self.now_ms = 0
        """How much audio the client has sent."""
        self.speech_ms = 0
        """Where the user's newest speech begins."""
        self.spoken_s = 0.0
        """How long the user's last turn was."""
        self._heard_s = 0.0
        self._since_clear_s = 0.0
        self._hz = 0
        self._kept = bytearray()
        self._held: list[tuple[bytes, int]] = []
        self._held_s = 0.0
        self._speech_item: str | None = None
        self._last_end_ms = 0

    @staticmethod
    def length_s(pcm: bytes, hz: int) -> float:
        return audio_s(pcm, hz)

    def add(self, pcm: bytes, hz: int, *, keep: bool) -> None:
        """`keep`: the client will commit the audio. Raises `RealtimeError` if it is too much."""
        length_s = audio_s(pcm, hz)
        if keep:
            if hz != self._hz:
                self._kept.clear()
                self._hz = hz
            if audio_s(self._kept, hz) + length_s > MAX_BUFFER_S:
                raise RealtimeError(
                    f"The input audio buffer holds at most {MAX_BUFFER_S:.0f} s. Commit or clear it.",
                    "input_audio_buffer_full",
                )
            self._kept += pcm
        self._heard_s += length_s
        self._since_clear_s += length_s
        self.now_ms = int(self._heard_s * 1000)

    @property
    def kept_s(self) -> float:
        """How much audio waits to be committed."""
        return audio_s(self._kept, self._hz) if self._kept else 0.0

    def check_length(self) -> None:
        if self._since_clear_s * 1000 < MIN_COMMIT_MS:
            raise RealtimeError(
                f"Error committing input audio buffer: buffer too small. Expected at least {MIN_COMMIT_MS}ms of audio, "
                f"but buffer only has {self._since_clear_s * 1000:.2f}ms of audio.",
                "input_audio_buffer_commit_empty",
            )

    def take(self) -> tuple[bytes, int]:
        """Returns the audio of a committed turn, and its rate."""
        pcm = bytes(self._kept)
        self.spoken_s = audio_s(pcm, self._hz)
        self.clear()
        return pcm, self._hz

    def clear(self) -> None:
        self._kept.clear()
        self._since_clear_s = 0.0

    def hold(self, pcm: bytes, hz: int) -> None:
        """Keeps speech until the session listens; the oldest is dropped if it is too much."""
        self._held.append((pcm, hz))
        self._held_s += audio_s(pcm, hz)
        while self._held_s > MAX_HELD_S:
            self._held_s -= audio_s(*self._held.pop(0))

    def take_held(self) -> list[tuple[bytes, int]]:
        held, self._held, self._held_s = self._held, [], 0.0
        return held

    @property
    def is_speech(self) -> bool:
        return self._speech_item is not None

    def start_speech(self, item_id: str) -> str:
        self._speech_item = item_id
        self.speech_ms = max(self._last_end_ms, self.now_ms - ONSET_MS)
        return item_id

    def stop_speech(self) -> str:
        """Returns the id of the speech's item."""
        assert self._speech_item is not None
        id, self._speech_item = self._speech_item, None
        self.spoken_s = max(0, self.now_ms - self.speech_ms) / 1000
        self._last_end_ms = self.now_ms
        return id

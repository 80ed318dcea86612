"""The phrases for a server that listens, and where in them a turn ends.

Turn detection is tried on every phrase beforehand, with the same frames as on the server, so the client knows which of
its own frames ends the turn.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Final

from antiphon.audio.vad import Vad
from antiphon.models.cascade.endpointer import FRAME_BYTES, PAUSE_FRAMES, Endpointer, Signal, enough_frames
from bench.load.microphone import FRAME_BYTES as SENT_BYTES
from bench.load.microphone import STEP_FRAMES, Recording, room
from bench.speech.clips import LEAD_MS, TAIL_MS, VOICES, make_clip
from bench.speech.sentences import make_sentences

PHRASES: Final = 320
"""More than the offline assistant caches. They are used in rotation, so that none is in the cache."""
SEED: Final = 11
SHORTEST_S: Final = 1.5
LONGEST_S: Final = 3.0
LIKELY_CHARS: Final = range(22, 48)
"""The length of texts with about the right duration. Synthesising others, only to discard them, would take minutes."""

_BEFORE_STEPS: Final = (7, 13, 40)
"""How much room noise precedes a phrase. The result must not depend on it, nor on what was said before: nothing the
first time, then other phrases."""
_AFTER_STEPS: Final = 8


@dataclass(frozen=True, slots=True)
class End:
    """The end of a turn, in frames of the voice activity model."""

    hush: int
    """The frame at which the sound stops, so that the server starts recognition."""
    pause: int
    """The frame that makes it a pause."""


@dataclass(frozen=True, slots=True)
class Phrase:
    recording: Recording
    end: End

    @property
    def hushed_at(self) -> int:
        """The microphone frame at which the sound stops, counted from the first of the phrase."""
        return _sent_at(self.end.hush)

    def silent_at(self, silence_ms: int) -> int:
        """Returns the microphone frame that completes this much silence."""
        return _sent_at(self.end.pause + enough_frames(silence_ms) - PAUSE_FRAMES)


def record(folder: Path, models_dir: Path) -> Iterator[int]:
    """Synthesises the phrases, unless that was done before, and reports progress. Raises `MissingProgram`."""
    index = folder / "texts.json"
    if index.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    texts: list[str] = []
    likely = (text for text in make_sentences(6 * PHRASES, SEED) if len(text) in LIKELY_CHARS)
    for text, voice in zip(likely, cycle(VOICES), strict=False):
        clip = make_clip(text, voice, models_dir)
        if SHORTEST_S <= clip.seconds - (LEAD_MS + TAIL_MS) / 1_000 <= LONGEST_S:
            (folder / f"{len(texts)}.pcm").write_bytes(_fill(clip.pcm))
            texts.append(text)
            yield len(texts)
        if len(texts) == PHRASES:
            break
    index.write_text(json.dumps(texts))


def try_ears(recordings: Sequence[Recording], vad: Vad, long_silence_ms: int) -> list[Phrase]:
    """Returns the phrases in which exactly one turn without a pause is detected, wherever they are said."""
    tries = []
    for number, steps in enumerate(_BEFORE_STEPS):
        room_before, after = _room_for(steps), _room_for(_AFTER_STEPS)
        others = [recordings[place - number].pcm if number else b"" for place in range(len(recordings))]
        before = [other + room_before for other in others]
        sounds = [early + recording.pcm + after for early, recording in zip(before, recordings, strict=True)]
        tries.append(
            [
                _find_end(heard[len(early) // FRAME_BYTES :], sound[len(early) :], long_silence_ms)
                for heard, sound, early in zip(_hear(vad, sounds), sounds, before, strict=True)
            ]
        )
    return [
        Phrase(recording, end)
        for recording, end, *again in zip(recordings, *tries, strict=True)
        if end is not None and set(again) == {end}
    ]


def _fill(pcm: bytes) -> bytes:
    """Fills the audio up to a whole step with noise."""
    missing = -len(pcm) % (STEP_FRAMES * SENT_BYTES)
    return pcm + pcm[len(pcm) - missing :]


def _room_for(steps: int) -> bytes:
    return b"".join(room()[: steps * STEP_FRAMES])


def _hear(vad: Vad, sounds: Sequence[bytes]) -> list[list[float]]:
    """Returns the probability of speech of each frame. All sounds are processed in one batch, as on a server."""
    streams = [vad.stream() for _ in sounds]
    heard: list[list[float]] = [[] for _ in sounds]
    for at in range(0, max(map(len, sounds)), FRAME_BYTES):
        longer = [place for place, sound in enumerate(sounds) if at + FRAME_BYTES <= len(sound)]
        batch = [(streams[place], sounds[place][at : at + FRAME_BYTES]) for place in longer]
        for place, probability in zip(longer, vad.run(batch), strict=True):
            heard[place].append(probability)
    return heard


def _find_end(heard: Sequence[float], sound: bytes, long_silence_ms: int) -> End | None:
    """Returns None unless the endpointer finds exactly one turn without a pause."""
    endpointer = Endpointer(long_silence_ms)
    hushed = paused = 0
    for place, probability in enumerate(heard):
        signal = endpointer.hear(probability, sound[place * FRAME_BYTES : (place + 1) * FRAME_BYTES])
        if endpointer.is_speaking and not endpointer.has_sound_stopped:
            hushed = place + 1
        match signal:
            case Signal.PAUSED:
                paused = place
            case Signal.RESUMED | Signal.DISCARDED:
                return None
            case Signal.ENDED:
                return End(hushed, paused)
    return None


def _sent_at(place: int) -> int:
    """Returns the microphone frame that completes a frame of the voice activity model."""
    return -(-(place + 1) * FRAME_BYTES // SENT_BYTES) - 1

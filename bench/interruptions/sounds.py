"""What a microphone picks up while an answer is spoken: people who interrupt, noises, hums, and the answer itself."""

import hashlib
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

from antiphon.audio.pcm import FRAME_MS, Samples, Signal, from_signal, to_signal
from antiphon.audio.resample import resample
from antiphon.audio.wav import read_wav
from antiphon.sound_format import MICROPHONE_HZ
from bench.interruptions.noises import murmur, slam, type_keys
from bench.speech.clips import FLITE, JOE, LEAD_MS, TAIL_MS, VOICES, MissingProgram, make_clip
from tests.unit.audio.conftest import at_level, silence, to_frames
from tests.unit.audio.test_barge import hum
from tests.unit.audio.test_echo import BARE, FURNISHED, reverberate

LEVELS_DBFS: Final = (-18.0, -32.0)
OWN_DB: Final = -20.0
"""The level at which the microphone picks up the loudspeaker, relative to the answer."""

WORDS: Final = (
    *("Stop.", "Wait.", "Hey.", "What?", "No.", "Yes.", "Hold on.", "Who is that?", "How are you?", "Never mind."),
    *("I meant Thursday.", "Stop, please.", "Wait a minute, that's not what I meant.", "Hey, listen.", "My mistake."),
    *("What time is it?", "No, I said Thursday.", "How long will it take?", "Actually, could you say that again?"),
    *("Okay, thanks.", "Set a timer for ten minutes.", "Shut up.", "Cancel that.", "Turn it off.", "Excuse me."),
    *("Louder, please.", "Please be quiet.", "That's enough.", "Fine, thank you.", "Let me ask something else."),
    *("Not now.", "Good morning.", "Would you repeat that?", "Could we talk about something else?", "Forget it."),
    *("Sorry, one more thing.", "I don't think so.", "Just a second.", "Be quiet.", "Go back.", "Skip this one."),
    *("You misunderstood me.", "Maybe later.", "Thank you.", "Is it raining?", "Next.", "Let's stop here.", "Help."),
    *("Where is my phone?", "Zoom out.", "Remind me later.", "Can you hear me?", "Who won the game?", "Every day."),
    *("When does it open?", "Do you know what I mean?", "Open the window.", "Under the table.", "Never mind that."),
)
"""What people say to interrupt. Many begin softly, and some almost like a hum: "who", "do you", "good"."""
ANSWERS: Final = (
    "The capital of France is Paris, and about two million people live there. It is known for the Eiffel Tower.",
    "It will be cloudy in the morning, with some rain after two. You should take an umbrella when you leave.",
    "I have set a timer for ten minutes, and I will remind you to call your mother on Friday evening.",
    "Once upon a time there was a king who had three daughters, and none of them wanted to live in a castle.",
    "You have four meetings on Thursday. The first one begins at nine, and the last one ends at half past five.",
    "A litre of water weighs one kilogram. So eight glasses are about two kilograms, if they are not too small.",
)
# The engines would spell "mm-hm", so they get its phonemes. The hums of flite come from recordings of people.
FLITE_HUMS: Final = ("pau m m hh m m pau", "pau m hh m pau", "pau m m m pau", "pau hh m m pau")
ESPEAK_HUMS: Final = ("m:hm:", "m:", "hm:", "mhm")
ESPEAK_HUMMERS: Final = ("en-us", "en-gb", "en-us+f3", "en-us+m3")
BEFORE_S: Final = 1.1
AFTER_S: Final = 0.6


class Kind(StrEnum):
    SPEECH = "speech"
    PLAYING = "speech, while the client plays"
    OVER = "speech, over the loudspeaker"
    DOOR = "door"
    KEYS = "keyboard"
    HUM = "hum, by code"
    MURMUR = "hum, of many mouths"
    HUMMED = "hum, by flite and espeak-ng"
    UH_HUH = '"uh-huh"'
    OWN = "own voice"
    OWN_ROOM = "own voice, furnished room"
    OWN_HALL = "own voice, bare room"


PEOPLE: Final = (Kind.SPEECH, Kind.PLAYING, Kind.OVER)
HUMS: Final = (Kind.HUM, Kind.MURMUR, Kind.HUMMED)
NOISES: Final = tuple(kind for kind in Kind if kind not in PEOPLE)
ROOMS: Final = {Kind.OWN_ROOM: FURNISHED, Kind.OWN_HALL: BARE}


@dataclass(frozen=True, slots=True)
class Sound:
    kind: Kind
    voice: str
    text: str
    frames: Sequence[Samples]
    began_ms: float = 0.0
    """When the first sound of the speech begins."""
    answer: bytes | None = None
    """What the client is playing, as PCM16 at 16 kHz."""


class Studio:
    """Makes the sounds. Synthesised speech is cached between runs."""

    def __init__(self, models_dir: Path, folder: Path, seed: int) -> None:
        self._models_dir = models_dir
        self._folder = folder
        self._chance = Random(seed)
        self._seed = seed
        folder.mkdir(parents=True, exist_ok=True)

    def make_all(self) -> Iterator[Sound]:
        """Makes all sounds. Raises `MissingProgram`."""
        yield from self._make_speech()
        for kind, make in (Kind.DOOR, slam), (Kind.KEYS, type_keys):
            for number in range(100):
                yield from self._make_noise(kind, "", str(number), make(1_000 * self._seed + number))
        for pitch_hz in range(80, 280, 8):
            for breath in (0.0, 0.3):
                text = f"{pitch_hz} Hz, breath {breath}"
                yield from self._make_noise(Kind.HUM, "", text, hum(pitch_hz, breath))
        for number in range(200):
            yield from self._make_noise(Kind.MURMUR, "", str(number), murmur(1_000 * self._seed + number))
        for voice in FLITE:
            for sounds in FLITE_HUMS:
                command = ("flite", "-voice", voice, "-o", "/dev/stdout", "-p", sounds)
                yield from self._make_noise(Kind.HUMMED, voice, sounds, self._run(*command))
        for voice in ESPEAK_HUMMERS:
            for sounds in ESPEAK_HUMS:
                for pitch in ("30", "50", "70"):
                    command = ("espeak-ng", "-v", voice, "-p", pitch, "--stdout", f"[[{sounds}]]")
                    yield from self._make_noise(Kind.HUMMED, voice, sounds, self._run(*command))
        for voice in VOICES:
            yield from self._make_noise(Kind.UH_HUH, voice, "uh-huh", self.say("uh-huh", voice))
        yield from self._make_own()

    def _make_speech(self) -> Iterator[Sound]:
        for voice in VOICES:
            for text, dbfs in zip(WORDS, cycle(LEVELS_DBFS), strict=False):
                speech = at_level(self.say(text, voice), dbfs)
                for kind in PEOPLE:
                    yield self._make_person(kind, voice, text, speech)

    def _make_person(self, kind: Kind, voice: str, text: str, speech: Signal) -> Sound:
        before = self._before()
        microphone = np.concatenate([before, speech, silence(AFTER_S)])
        answer = None
        if kind is not Kind.SPEECH:
            spoken = self.say(self._chance.choice(ANSWERS), JOE)
            answer = from_signal(spoken)
            if kind is Kind.OVER:
                microphone += _fit(self.loudspeaker(spoken, ROOMS[Kind.OWN_ROOM]), len(microphone))
        began_ms = (len(before) + onset(speech)) * 1_000 / MICROPHONE_HZ
        return Sound(kind, voice, text, to_frames(microphone), began_ms, answer)

    def _make_noise(self, kind: Kind, voice: str, text: str, noise: Signal) -> Iterator[Sound]:
        for dbfs in LEVELS_DBFS:
            microphone = np.concatenate([self._before(), at_level(noise, dbfs), silence(AFTER_S)])
            yield Sound(kind, voice, text, to_frames(microphone))

    def _make_own(self) -> Iterator[Sound]:
        for text in ANSWERS:
            spoken = self.say(text, JOE)
            for kind in (Kind.OWN, *ROOMS):
                for _ in range(10):
                    microphone = self.loudspeaker(spoken, ROOMS.get(kind))
                    yield Sound(kind, JOE, text, to_frames(microphone), answer=from_signal(spoken))

    def loudspeaker(self, spoken: Signal, room: tuple[float, float] | None) -> Signal:
        late = silence(self._chance.uniform(0.02, 0.4))
        heard = np.concatenate([late, spoken]) * np.float32(10 ** (OWN_DB / 20))
        return reverberate(heard, *room, self._chance.randrange(1 << 32)) if room else heard

    def _before(self) -> Signal:
        # Frames do not begin where speech does.
        return silence(BEFORE_S + self._chance.uniform(0, FRAME_MS / 1_000))

    def say(self, text: str, voice: str) -> Signal:
        def speak() -> bytes:
            return make_clip(text, voice, self._models_dir).pcm[
                LEAD_MS * MICROPHONE_HZ // 500 : -TAIL_MS * MICROPHONE_HZ // 500
            ]

        return self._keep(f"{voice} {text}", speak)

    def _run(self, *command: str) -> Signal:
        def speak() -> bytes:
            try:
                file = subprocess.run(command, check=True, capture_output=True).stdout
            except FileNotFoundError as error:
                raise MissingProgram(f"{command[0]} is not installed.") from error
            pcm, hz = read_wav(file)
            return resample(pcm, hz, MICROPHONE_HZ)

        return self._keep(" ".join(command), speak)

    def _keep(self, name: str, speak: Callable[[], bytes]) -> Signal:
        path = self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.pcm"
        if not path.exists():
            path.write_bytes(speak())
        return to_signal(path.read_bytes())


def onset(speech: Signal) -> int:
    """Finds the first 5 ms less than 30 dB below the loudest ones: an "s" counts, the breath before it does not."""
    window = MICROPHONE_HZ // 200
    whole = len(speech) - len(speech) % window
    power = np.square(speech[:whole]).reshape(-1, window).mean(axis=1)
    return int(np.flatnonzero(power > power.max() / 1_000)[0]) * window


def _fit(sound: Signal, length: int) -> Signal:
    return np.pad(sound[:length], (0, max(0, length - len(sound))))

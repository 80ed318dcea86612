"""How soon an answer stops for somebody who speaks, and what else stops it: our rule, and those of others.

Sounds go through Silero and the rule frame by frame, without a server. README.md says how they are made and counted.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Final, Protocol

import msgspec
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.audio.barge import BargeIn
from antiphon.audio.pcm import Samples, Signal, from_signal, to_signal
from antiphon.audio.resample import resample
from antiphon.audio.vad import FRAME_MS, HZ, Vad
from antiphon.audio.wav import read_wav
from antiphon.config import load
from antiphon.errors import AntiphonError
from antiphon.weights.folder import locate
from bench.conversation.figures import Target, describe_run, tell_load
from bench.speech.clips import FLITE, JOE, LEAD_MS, TAIL_MS, VOICES, MissingProgram, make_clip
from tests.unit.audio.conftest import at_level, silence, to_frames
from tests.unit.audio.test_barge import cough, hum
from tests.unit.audio.test_echo import BARE, FURNISHED, reverberate

RESULTS: Final = Path(__file__).parent / "results"
LEVELS_DBFS: Final = (-18.0, -32.0)
OWN_DB: Final = -20.0
"""How much quieter the microphone hears the loudspeaker than the answer is."""
LATE: Final = 0.05
"""The share that may come later than it should."""
MISTAKEN: Final = 0.05
"""The share of hums that may be taken for speech: some mouths hum as others say "who"."""
IN_TIME_MS: Final = 200
IN_TIME_PLAYING_MS: Final = 300

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
"""Many begin softly. Some begin with sounds that a closed mouth could make, or nearly: "who", "do you", "good"."""
ANSWERS: Final = (
    "The capital of France is Paris, and about two million people live there. It is known for the Eiffel Tower.",
    "It will be cloudy in the morning, with some rain after two. You should take an umbrella when you leave.",
    "I have set a timer for ten minutes, and I will remind you to call your mother on Friday evening.",
    "Once upon a time there was a king who had three daughters, and none of them wanted to live in a castle.",
    "You have four meetings on Thursday. The first one begins at nine, and the last one ends at half past five.",
    "A litre of water weighs one kilogram. So eight glasses are about two kilograms, if they are not too small.",
)
# Asked to say "mm-hm", the engines spell it. Given the sounds, those of flite hum as the people did who were recorded.
FLITE_HUMS: Final = ("pau m m hh m m pau", "pau m hh m pau", "pau m m m pau", "pau hh m m pau")
ESPEAK_HUMS: Final = ("m:hm:", "m:", "hm:", "mhm")
ESPEAK_HUMMERS: Final = ("en-us", "en-gb", "en-us+f3", "en-us+m3")
BEFORE_S: Final = 1.1
AFTER_S: Final = 0.6


class Kind(StrEnum):
    SPEECH = "speech"
    PLAYING = "speech, while the client plays"
    OVER = "speech, over the loudspeaker"
    COUGH = "cough"
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
    """When the first sound of somebody's speech is heard."""
    answer: bytes | None = None
    """What the client plays meanwhile, PCM16 at 16 kHz."""


class Rule(Protocol):
    def hear(self, probability: float, frame: bytes | Samples, *, playing: bool) -> bool: ...


class InARow:
    """So many frames in a row, of at least that probability, are speech."""

    def __init__(self, frames: int, probability: float) -> None:
        self._enough = frames
        self._probability = probability
        self._frames = 0

    def hear(self, probability: float, frame: bytes | Samples, *, playing: bool) -> bool:
        self._frames = self._frames + 1 if probability >= self._probability else 0
        return self._frames >= self._enough


def make_ours(answer: bytes | None) -> BargeIn:
    barge = BargeIn()
    for at in range(0, len(answer or b""), 9_000):
        barge.played((answer or b"")[at : at + 9_000], HZ)
    return barge


class Holding:
    """What stops our server from sending more. It is decided afterwards whether that was an interruption."""

    def __init__(self, barge: BargeIn) -> None:
        self._barge = barge

    def hear(self, probability: float, frame: bytes | Samples, *, playing: bool) -> bool:
        return self._barge.hear(probability, frame, playing=playing) or self._barge.may_be_speech


OURS: Final = "Antiphon"
HELD: Final = "holds"
THREE: Final = "3 × 0.5"
PIPECAT: Final = "Pipecat"
RULES: Final[Mapping[str, Callable[[bytes | None], Rule]]] = {
    OURS: make_ours,
    HELD: lambda answer: Holding(make_ours(answer)),
    THREE: lambda _: InARow(3, 0.5),
    # Its `VADParams`: a confidence of 0.7 for 0.2 s. It asks for a volume besides, which is nothing that tells a hum.
    PIPECAT: lambda _: InARow(6, 0.7),
}


@dataclass(frozen=True, slots=True)
class Heard:
    sound: Sound
    delays_ms: Mapping[str, float]
    """By each rule, from the beginning of the sound to the interruption; infinite if there is none."""

    def is_interrupted(self, rule: str) -> bool:
        return self.delays_ms[rule] < np.inf


class Studio:
    """Makes the sounds. What engines say is kept from run to run."""

    def __init__(self, models_dir: Path, folder: Path, seed: int) -> None:
        self._models_dir = models_dir
        self._folder = folder
        self._chance = Random(seed)
        self._seed = seed
        folder.mkdir(parents=True, exist_ok=True)

    def make_all(self) -> Iterator[Sound]:
        """Raises `MissingProgram`."""
        yield from self._make_speech()
        for kind, make in (Kind.COUGH, cough), (Kind.DOOR, slam), (Kind.KEYS, type_keys):
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
            yield from self._make_noise(Kind.UH_HUH, voice, "uh-huh", self._say("uh-huh", voice))
        yield from self._make_own()

    def _make_speech(self) -> Iterator[Sound]:
        for voice in VOICES:
            for text, dbfs in zip(WORDS, cycle(LEVELS_DBFS), strict=False):
                speech = at_level(self._say(text, voice), dbfs)
                for kind in PEOPLE:
                    yield self._make_person(kind, voice, text, speech)

    def _make_person(self, kind: Kind, voice: str, text: str, speech: Signal) -> Sound:
        before = self._before()
        microphone = np.concatenate([before, speech, silence(AFTER_S)])
        answer = None
        if kind is not Kind.SPEECH:
            spoken = self._say(self._chance.choice(ANSWERS), JOE)
            answer = from_signal(spoken)
            if kind is Kind.OVER:
                microphone += _fit(self._loudspeaker(spoken, ROOMS[Kind.OWN_ROOM]), len(microphone))
        began_ms = (len(before) + onset(speech)) * 1_000 / HZ
        return Sound(kind, voice, text, to_frames(microphone), began_ms, answer)

    def _make_noise(self, kind: Kind, voice: str, text: str, noise: Signal) -> Iterator[Sound]:
        for dbfs in LEVELS_DBFS:
            microphone = np.concatenate([self._before(), at_level(noise, dbfs), silence(AFTER_S)])
            yield Sound(kind, voice, text, to_frames(microphone))

    def _make_own(self) -> Iterator[Sound]:
        for text in ANSWERS:
            spoken = self._say(text, JOE)
            for kind in (Kind.OWN, *ROOMS):
                for _ in range(10):
                    microphone = self._loudspeaker(spoken, ROOMS.get(kind))
                    yield Sound(kind, JOE, text, to_frames(microphone), answer=from_signal(spoken))

    def _loudspeaker(self, spoken: Signal, room: tuple[float, float] | None) -> Signal:
        late = silence(self._chance.uniform(0.02, 0.4))
        heard = np.concatenate([late, spoken]) * np.float32(10 ** (OWN_DB / 20))
        return reverberate(heard, *room, self._chance.randrange(1 << 32)) if room else heard

    def _before(self) -> Signal:
        # Frames do not begin where speech does.
        return silence(BEFORE_S + self._chance.uniform(0, FRAME_MS / 1_000))

    def _say(self, text: str, voice: str) -> Signal:
        def speak() -> bytes:
            return make_clip(text, voice, self._models_dir).pcm[LEAD_MS * HZ // 500 : -TAIL_MS * HZ // 500]

        return self._keep(f"{voice} {text}", speak)

    def _run(self, *command: str) -> Signal:
        def speak() -> bytes:
            try:
                file = subprocess.run(command, check=True, capture_output=True).stdout
            except FileNotFoundError as error:
                raise MissingProgram(f"{command[0]} is not installed.") from error
            pcm, hz = read_wav(file)
            return resample(pcm, hz, HZ)

        return self._keep(" ".join(command), speak)

    def _keep(self, name: str, speak: Callable[[], bytes]) -> Signal:
        path = self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.pcm"
        if not path.exists():
            path.write_bytes(speak())
        return to_signal(path.read_bytes())


def onset(speech: Signal) -> int:
    """The first 5 ms that are less than 30 dB below the loudest ones: an "s" is, the breath before it is not."""
    window = HZ // 200
    whole = len(speech) - len(speech) % window
    power = np.square(speech[:whole]).reshape(-1, window).mean(axis=1)
    return int(np.flatnonzero(power > power.max() / 1_000)[0]) * window


def murmur(seed: int) -> Signal:
    """A closed mouth of any size: one bump or two, with formants of the nose and with breath.

    The rule's constants were not chosen by these.
    """
    chance = np.random.default_rng(seed)
    pitch_hz, cutoff_hz, steepness = chance.uniform(75, 300), chance.uniform(250, 450), chance.choice([4, 6, 8])
    formants = [(hz, 10 ** (chance.uniform(*db) / 20)) for hz, db in ((1_000, (-45, -18)), (2_200, (-50, -25)))]
    bumps = []
    for _ in range(chance.integers(1, 3)):
        seconds = np.arange(round(chance.uniform(0.12, 0.3) * HZ)) / HZ
        phase = 2 * np.pi * pitch_hz * np.cumsum(1 + chance.uniform(-0.2, 0.25) * seconds / seconds[-1]) / HZ
        tones = silence(len(seconds) / HZ)
        for overtone in range(1, int(4_000 / pitch_hz)):
            hz = overtone * pitch_hz
            low = 1 / overtone / np.sqrt(1 + (hz / cutoff_hz) ** steepness)
            upper = (gain / (1 + ((hz - at_hz) / (0.13 * at_hz)) ** 2) for at_hz, gain in formants)
            tones += np.float32(max(low, *upper)) * np.cos(overtone * phase).astype(np.float32)
        bumps += [tones * np.sqrt(np.hanning(len(tones))), silence(chance.uniform(0.02, 0.08))]
    sound = np.concatenate(bumps)
    breath = np.fft.rfft(chance.normal(0, 1, len(sound)) * np.hanning(len(sound)))
    breath /= 1 + (np.fft.rfftfreq(len(sound), 1 / HZ) / chance.uniform(800, 3_000)) ** 2
    hiss = np.fft.irfft(breath, len(sound))
    loudness = np.sqrt(np.square(sound).mean() / np.square(hiss).mean()) * 10 ** (chance.uniform(-50, -12) / 20)
    return (sound + loudness * hiss).astype(np.float32)  # type: ignore[no-any-return]


def slam(seed: int) -> Signal:
    """A door: a click, and a thud of a few low tones."""
    chance = np.random.default_rng(seed)
    seconds = np.arange(round(0.35 * HZ)) / HZ
    sound = chance.normal(0, 1, len(seconds)) * np.exp(-seconds / 0.004)
    for hz, decay_s in zip(chance.uniform(50, 260, 5), chance.uniform(0.02, 0.07, 5), strict=True):
        sound += np.sin(2 * np.pi * hz * seconds) * np.exp(-seconds / decay_s)
    return sound.astype(np.float32)


def type_keys(seed: int) -> Signal:
    chance = np.random.default_rng(seed)
    sound = silence(1.2)
    seconds = np.arange(round(0.03 * HZ)) / HZ
    for at_s in np.cumsum(chance.uniform(0.07, 0.22, 5)):
        key = chance.normal(0, 1, len(seconds)) * np.exp(-seconds / 0.004)
        key += 0.3 * np.sin(2 * np.pi * chance.uniform(200, 900) * seconds) * np.exp(-seconds / 0.01)
        sound[round(at_s * HZ) :][: len(key)] += key.astype(np.float32)
    return sound


def _fit(sound: Signal, length: int) -> Signal:
    return np.pad(sound[:length], (0, max(0, length - len(sound))))


def hear_all(sounds: Sequence[Sound], vad: Vad) -> list[Heard]:
    return [
        Heard(sound, {name: _try(make(sound.answer), sound, heard) for name, make in RULES.items()})
        for sound, heard in zip(sounds, _run_vad(sounds, vad), strict=True)
    ]


def _run_vad(sounds: Sequence[Sound], vad: Vad) -> list[list[float]]:
    """How likely each frame is speech; all sounds at once, as a server hears them."""
    streams = [vad.stream() for _ in sounds]
    heard: list[list[float]] = [[] for _ in sounds]
    for at in range(max(len(sound.frames) for sound in sounds)):
        longer = [place for place, sound in enumerate(sounds) if at < len(sound.frames)]
        batch = [(streams[place], sounds[place].frames[at]) for place in longer]
        for place, probability in zip(longer, vad.run(batch), strict=True):
            heard[place].append(probability)
    return heard


def _try(rule: Rule, sound: Sound, probabilities: Sequence[float]) -> float:
    for count, (probability, frame) in enumerate(zip(probabilities, sound.frames, strict=True), start=1):
        if rule.hear(probability, frame, playing=sound.answer is not None):
            return count * FRAME_MS - sound.began_ms
    return np.inf


@dataclass(frozen=True, slots=True)
class Speed:
    """How soon one rule stops for some of the speech."""

    p50: float
    p95: float
    in_time: float
    """The share that came soon enough."""

    def __str__(self) -> str:
        if self.p50 <= 0:
            return "before it"
        return f"{_tell(self.p50)} {_tell(self.p95)} {self.in_time:4.0%}"

    @classmethod
    def of(cls, heard: Sequence[Heard], rule: str) -> "Speed":
        delays = np.array([each.delays_ms[rule] for each in heard])
        limit_ms = IN_TIME_MS if heard[0].sound.kind is Kind.SPEECH else IN_TIME_PLAYING_MS
        p50, p95 = (float(np.quantile(delays, share, method="higher")) for share in (0.5, 0.95))
        return cls(p50, p95, float(np.mean((delays > 0) & (delays <= limit_ms))))


def of_kind(heard: Sequence[Heard], kind: Kind, voice: str | None = None) -> list[Heard]:
    return [each for each in heard if each.sound.kind is kind and voice in (None, each.sound.voice)]


def count_false(heard: Sequence[Heard], kind: Kind, rule: str) -> int:
    return sum(each.is_interrupted(rule) for each in of_kind(heard, kind))


def tabulate_speed(heard: Sequence[Heard], kind: Kind) -> Table:
    limit_ms = IN_TIME_MS if kind is Kind.SPEECH else IN_TIME_PLAYING_MS
    title = f"{kind.capitalize()}: milliseconds from its first sound (p50, p95, share within {limit_ms})"
    table = Table("voice", title=title)
    for heading in ("said", *RULES):
        table.add_column(heading, justify="right")
    for voice in (*VOICES, None):
        own = of_kind(heard, kind, voice)
        speeds = (Speed.of(own, rule) for rule in RULES)
        table.add_row(voice or "all", str(len(own)), *(str(each) for each in speeds))
    return table


def tabulate_false(heard: Sequence[Heard]) -> Table:
    table = Table("", title="What is no speech to the assistant, and interrupts all the same")
    for heading in ("heard", *RULES):
        table.add_column(heading, justify="right")
    for kind in NOISES:
        count = len(of_kind(heard, kind))
        shares = ((number := count_false(heard, kind, rule), number / count) for rule in RULES)
        table.add_row(kind, str(count), *(f"{number}  {share:4.0%}" for number, share in shares))
    return table


def tell_ratios(heard: Sequence[Heard]) -> Iterator[str]:
    ours = Speed.of(of_kind(heard, Kind.SPEECH), OURS)
    hums = sum(count_false(heard, kind, OURS) for kind in HUMS)
    for rule in (THREE, PIPECAT):
        theirs = Speed.of(of_kind(heard, Kind.SPEECH), rule)
        more = sum(count_false(heard, kind, rule) for kind in HUMS) / max(1, hums)
        yield f"{rule}: {theirs.p50 / ours.p50:.2f} times our median time, {more:.1f} times as many hums interrupt"


def judge(heard: Sequence[Heard]) -> Iterator[Target]:
    for kind, limit_ms in (Kind.SPEECH, IN_TIME_MS), (Kind.PLAYING, IN_TIME_PLAYING_MS):
        late = 1 - Speed.of(of_kind(heard, kind), HELD).in_time
        yield Target(f"{kind.capitalize()}: share with more sent after {limit_ms} ms", late, LATE)
    hums = sum(count_false(heard, kind, OURS) for kind in HUMS) / sum(len(of_kind(heard, kind)) for kind in HUMS)
    yield Target("Hums: share that interrupts", hums, MISTAKEN)
    for kind in (Kind.COUGH, Kind.DOOR, Kind.KEYS, Kind.OWN, Kind.OWN_ROOM):
        share = count_false(heard, kind, OURS) / len(of_kind(heard, kind))
        yield Target(f"{kind.capitalize()}: share that interrupts", share, 0.0)


def report(console: Console, heard: Sequence[Heard]) -> None:
    console.print(*(tabulate_speed(heard, kind) for kind in PEOPLE), tabulate_false(heard), sep="\n")
    for each in of_kind(heard, Kind.SPEECH):
        if not 0 < each.delays_ms[OURS] <= IN_TIME_PLAYING_MS:
            late = f'{each.sound.voice}, "{escape(each.sound.text)}"'
            console.print(f"late: {late}, {_tell(each.delays_ms[OURS])} ms", soft_wrap=True)
    for line in tell_ratios(heard):
        console.print(line, soft_wrap=True)
    for target in judge(heard):
        console.print(str(target), soft_wrap=True)


def write_json(path: Path, heard: Sequence[Heard], run: Mapping[str, object]) -> None:
    whole = {
        **run,
        "targets": msgspec.to_builtins(list(judge(heard))),
        "heard": [
            {
                "kind": each.sound.kind,
                "voice": each.sound.voice,
                "text": each.sound.text,
                "delays_ms": {rule: ms if ms < np.inf else None for rule, ms in each.delays_ms.items()},
            }
            for each in heard
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1))


def _tell(ms: float) -> str:
    return f"{ms:,.0f}" if ms < np.inf else "never"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the noises, the rooms and where frames begin")
    parser.add_argument("--json", type=Path, default=RESULTS / "barge.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    settings = load(None)
    try:
        vad = Vad(locate(settings.models_dir, "silero-vad", "silero_vad.onnx"))
        with console.status("Speaking"):
            sounds = list(Studio(settings.models_dir, RESULTS / "barge", options.seed).make_all())
        with console.status("Listening"):
            heard = hear_all(sounds, vad)
    except (MissingProgram, AntiphonError) as error:
        console.print(f"[red]crashed[/] {escape(str(error))}", soft_wrap=True)
        return 1
    report(console, heard)
    write_json(options.json, heard, describe_run(settings, options.seed))
    console.print(f"All figures are in {options.json}. The machine's load was {tell_load()}.", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

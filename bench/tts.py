"""Measures the voices: CPU time for a second of speech, how soon the first sound comes, and whether it is understood.

All engines speak the same answers in turn, as the server speaks them: clause by clause, each chunk in one thread.
README.md says what is compared.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.audio.resample import resample
from antiphon.config import Settings, load
from antiphon.errors import AntiphonError
from antiphon.sound_format import MICROPHONE_HZ, SAMPLE_BYTES, SPEECH_HZ
from antiphon.speech.base import Synthesizer
from antiphon.speech.clauses import Clauses
from antiphon.speech.engines.hibari import HibariSynthesizer
from antiphon.speech.engines.kokoro import KokoroSynthesizer
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.engines.piper import PiperSynthesizer
from antiphon.speech.spoken import speakable
from antiphon.speech.workers import Workers
from bench.conversation.figures import Target, describe_run, tell_load
from bench.speech.words import count_errors, error_rate, normalize

RESULTS: Final = Path(__file__).parent / "results"
HIBARI, PIPER, KOKORO = "hibari", "piper", "kokoro"
CPU_MS: Final = 25.0
"""What hibari may take for a second of speech."""
ERROR_RATE: Final = 0.05
LONG_WORDS: Final = 18
"""An answer of more words is a long one."""
LEAD_MS: Final = 250

ANSWERS: Final = (
    "It's 4:35 in the afternoon.",
    "It's 10:30 PM in Tokyo.",
    "In London it's 9:05 AM on Wednesday, November 18.",
    "The time difference between London and New York is 5 hours.",
    "15% of $80 is $12.",
    "That's $31.33 for each of the three.",
    "345 plus 67 is 412.",
    "12 times 12 is 144.",
    "The square root of 2 is about 1.414.",
    "1,250 divided by 8 is 156.25.",
    "-7 °C is 19.4 °F.",
    "It's 21 °C in Berlin, with a light wind of 12 km/h from the west.",
    "5 kg is about 11 lb.",
    "26.2 miles is 42.2 km.",
    "Christmas is in 37 days, on a Friday.",
    "There are 1,024 megabytes in a gigabyte, and 14.2 GB of the disk are free.",
    "I've set a timer for 10 minutes.",
    "I'll remind you to call Dr. Smith tomorrow at 8:15 AM.",
    "Your meeting with Anna and Mr. Jones is on Tuesday, the 3rd of March, from 2 to 3:30 PM.",
    "I've added milk, eggs and two loaves of bread to the shopping list.",
    "You have 3 events today: a dentist's appointment at 9 AM, lunch with Maria at 12:30, and a call at 5.",
    "To reset your password, open the settings, choose Account, and press Reset. You'll get an e-mail with a link.",
    "The server has been running for 3 days, 4 hours and 12 minutes.",
    "Why do programmers confuse Halloween with Christmas? Because 31 in base eight is 25 in base ten.",
    "I don't know. You could ask me for the time in a city, for a sum, or for what is on your list.",
    "The CPU is at 42%, and 7.5 of 16 GB of memory are in use.",
    "100 euros are about $108.50 today.",
    "Sunrise is at 7:12 AM, and sunset at 4:21 PM.",
)
"""Answers of the assistant's kind, as it writes them: numbers, times, names and units."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """An answer, spoken once."""

    engine: str
    text: str
    speech_s: float
    cpu_s: float
    first_ms: float
    """The time to the first sound."""
    heard: str

    @property
    def cpu_ms_per_s(self) -> float:
        return self.cpu_s * 1_000 / self.speech_s

    @property
    def is_long(self) -> bool:
        return len(self.text.split()) > LONG_WORDS

    @property
    def errors(self) -> int:
        return count_errors(speakable(self.text), self.heard)


def clauses_of(text: str) -> list[str]:
    clauses = Clauses()
    return [speakable(clause) for clause in (*clauses.push(text), *clauses.finish())]


async def speak(engine: str, synthesizer: Synthesizer, text: str, recognizer: MoonshineRecognizer) -> Spoken:
    began, used = time.perf_counter(), time.process_time()
    first_ms: float | None = None
    pcm = b""
    for clause in clauses_of(text):
        async for sound in synthesizer.speak(clause):
            first_ms = first_ms or (time.perf_counter() - began) * 1_000
            pcm += sound.pcm
    cpu_s = time.process_time() - used
    assert first_ms is not None
    lead = bytes(LEAD_MS * MICROPHONE_HZ // 1_000 * SAMPLE_BYTES)
    heard = await recognizer.recognize(lead + resample(pcm, SPEECH_HZ, MICROPHONE_HZ) + lead)
    return Spoken(engine, text, len(pcm) / SAMPLE_BYTES / SPEECH_HZ, cpu_s, first_ms, heard)


async def measure(settings: Settings, names: Sequence[str], answers: Sequence[str]) -> list[Spoken]:
    """Measures all engines in turn. Raises `AntiphonError`."""
    workers = Workers(threads=1)
    recognizer = MoonshineRecognizer(settings.models_dir, workers)
    engines: dict[str, Synthesizer] = {name: _open(name, settings, workers) for name in names}
    try:
        for name, engine in engines.items():
            await speak(name, engine, "Ready.", recognizer)
        return [
            await speak(name, engine, text, recognizer)
            for text in track(answers, "Speaking", transient=True)
            for name, engine in engines.items()
        ]
    finally:
        await workers.aclose()


def _open(name: str, settings: Settings, workers: Workers) -> Synthesizer:
    match name:
        case "piper":
            return PiperSynthesizer(settings.models_dir, workers)
        case "kokoro":
            return KokoroSynthesizer(settings.models_dir, workers)
        case _:
            return HibariSynthesizer(workers)


def report(console: Console, spoken: Sequence[Spoken], names: Sequence[str]) -> None:
    table = Table("", *names, title=f"{len(ANSWERS)} answers, one core")
    groups = [[each for each in spoken if each.engine == name] for name in names]
    rows = {
        "CPU, ms per second of speech": [f"{cpu_ms(group):.1f}" for group in groups],
        "first sound of a short answer, ms": [f"{first_ms(group, is_long=False):.0f}" for group in groups],
        "first sound of a long answer, ms": [f"{first_ms(group, is_long=True):.0f}" for group in groups],
        "words read back wrongly": [f"{errors(group):.1%}" for group in groups],
        "speech, s": [f"{sum(each.speech_s for each in group):.0f}" for group in groups],
    }
    for what, cells in rows.items():
        table.add_row(what, *cells)
    console.print(table)
    for each in spoken:
        if each.errors:
            said = " ".join(normalize(speakable(each.text)))
            console.print(f"{each.engine}: {said}\n  heard: {each.heard}", highlight=False, soft_wrap=True)


def cpu_ms(spoken: Sequence[Spoken]) -> float:
    return sum(each.cpu_s for each in spoken) * 1_000 / sum(each.speech_s for each in spoken)


def first_ms(spoken: Sequence[Spoken], *, is_long: bool) -> float:
    return median(each.first_ms for each in spoken if each.is_long is is_long)


def errors(spoken: Sequence[Spoken]) -> float:
    return error_rate((speakable(each.text), each.heard) for each in spoken)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kokoro", action="store_true", help="Kokoro, too, which takes a minute")
    parser.add_argument("--json", type=Path, default=RESULTS / "tts.json", help="where the figures are written")
    options = parser.parse_args()
    console = Console()
    settings = load(None)
    names = (HIBARI, PIPER, *((KOKORO,) if options.kokoro else ()))
    try:
        spoken = asyncio.run(measure(settings, names, ANSWERS))
    except AntiphonError as error:
        console.print(f"[red]{error}[/]")
        return 1
    report(console, spoken, names)
    ours = [each for each in spoken if each.engine == HIBARI]
    piper = [each for each in spoken if each.engine == PIPER]
    for target in (
        Target("CPU of hibari, ms per second of speech", cpu_ms(ours), CPU_MS),
        Target(
            "first sound of hibari, as a share of Piper's",
            first_ms(ours, is_long=False) / first_ms(piper, is_long=False),
            1.0,
        ),
        Target("words read back wrongly from hibari", errors(ours), ERROR_RATE),
    ):
        console.print(str(target))
    options.json.parent.mkdir(exist_ok=True)
    options.json.write_text(
        json.dumps({**describe_run(settings, 0), "spoken": [asdict(each) for each in spoken]}, indent=1)
    )
    console.print(f"All figures are in {options.json}. The machine's load was {tell_load()}.", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

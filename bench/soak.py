"""People talk to one server continuously, and its memory and latency are checked for drift.

README.md says what is measured.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import combinations, count, cycle
from pathlib import Path
from statistics import median
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

import msgspec
import psutil
from msgspec import Struct
from rich.console import Console

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.client import ClientError, Mode, Session, connect
from antiphon.client.speaking import say
from antiphon.config import load
from antiphon.errors import AntiphonError
from antiphon.protocol.client_messages import AudioForm, Hello, Interrupt, StartListening, TextMessage
from antiphon.protocol.server_messages import GenerationComplete, State, StateChanged, TurnMetrics
from bench.speech.clips import JOE, Clip, MissingProgram, make_clip

RESULTS: Final = Path(__file__).parent / "results"
MINUTES: Final = 10.0
PEOPLE: Final = 4
AT_ONCE: Final = 2
"""How many talk at the same time. The others are connected but silent."""
TURNS_A_CALL: Final = 10
"""After this many turns, everybody except the first person hangs up and calls again."""
EVERY_S: Final = 10.0
JOKES: Final = 15
"""How many jokes each of them hears first. They fill the cache of spoken phrases, which would take hours otherwise."""
WARM_SHARE: Final = 0.2
"""The share of the time that is warm-up: memory pools grow to what the longest sentences need, two at once."""
MAX_GROWTH_MB: Final = 10.0
MAX_SLOWER: Final = 0.15
SAYINGS: Final = (
    "What time is it in Tokyo?",
    "Tell me a joke.",
    "How many days until Christmas?",
    "What is seventeen times six?",
    "What day of the week is July the fourth?",
    "How long has this computer been running?",
    "What can you do?",
    "What is the date in three weeks?",
)


class Sample(Struct, frozen=True):
    """The figures of one interval."""

    at_s: float
    rss_mb: float
    turns: int
    latency_ms: float | None
    """The median of "you stopped → it spoke" as measured by the clients; None if nobody was answered."""


class Drift(Struct, frozen=True):
    """The drift, by a straight line through the samples after the warm-up."""

    begin: float
    change: float

    @property
    def share(self) -> float:
        return self.change / self.begin


class Tally:
    def __init__(self) -> None:
        self.latencies_ms: list[float] = []
        self.turns = 0
        self.problems: list[str] = []

    def take(self) -> tuple[int, float | None]:
        """Returns what was recorded since the last call."""
        turns, latencies_ms = self.turns, self.latencies_ms
        self.turns, self.latencies_ms = 0, []
        return turns, median(latencies_ms) if latencies_ms else None


def main() -> None:
    options = _parse()
    console = Console(highlight=False, soft_wrap=True)
    RESULTS.mkdir(exist_ok=True)
    try:
        clips = [make_clip(text, voice, load(None).models_dir) for voice in (JOE, "slt", "rms") for text in SAYINGS]
        with TemporaryDirectory(dir=RESULTS) as folder, served(Path(folder)) as (process, url):
            samples, tally = asyncio.run(soak(process, url, clips, 60 * options.minutes, console.print))
    except (AntiphonError, MissingProgram) as error:
        sys.exit(f"soak: {error}")
    memory = find_drift([(each.at_s, each.rss_mb) for each in samples])
    latency = find_drift([(each.at_s, each.latency_ms) for each in samples if each.latency_ms is not None])
    for line in judge(memory, latency, sum(each.turns for each in samples), tally.problems):
        console.print(line)
    (RESULTS / "soak.json").write_bytes(
        msgspec.json.format(
            msgspec.json.encode({"samples": samples, "memory": memory, "latency": latency, "problems": tally.problems})
        )
    )


def judge(memory: Drift, latency: Drift, turns: int, problems: Sequence[str]) -> Iterator[str]:
    yield f"{turns} turns, {len(problems)} of them without an answer."
    yield from (f"  {problem}" for problem in problems[:5])
    flat = memory.change <= MAX_GROWTH_MB
    yield f"Memory: {memory.begin:.0f} MB after the warm-up, {memory.change:+.1f} MB since: {_verdict(flat, 'flat')}."
    steady = latency.share <= MAX_SLOWER
    yield (
        f"Latency: {latency.begin:.0f} ms after the warm-up, {latency.change:+.0f} ms since "
        f"({latency.share:+.0%}): {_verdict(steady, 'no drift')}."
    )


def _verdict(holds: bool, target: str) -> str:
    return f"[green]{target}[/]" if holds else f"[red]{target}: missed[/]"


def find_drift(points: Sequence[tuple[float, float]]) -> Drift:
    """Finds the drift from the end of the warm-up to the end."""
    if not points:
        sys.exit("soak: nobody was answered.")
    end_s = points[-1][0]
    settled = [(at_s, value) for at_s, value in points if at_s >= WARM_SHARE * end_s]
    if len(settled) < 2:
        return Drift(settled[-1][1], 0.0)
    # The median of the slopes between any two points: one busy minute does not affect it much.
    slope = median((after - before) / (to_s - from_s) for (from_s, before), (to_s, after) in combinations(settled, 2))
    begin_s = settled[0][0]
    begin = median(value - slope * (at_s - begin_s) for at_s, value in settled)
    return Drift(begin, slope * (end_s - begin_s))


async def soak(
    process: psutil.Process, url: str, clips: Sequence[Clip], seconds: float, tell: Callable[[str], None]
) -> tuple[list[Sample], Tally]:
    await asyncio.gather(*(hear_jokes(url) for _ in range(PEOPLE)))
    tally, turn = Tally(), asyncio.Semaphore(AT_ONCE)
    people = [asyncio.create_task(talk(url, clips[number:], turn, tally, number == 0)) for number in range(PEOPLE)]
    samples: list[Sample] = []
    began_s = monotonic()
    try:
        for number in count(1):
            due_s = min(number * EVERY_S, seconds)
            await asyncio.wait(people, timeout=began_s + due_s - monotonic(), return_when=asyncio.FIRST_COMPLETED)
            for done in (each for each in people if each.done()):
                done.result()
            samples.append(Sample(due_s, process.memory_info().rss / 1e6, *tally.take()))
            latency_ms = samples[-1].latency_ms
            heard = "nobody was answered" if latency_ms is None else f"{latency_ms:4.0f} ms"
            tell(f"{due_s:5.0f} s  {samples[-1].rss_mb:5.0f} MB  {samples[-1].turns:3} turns  {heard}")
            if due_s >= seconds:
                return samples, tally
    finally:
        for each in people:
            each.cancel()
        await asyncio.wait(people)
    raise AssertionError("unreachable")


async def talk(url: str, clips: Sequence[Clip], turn: asyncio.Semaphore, tally: Tally, stays: bool) -> None:
    """Runs one person, call after call. The one who stays hears every answer to its end; the others interrupt."""
    said = cycle(clips)
    while True:
        async with calling(url) as session:
            for number in count(1):
                async with turn:
                    await ask(session, next(said), tally, patient=stays)
                if number == TURNS_A_CALL and not stays:
                    break


async def ask(session: Session, clip: Clip, tally: Tally, *, patient: bool) -> None:
    tally.turns += 1
    try:
        exchange = await say(session, clip.pcm, patient=patient)
    except ClientError as error:
        tally.problems.append(f"{clip.voice}: {clip.text}: {error}")
        return
    if exchange.first_audio_s is None:
        tally.problems.append(f"{clip.voice}: {clip.text}: {exchange.errors or 'an answer without sound'}")
    else:
        tally.latencies_ms.append(1000 * exchange.first_audio_s)


async def hear_jokes(url: str) -> None:
    """Asks for jokes by text, and interrupts them as soon as they arrive."""
    async with calling(url) as session:
        for _ in range(JOKES):
            await session.send(TextMessage("tell me a joke"))
            async for incoming in session.messages():
                if isinstance(incoming, GenerationComplete):
                    await session.send(Interrupt(played_ms=0))
                if isinstance(incoming, TurnMetrics):
                    break


@asynccontextmanager
async def calling(url: str) -> AsyncIterator[Session]:
    async with connect(url, mode=Mode.VOICE, hello=Hello(audio=AudioForm.BINARY)) as session:
        await session.send(StartListening())
        async for incoming in session.messages():
            if isinstance(incoming, StateChanged) and incoming.state is State.LISTENING:
                break
        yield session


@contextmanager
def served(folder: Path) -> Iterator[tuple[psutil.Process, str]]:
    """Runs `antiphon serve` with its voice, and gives the process and the address of its socket."""
    env = {**os.environ, "ANTIPHON_DATA_DIR": str(folder), "PYTHONUNBUFFERED": "1"}
    # It has a new data folder, and uses the installed models.
    env["ANTIPHON_MODELS_DIR"] = str(load(None).models_dir)
    command = [sys.executable, "-m", "antiphon", "serve", "--port", "0"]
    with (
        (folder / "log").open("w") as log,
        Popen(command, cwd=folder, env=env, stdout=PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if "no voice" in line:
                    sys.exit(f"soak: {line.strip()}")
                if "WebSocket: " in line:
                    yield psutil.Process(process.pid), line.rpartition("WebSocket: ")[2].strip().rstrip(").")
                    return
            sys.exit(f"soak: the server did not start: {(folder / 'log').read_text().strip().splitlines()[-1:]}")
        finally:
            process.terminate()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long [default: %(default)g]")
    options = parser.parse_args()
    if options.minutes <= 0:
        parser.error("--minutes must be more than 0")
    return options


if __name__ == "__main__":
    main()

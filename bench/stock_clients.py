"""Lets clients that people already use hold a spoken turn with our endpoints, with a tool that is their own.

Pipecat's services and LiveKit's plugin come from PyPI and are unmodified. README.md says what is real and what is not.
"""

import argparse
import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from subprocess import CalledProcessError
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.markup import escape
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.audio.resample import resample
from antiphon.config import Settings, load
from antiphon.errors import AntiphonError
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.workers import Workers
from bench.conversation.figures import tell_load
from bench.conversation.sayings import Saying
from bench.conversation.served import check_models, serving
from bench.conversation.sounds import Utterance, speak
from bench.load.process import Crashed
from bench.peers.environment import prepare_peers
from bench.speech.clips import FLITE, MissingProgram
from bench.speech.words import count_errors
from bench.stock.model import QUESTION, answer, tell
from bench.stock.turn import measure_weather
from bench.tools import last_line
from tests.fakes.chat_server import ChatServer
from tests.fakes.tls_proxy import tls_proxy

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "bench" / "results"
REQUIREMENTS: Final = ROOT / "bench" / "stock" / "requirements.txt"
INSTALLING: Final = "Installing Pipecat and LiveKit Agents into bench/.venv-peers. This takes some minutes, once."
CITIES: Final = ("London", "Paris", "Boston", "Madrid", "Dallas", "Denver")
MAX_WORD_ERRORS: Final = 1
PATIENCE_S: Final = 120.0
SILENCE_MS: Final = 250


class Client(Struct, frozen=True):
    name: str
    module: str
    url: str
    """What it is told to connect to: `{address}` of our server, or `{proxy}`, which ends the TLS that it insists on."""


CLIENTS: Final = (
    Client("Pipecat, OpenAI Realtime", "pipecat_realtime", "ws://{address}/v1/realtime"),
    Client("Pipecat, Gemini Live", "pipecat_gemini", "{proxy}"),
    Client("LiveKit, openai plugin", "livekit_realtime", "http://{address}/v1"),
)


class Found(Struct, frozen=True):
    """What a client reports, and what we hear in its answer."""

    version: str = ""
    connected: bool = False
    heard: str = ""
    calls: Sequence[Mapping[str, Any]] = ()
    answer: str = ""
    hz: int = 0
    first_audio_ms: float | None = None
    problems: Sequence[str] = ()
    read_back: str = ""
    """The audio of the answer, as our recogniser understands it."""

    @property
    def is_right(self) -> bool:
        """Returns whether the client's function was called once, and its result is in the answer and can be heard."""
        if len(self.calls) != 1 or not self.read_back:
            return False
        result = measure_weather(str(self.calls[0].get("city", "")))
        return str(result["celsius"]) in self.answer and count_errors(tell(result), self.read_back) <= MAX_WORD_ERRORS


async def hold(client: Client, python: Path, order: Mapping[str, Any], env: Mapping[str, str]) -> Found:
    """Runs a client for one turn. Raises `Crashed`."""
    command = (str(python), "-m", f"bench.stock.{client.module}", json.dumps(order))
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=env, stdout=PIPE, stderr=PIPE)
    try:
        output, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise Crashed(f"It did not finish within {PATIENCE_S:.0f} s.") from None
    if process.returncode or not output:
        raise Crashed(last_line(errors.decode()))
    return msgspec.json.decode(output.splitlines()[-1], type=Found)


class Bench:
    def __init__(self, console: Console, settings: Settings, python: Path, utterances: Sequence[Utterance]) -> None:
        self._console = console
        self._settings = settings
        self._python = python
        self._utterances = utterances
        self.found: dict[str, Found] = {}
        self.crashed: dict[str, str] = {}

    async def run(self, clients: Sequence[Client]) -> None:
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            model = await stack.enter_async_context(ChatServer(answer))
            # The server may ask the model while it starts, so it is started beside this event loop.
            served = serving(self._settings, ANTIPHON_MODEL__TEXT=f"openai:{model.url}#scripted")
            address = urlsplit(await asyncio.to_thread(served.__enter__)).netloc
            stack.callback(served.__exit__, None, None, None)
            proxy = await stack.enter_async_context(tls_proxy(int(address.rpartition(":")[2]), folder / "tls"))
            workers = Workers(threads=os.cpu_count() or 1)
            stack.push_async_callback(workers.aclose)
            recognizer = MoonshineRecognizer(self._settings.models_dir, workers)
            await asyncio.to_thread(recognizer.load)
            env = {
                **os.environ,
                "PYTHONPATH": str(ROOT),
                # The proxy's certificate is signed by an authority of its own.
                "SSL_CERT_FILE": str(folder / "tls" / "ca.pem"),
            }
            for client, utterance in zip(clients, self._utterances, strict=False):
                self._console.print(f"{client.name} …")
                speech, spoken = folder / "speech.pcm", folder / "answer.pcm"
                speech.write_bytes(utterance.pcm)
                order = {
                    "url": client.url.format(address=address, proxy=proxy.url),
                    "speech": str(speech),
                    "ends_at_ms": utterance.ends_at_ms,
                    "answer": str(spoken),
                }
                try:
                    found = await hold(client, self._python, order, env)
                except Crashed as error:
                    self.crashed[client.name] = str(error)
                else:
                    heard = await read_back(recognizer, spoken.read_bytes(), found.hz)
                    self.found[client.name] = msgspec.structs.replace(found, read_back=heard)


async def read_back(recognizer: MoonshineRecognizer, pcm: bytes, hz: int) -> str:
    """Returns what our recogniser hears in the audio, with a silence around it as in the cascade."""
    silence = bytes(2 * MICROPHONE_HZ * SILENCE_MS // 1000)
    return await recognizer.recognize(silence + resample(pcm, hz, MICROPHONE_HZ) + silence) if pcm else ""


def tabulate(found: Mapping[str, Found], said: Mapping[str, str]) -> Table:
    table = Table("", *(f"{name} {each.version}" for name, each in found.items()))
    rows: Mapping[str, Callable[[str, Found], str]] = {
        "connected": lambda name, each: "yes" if each.connected else "no",
        "said": lambda name, each: said[name],
        "heard": lambda name, each: each.heard,
        "tool called": lambda name, each: "; ".join(json.dumps(call) for call in each.calls) or "no",
        "answer": lambda name, each: each.answer,
        "answer, read back": lambda name, each: each.read_back,
        "ms to first audio": lambda name, each: f"{each.first_audio_ms:,.0f}" if each.first_audio_ms else "",
    }
    for heading, tell_cell in rows.items():
        table.add_row(heading, *(escape(tell_cell(name, each)) for name, each in found.items()))
    verdicts = ("[green]right[/]" if each.is_right else "[red]wrong[/]" for each in found.values())
    table.add_row("verdict", *verdicts)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[client.module for client in CLIENTS], metavar="MODULE")
    parser.add_argument("--seed", type=int, default=0, help="the seed for the cities and the voices")
    parser.add_argument("--json", type=Path, default=RESULTS / "stock_clients.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    settings = load(None)
    RESULTS.mkdir(exist_ok=True)
    clients = [client for client in CLIENTS if not options.only or client.module in options.only]
    chance = Random(options.seed)
    sayings = [Saying(QUESTION.format(city=city), voice, "") for city, voice in make_pairs(chance, len(clients))]
    try:
        check_models(settings.models_dir)
        utterances = [speak(saying, settings.models_dir, chance) for saying in sayings]
        python = prepare_peers(REQUIREMENTS, lambda: console.print(INSTALLING))
        bench = Bench(console, settings, python, utterances)
        asyncio.run(bench.run(clients))
    except (AntiphonError, CalledProcessError, Crashed, MissingProgram, OSError) as error:
        reason = last_line(getattr(error, "stderr", None) or str(error))
        console.print(f"[red]crashed[/] {escape(reason)}", soft_wrap=True)
        return 1
    said = {client.name: saying.text for client, saying in zip(clients, sayings, strict=True)}
    console.print(tabulate(bench.found, said))
    for name, each in bench.found.items():
        for problem in each.problems:
            console.print(f"[red]problem[/] {name}: {escape(problem)}", soft_wrap=True)
    for name, reason in bench.crashed.items():
        console.print(f"[red]crashed[/] {name}: {escape(reason)}", soft_wrap=True)
    whole = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": os.getloadavg(),
        "said": said,
        "found": msgspec.to_builtins(bench.found),
        "crashed": bench.crashed,
    }
    options.json.write_text(json.dumps(whole, indent=1))
    console.print(f"All of it is in {options.json}. The machine's load was {tell_load()}.", soft_wrap=True)
    return 0 if not bench.crashed and all(each.is_right for each in bench.found.values()) else 1


def make_pairs(chance: Random, count: int) -> list[tuple[str, str]]:
    """Chooses a city and a voice for each client."""
    cities = chance.sample(CITIES, count)
    return [(city, FLITE[place % len(FLITE)]) for place, city in enumerate(cities)]


if __name__ == "__main__":
    sys.exit(main())

"""People with different voices, and a server that hears them."""

import asyncio
import json
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import numpy as np

from antiphon.audio.wav import read_wav
from antiphon.client import Incoming, Mode, Session, connect
from antiphon.client.speaking import FRAME_BYTES, FRAME_MS, Exchange, say
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.engines.piper import PiperSynthesizer
from antiphon.speech.workers import Workers
from tests.e2e.terminal import COMMAND, Terminal
from tests.fakes.clips import kept_clip
from tests.fakes.spoken import for_ears, record

JOE: Final = "joe"
SLT: Final = "slt"
RMS: Final = "rms"
ENGLISH: Final = "en-gb"
"""Piper's voice; flite's voices of a woman and a man; and espeak-ng's robotic one."""
FLITE: Final = (SLT, RMS)
PATIENCE_S: Final = 20.0
"""How long to wait for one message. Other tests may be using the machine's cores."""

# Speech, made and understood.


@asynccontextmanager
async def engines(models_dir: Path) -> AsyncIterator[tuple[PiperSynthesizer, MoonshineRecognizer]]:
    """Engines for one test. The synthesizer makes the same sound of a text each time."""
    async with AsyncExitStack() as stack:
        workers = Workers(2, max_waiting=100)
        stack.push_async_callback(workers.aclose)
        yield PiperSynthesizer(models_dir, workers, noise_scale=0.0), MoonshineRecognizer(models_dir, workers)


async def speak(piper: PiperSynthesizer, voice: str, text: str) -> bytes:
    """A text as a microphone in a quiet room hears it, at 16 kHz. The same text always sounds the same."""
    if voice == JOE:
        return in_a_room(await record(piper, text))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "said.wav"
        program = (
            ["flite", "-voice", voice, "-t", text, "-o"] if voice in FLITE else ["espeak-ng", "-v", voice, text, "-w"]
        )
        await asyncio.to_thread(subprocess.run, [*program, str(file)], check=True, capture_output=True)
        return in_a_room(for_ears(*read_wav(file)))


def in_a_room(pcm: bytes) -> bytes:
    """Adds the noise of a good microphone, at -72 dBFS: real recordings have no digital silence."""
    samples = np.frombuffer(pcm, np.int16)
    noise = np.random.default_rng(samples.size).normal(0, 8, samples.size)
    return (samples + noise).clip(-32_768, 32_767).astype(np.int16).tobytes()


def make_clips(models_dir: Path, said: Iterable[tuple[str, str]]) -> dict[tuple[str, str], bytes]:
    """Synthesises these texts with these voices."""

    async def make() -> dict[tuple[str, str], bytes]:
        async with engines(models_dir) as (piper, _):
            return {
                (voice, text): await kept_clip(voice, text, partial(speak, piper, voice, text)) for voice, text in said
            }

    return asyncio.run(make())


# A server, and people who talk to it.


@dataclass(frozen=True)
class VoiceServer:
    process: "subprocess.Popen[str]"
    announced: Sequence[str]

    @property
    def url(self) -> str:
        [line] = [line for line in self.announced if "WebSocket: " in line]
        return line.rpartition("WebSocket: ")[2].rstrip(").")

    def get(self, path: str) -> Any:
        with urlopen(f"{self.url.replace('ws:', 'http:').removesuffix('/ws')}{path}", timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def said(self, conversation_id: str) -> list[tuple[str, str, bool]]:
        """The stored turns of a conversation: role, text, and whether it was spoken. Tool calls are left out."""
        turns = self.get(f"/api/conversations/{conversation_id}")["turns"]
        told = [(turn["message"]["role"], turn["message"].get("text", "").strip(), turn["spoken"]) for turn in turns]
        return [each for each in told if each[0] in ("user", "assistant") and each[1]]

    def kill(self) -> None:
        """kill -9: no handler runs, nothing is flushed."""
        self.process.kill()
        self.process.wait()


@contextmanager
def serve(folder: Path, models_dir: Path, **variables: str) -> Iterator[VoiceServer]:
    """Runs `antiphon serve` in this folder. Several servers may run there and share its data."""
    terminal = Terminal(folder)
    environment = terminal.environment(ANTIPHON_MODELS_DIR=str(models_dir), PYTHONUNBUFFERED="1", **variables)
    with (
        (folder / "log").open("ab") as log,
        subprocess.Popen(
            [COMMAND, "serve", "--port", "0"],
            cwd=folder,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=log,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            announced: list[str] = []
            while not announced or not announced[-1].startswith("Try it"):
                line = process.stdout.readline()
                assert line, f"the server did not start:\n{(folder / 'log').read_text()}"
                announced.append(line.rstrip("\n"))
            yield VoiceServer(process, announced)
        finally:
            process.terminate()


@dataclass
class Person:
    """A person with a client. Keeps the messages in the order in which they came."""

    session: Session
    told: list[Incoming] = field(default_factory=list)

    async def hear(self) -> Incoming:
        async for incoming in self.session.messages():
            self.told.append(incoming)
            return incoming
        raise AssertionError("the server has ended the session")

    async def until(self, *wanted: Callable[[Incoming], bool]) -> None:
        """Waits until a message has come for each of these conditions."""
        left = list(wanted)
        async with asyncio.timeout(PATIENCE_S):
            while left:
                incoming = await self.hear()
                left = [is_wanted for is_wanted in left if not is_wanted(incoming)]

    async def until_state(self, state: s.State) -> None:
        await self.until(lambda incoming: incoming_state(incoming) is state)

    async def ask(self, text: str) -> Exchange:
        """Types a message, and interrupts the answer once all of it has come, as if it had been heard."""
        exchange = Exchange()
        await self.session.send(c.TextMessage(text))
        async with asyncio.timeout(PATIENCE_S):
            while not exchange.is_over:
                incoming = await self.hear()
                exchange.take(incoming, 0.0)
                if isinstance(incoming, s.GenerationComplete) and exchange.pcm:
                    await self.session.send(c.Interrupt(played_ms=1000 * exchange.answer_s))
        return exchange

    async def say(self, pcm: bytes, *, patient: bool = False) -> Exchange:
        return await say(self.session, pcm, self.told.append, patient=patient)

    async def send_frames(self, pcm: bytes, *, playing: bool) -> None:
        """Sends audio at the pace of speech."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for number, at in enumerate(range(0, len(pcm), FRAME_BYTES)):
            await asyncio.sleep(max(0.0, began_s + number * FRAME_MS / 1000 - loop.time()))
            await self.session.send_audio(pcm[at : at + FRAME_BYTES], playing=playing)

    @property
    def conversation_id(self) -> str:
        assert self.session.conversation_id is not None
        return self.session.conversation_id


def incoming_state(incoming: Incoming) -> s.State | None:
    return incoming.state if isinstance(incoming, s.StateChanged) else None


@asynccontextmanager
async def calling(url: str, **hello: Any) -> AsyncIterator[Person]:
    """A person in a call, with the microphone open."""
    async with connect(url, mode=Mode.VOICE, hello=c.Hello(audio=c.AudioForm.BINARY, **hello)) as session:
        person = Person(session)
        await session.send(c.StartListening())
        await person.until_state(s.State.LISTENING)
        yield person


async def ask_each(url: str, clips: Iterable[bytes]) -> list[tuple[str, str, float]]:
    """Asks each question in a call of its own. Returns what was heard, the answer, and how long it was spoken."""
    told = []
    for clip in clips:
        async with calling(url) as person:
            exchange = await person.say(clip)
            told.append((exchange.transcript, exchange.response, exchange.answer_s))
    return told

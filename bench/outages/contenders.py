"""The contenders: how each is installed, what it is configured with, and one call of it with the simulator."""

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final

from msgspec import Struct

from antiphon.config import Settings
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from bench.conversation.sayings import Saying
from bench.conversation.sounds import speak
from bench.load.process import Crashed
from bench.outages.judging import Report, Verdict, decode, judge
from bench.outages.model import answer
from bench.outages.script import GREETING, TOOL_S, Step
from bench.outages.server import MODELS, serve, write_settings
from bench.peers.environment import LIVEKIT_VENV, PEERS_VENV, prepare_peers
from bench.tools import last_line
from tests.fakes.chat_server import ChatServer
from tests.wire.simulators import RunningSimulator, run_simulator

ROOT: Final = Path(__file__).parents[2]
REQUIREMENTS: Final = ROOT / "bench" / "outages"
PATIENCE_S: Final = 600.0


class Contender(Struct, frozen=True):
    name: str
    module: str
    configured: str
    """What it was given to survive with."""
    requirements: str = ""
    """Empty for our own, which needs no other environment."""
    venv: Path = PEERS_VENV

    def prepare(self, console: Any) -> Path:
        """Returns its Python. Raises `OSError` and `CalledProcessError`."""
        if not self.requirements:
            return Path(sys.executable)
        told = f"Installing {self.name} into bench/{self.venv.name}. This takes some minutes, once."
        return prepare_peers(REQUIREMENTS / self.requirements, lambda: console.print(told), venv=self.venv)


OURS: Final = "Antiphon"
CONTENDERS: Final = (
    Contender(
        "Pipecat 1.14.0",
        "pipecat_call",
        "GeminiLiveLLMService, which resumes its session by itself (three attempts)",
        "requirements.txt",
    ),
    Contender(
        "LiveKit 1.8.9",
        "livekit_call",
        "RealtimeModelFallbackAdapter with two Gemini models; each resumes its session by itself (three attempts)",
        "requirements.txt",
    ),
    Contender(
        "LiveKit 2.0.0b1",
        "livekit_call",
        "the same",
        "requirements-livekit.txt",
        LIVEKIT_VENV,
    ),
    Contender(OURS, "antiphon_call", "a ladder of two Gemini models and the local voice"),
)


class Stage:
    """Where calls are held, each with its own simulator and, if it is ours, its own server."""

    def __init__(self, folder: Path, settings: Settings, recognizer: MoonshineRecognizer) -> None:
        self._folder = folder
        self._settings = settings
        self._recognizer = recognizer
        self._calls = count()

    async def hold(self, contender: Contender, python: Path, steps: Sequence[Step]) -> tuple[Report, list[Verdict]]:
        """Has the conversation. Raises `Crashed`."""
        folder = self._folder / f"{next(self._calls)}-{contender.module}"
        folder.mkdir()
        async with AsyncExitStack() as stack:
            # The processes may ask the model while they start, so they are started beside this event loop.
            chat = await stack.enter_async_context(ChatServer(answer))
            model = f"openai:{chat.url}#scripted"
            simulating = run_simulator("gemini-live", "--tls-dir", "tls", "--model", model, folder=folder)
            simulator = await asyncio.to_thread(simulating.__enter__)
            stack.push(simulating.__exit__)
            url, orders = f"https://localhost:{simulator.port}", folder / "orders"
            env = {
                **os.environ,
                "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
                "ANTIPHON_MODELS_DIR": str(self._settings.models_dir),
                **_trust(simulator),
            }
            if contender.name == OURS:
                serving = serve(folder, write_settings(url, model), orders=orders, tool_s=TOOL_S, env=env)
                url = await asyncio.to_thread(serving.__enter__)
                stack.push(serving.__exit__)
            order = {
                "url": url,
                "control_url": simulator.control_url,
                "models": MODELS,
                "greeting": GREETING,
                "tool_s": TOOL_S,
                "steps": self._record(folder, steps),
                "orders": str(orders),
                "folder": str(folder),
            }
            report = await _run(python, contender.module, order, env, folder / "contender.log")
            return report, await judge(self._recognizer, steps, report)

    def _record(self, folder: Path, steps: Sequence[Step]) -> list[dict[str, Any]]:
        """Has the questions spoken, and returns the steps as a contender gets them."""
        recorded = []
        for place, step in enumerate(steps):
            utterance = speak(Saying(step.question, step.voice, ""), self._settings.models_dir, Random(0))
            path = folder / f"question-{place}.pcm"
            path.write_bytes(utterance.pcm)
            spoken = {"speech": str(path), "ends_at_ms": utterance.ends_at_ms}
            recorded.append({"name": step.name, "faults": step.faults, **spoken})
        return recorded


def _trust(simulator: RunningSimulator) -> dict[str, str]:
    """Returns the variables with which a client trusts the simulator's certificate."""
    found = re.search(r"SSL_CERT_FILE=(\S+)", simulator.announced)
    assert found is not None
    return {"SSL_CERT_FILE": found[1], "GEMINI_API_KEY": "local"}


async def _run(python: Path, module: str, order: Mapping[str, Any], env: Mapping[str, str], log: Path) -> Report:
    command = (str(python), "-m", f"bench.outages.{module}", json.dumps(order))
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=env, stdout=PIPE, stderr=errors)
        try:
            output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise Crashed(f"It did not finish within {PATIENCE_S:.0f} s.") from None
    if not output:
        raise Crashed(last_line(await asyncio.to_thread(log.read_text)))
    return decode(output.splitlines()[-1])

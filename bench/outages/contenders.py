"""The contenders: how each is installed, what it is configured with, and one call of it with the simulator."""

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from antiphon.config import Settings
from bench.load.process import Crashed
from bench.outages.judging import Report, decode
from bench.outages.script import GREETING, TOOL_S
from bench.outages.server import serve
from bench.peers.environment import LIVEKIT_VENV, PEERS_VENV, prepare_peers
from bench.tools import last_line
from tests.wire.simulators import RunningSimulator, run_simulator

ROOT: Final = Path(__file__).parents[2]
REQUIREMENTS: Final = ROOT / "bench" / "outages"
MODELS: Final = ("gemini-3.8-live", "gemini-2.5-flash-native-audio-preview-12-2025")
"""The models of the simulator, best first. The first one is Pipecat's default, the second LiveKit's."""
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


class Scene:
    """The simulator, with the scripted model behind it, and a folder for each contender."""

    def __init__(self, folder: Path, settings: Settings, model_url: str) -> None:
        self._folder = folder
        self._settings = settings
        self._model = f"openai:{model_url}#scripted"

    async def call(self, contender: Contender, python: Path, steps: Sequence[Mapping[str, Any]]) -> Report:
        """Has the conversation in a new simulator. Raises `Crashed`."""
        folder = self._folder / re.sub(r"\W+", "-", contender.name)
        folder.mkdir()
        with ExitStack() as stack:
            simulating = run_simulator("gemini-live", "--tls-dir", "tls", "--model", self._model, folder=folder)
            # The processes may ask the model while they start, so they are started beside this event loop.
            simulator = await asyncio.to_thread(simulating.__enter__)
            stack.push(simulating.__exit__)
            env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", **_trust(simulator)}
            env["ANTIPHON_MODELS_DIR"] = str(self._settings.models_dir)
            url = f"https://localhost:{simulator.port}"
            orders = folder / "orders"
            if contender.name == OURS:
                serving = serve(folder, self._write_settings(url), orders=orders, tool_s=TOOL_S, env=env)
                url, _ = await asyncio.to_thread(serving.__enter__)
                stack.push(serving.__exit__)
            order = {
                "url": url,
                "control_url": simulator.control_url,
                "models": MODELS,
                "greeting": GREETING,
                "tool_s": TOOL_S,
                "steps": steps,
                "orders": str(orders),
                "folder": str(folder),
            }
            return await _run(python, contender.module, order, env, folder / "contender.log")

    def _write_settings(self, url: str) -> str:
        return "\n".join(
            (
                f'[assistant]\ngreeting = "{GREETING}"',
                f'[model]\ntext = "{self._model}"\nvoice = "gemini-live:{url}#{MODELS[0]}"',
            )
        )


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

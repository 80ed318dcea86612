"""The whole server in its own process, with a voice model scripted by the test before each call."""

import asyncio
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final

from antiphon.continuity import connection
from antiphon.models.live import LiveContext, ModelFactory
from antiphon.models.text_live import TextLiveModel
from antiphon.serve import run_server
from tests.fakes.scripted_live import PROFILE, WAITING, ScriptedLive, Step
from tests.wire.served import Plan
from tests.wire.served_child import main

CONNECT_DEADLINE_S: Final = 4.0
"""How long a model of this server may take to connect."""


@dataclass(frozen=True)
class Models:
    """What the models of the next calls do."""

    script: Sequence[Step] = ()
    waits: bool = False
    """Whether the voice model waits to be asked for an answer. It is read once, when the server starts."""
    latency_ms: int = 0
    voice_connect_s: float = 0.0
    text_connect_s: float = 0.0

    def write(self, folder: Path) -> None:
        (folder / "models.pickle").write_bytes(pickle.dumps(self))


def read_models(folder: Path) -> Models:
    models: Models = pickle.loads((folder / "models.pickle").read_bytes())
    return models


async def run(plan: Plan) -> None:
    folder = plan.settings.project_dir
    connection.CONNECT_DEADLINE_S = CONNECT_DEADLINE_S  # type: ignore[misc]
    connect_text = TextLiveModel.connect

    async def connect_slowly(self: TextLiveModel, context: LiveContext, resume: str | None = None) -> None:
        delay_s = read_models(folder).text_connect_s
        await (asyncio.Event().wait() if delay_s == inf else asyncio.sleep(delay_s))
        await connect_text(self, context, resume)

    TextLiveModel.connect = connect_slowly  # type: ignore[method-assign]

    profile = WAITING if read_models(folder).waits else PROFILE

    def make_voice() -> ScriptedLive:
        models = read_models(folder)
        return ScriptedLive(
            models.script, profile=profile, connect_s=models.voice_connect_s, latency_ms=models.latency_ms
        )

    await run_server(
        plan.settings,
        port=0,
        announce=lambda line: print(line, flush=True),
        voice_model=ModelFactory(profile, make_voice),
    )


if __name__ == "__main__":
    main(run)

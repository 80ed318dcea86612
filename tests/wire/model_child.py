"""The whole server in its own process, with one of many models behind it, and the model's server beside it."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from websockets.asyncio.server import ServerConnection

from antiphon.models.live import ModelFactory
from antiphon.serve import run_server
from tests.fakes.gardener import PHRASES, GardenerModel, reply
from tests.fakes.gemini_model import ConversingServer
from tests.fakes.gemini_server import certificates
from tests.fakes.realtime_server import RealtimeServer
from tests.fakes.voice import FakeEngines, Tones, Vocabulary
from tests.wire.served import Plan
from tests.wire.served_child import main

KIND_FILE: Final = "kind"
SAID_FILE: Final = "said"


class Kind(StrEnum):
    """Which model is behind the server."""

    CASCADE = "cascade"
    GEMINI_38 = "gemini-3.8-live"
    GEMINI_31 = "gemini-3.1-flash-live-preview"
    OPENAI = "gpt-realtime-2"
    AZURE = "my-deployment"


class SaidWords:
    """What the user says in the next call, as the test has written it down."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / SAID_FILE

    def __iter__(self) -> Iterator[str]:
        return iter(self._path.read_text().splitlines() if self._path.exists() else [])


class Realtime(RealtimeServer):
    """A server whose every connection hears the words of the next call."""

    def __init__(self, said: SaidWords) -> None:
        super().__init__(reply)
        self._said = said

    async def _serve(self, connection: ServerConnection) -> None:
        self.hears = deque(self._said)
        await super()._serve(connection)


def vocabulary() -> Vocabulary:
    """The words of all phrases have the same sound in the test and in the server."""
    words = Vocabulary()
    for phrase in PHRASES:
        words.say(phrase)
    return words


def cascade() -> ModelFactory:
    engines = FakeEngines()
    for phrase in PHRASES:
        engines.words.say(phrase)
    return engines.factory(GardenerModel(), Tones())


async def run(plan: Plan) -> None:
    folder = plan.settings.project_dir
    kind, said = Kind((folder / KIND_FILE).read_text()), SaidWords(folder)
    voice_model, name = None, "none"
    async with AsyncExitStack() as stack:
        match kind:
            case Kind.CASCADE:
                voice_model = cascade()
            case Kind.OPENAI:
                realtime = await stack.enter_async_context(Realtime(said))
                name = f"openai-realtime:{realtime.url}#{kind}"
            case Kind.AZURE:
                realtime = await stack.enter_async_context(Realtime(said))
                name = f"azure-realtime:{realtime.origin}#{kind}"
            case Kind.GEMINI_38 | Kind.GEMINI_31:
                server = ConversingServer(
                    reply=reply, hears=said, transcribes="late", waits_for_tools=kind is Kind.GEMINI_31
                )
                await stack.enter_async_context(server)
                os.environ["SSL_CERT_FILE"] = str(certificates().ca)
                name = f"gemini-live:{server.url}#{kind}"
        # On Azure, nobody transcribes unless the deployment is named.
        model = plan.settings.model.model_copy(update={"voice": name, "transcription": "my-transcriber"})
        settings = replace(plan.settings, model=model)
        await run_server(
            settings,
            port=0,
            announce=lambda line: print(line, flush=True) if "ws://" in line else None,
            voice_model=voice_model,
        )


if __name__ == "__main__":
    main(run)

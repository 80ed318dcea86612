"""The whole server in its own process, with a provider's server beside it that has the trouble the test asks for."""

import os
from contextlib import AsyncExitStack
from dataclasses import replace
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

from antiphon.models.providers import gemini_connect, openai_realtime
from antiphon.serve import run_server
from tests.fakes.gemini_server import Client, Closing, GeminiServer, be_silent, certificates
from tests.fakes.realtime_server import RealtimeServer, ServedSession
from tests.wire.served import Plan
from tests.wire.served_child import main

VENDOR_FILE: Final = "vendor"
TROUBLE_FILE: Final = "trouble"
PATIENCE_S: Final = 1.0
"""How long a provider of this server may take to set a session up."""


class Vendor(StrEnum):
    GEMINI = "gemini"
    OPENAI = "openai"
    NO_KEY = "nobody's"
    """Gemini itself, without a key. It is not asked."""
    NOWHERE = "nowhere"
    """A server that is not running."""


class Trouble(StrEnum):
    NONE = "none"
    WRONG_KEY = "wrong key"
    UNKNOWN_MODEL = "unknown model"
    QUOTA = "quota"
    SILENCE = "silence"


UPGRADES: Final = {
    Trouble.WRONG_KEY: (HTTPStatus.UNAUTHORIZED, '{"error": {"message": "Incorrect API key provided."}}'),
    Trouble.UNKNOWN_MODEL: (HTTPStatus.NOT_FOUND, '{"error": {"message": "The model does not exist."}}'),
    Trouble.QUOTA: (HTTPStatus.TOO_MANY_REQUESTS, '{"error": {"message": "Rate limit reached."}}'),
}
CLOSES: Final = {
    Trouble.WRONG_KEY: (1007, "API key not valid. Please pass a valid API key."),
    Trouble.UNKNOWN_MODEL: (1008, "models/m is not found for API version v1beta, or is not supported for bidiGener"),
    Trouble.QUOTA: (1011, "You exceeded your current quota, please check your plan and billing details."),
}


def read_trouble(folder: Path) -> Trouble:
    return Trouble((folder / TROUBLE_FILE).read_text())


class TroubledRealtime(RealtimeServer):
    def __init__(self, folder: Path) -> None:
        super().__init__(greets=self._greet)
        self._folder = folder

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        self.refuses_upgrade = UPGRADES.get(read_trouble(self._folder))
        return super()._admit(connection, request)

    async def _greet(self, session: ServedSession) -> None:
        if read_trouble(self._folder) is not Trouble.SILENCE:
            await session.greet()


class TroubledGemini(GeminiServer):
    def __init__(self, folder: Path) -> None:
        super().__init__(self._play)
        self._folder = folder

    async def _play(self, client: Client) -> None:
        trouble = read_trouble(self._folder)
        if trouble in CLOSES:
            await client.receive()
            raise Closing(*CLOSES[trouble])
        if trouble is Trouble.SILENCE:
            while True:
                await client.receive()
        await be_silent(client)


async def run(plan: Plan) -> None:
    folder = plan.settings.project_dir
    gemini_connect.SETUP_S = openai_realtime.CONNECT_WITHIN_S = PATIENCE_S  # type: ignore[misc]
    server: Any = None
    async with AsyncExitStack() as stack:
        match Vendor((folder / VENDOR_FILE).read_text()):
            case Vendor.GEMINI:
                server = await stack.enter_async_context(TroubledGemini(folder))
                os.environ |= {"SSL_CERT_FILE": str(certificates().ca), "GEMINI_API_KEY": "secret-key"}
                voice = f"gemini-live:{server.url}#m"
            case Vendor.OPENAI:
                server = await stack.enter_async_context(TroubledRealtime(folder))
                os.environ["OPENAI_API_KEY"] = "secret-key"
                voice = f"openai-realtime:{server.url}#m"
            case Vendor.NO_KEY:
                os.environ.pop("GEMINI_API_KEY", None)
                voice = "gemini-live:m"
            case Vendor.NOWHERE:
                voice = "openai-realtime:http://127.0.0.1:9/v1#m"
        await run_server(
            replace(plan.settings, model=plan.settings.model.model_copy(update={"voice": voice})),
            port=0,
            announce=lambda line: print(line, flush=True) if "ws://" in line else None,
        )


if __name__ == "__main__":
    main(run)

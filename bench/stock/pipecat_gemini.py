# mypy: ignore-errors
"""`python -m bench.stock.pipecat_gemini ORDER`: Pipecat's Gemini Live service holds a turn with our endpoint."""

import asyncio

from google.genai.types import HttpOptions
from pipecat.services.google.gemini_live.llm import GeminiLiveLLMService

from bench.stock.pipecat_pipeline import hold
from bench.stock.turn import INSTRUCTIONS, Turn


async def main() -> None:
    turn = Turn("pipecat-ai")
    service = GeminiLiveLLMService(
        api_key="local",
        system_instruction=INSTRUCTIONS,
        # Its usual version of the API.
        http_options=HttpOptions(base_url=turn.url, api_version="v1beta"),
    )
    turn.is_connected = lambda: service._ready_for_realtime_input
    await hold(turn, service)


if __name__ == "__main__":
    asyncio.run(main())

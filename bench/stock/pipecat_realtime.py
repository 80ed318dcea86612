# mypy: ignore-errors
"""`python -m bench.stock.pipecat_realtime ORDER`: Pipecat's OpenAI Realtime service holds a turn with our endpoint."""

import asyncio

from pipecat.services.openai.realtime import events
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService

from bench.stock.pipecat_pipeline import hold
from bench.stock.turn import INSTRUCTIONS, Turn


async def main() -> None:
    turn = Turn("pipecat-ai")
    transcription = events.AudioInput(transcription=events.InputAudioTranscription())
    properties = events.SessionProperties(audio=events.AudioConfiguration(input=transcription))
    settings = OpenAIRealtimeLLMService.Settings(system_instruction=INSTRUCTIONS, session_properties=properties)
    service = OpenAIRealtimeLLMService(api_key="local", base_url=turn.url, settings=settings)
    turn.is_connected = lambda: service._api_session_ready
    await hold(turn, service)


if __name__ == "__main__":
    asyncio.run(main())

# mypy: ignore-errors
"""`python -m bench.stock.livekit_realtime ORDER`: LiveKit's OpenAI plugin holds a turn with our endpoint.

It is an `AgentSession` without a room: its microphone and its loudspeaker are in memory.
"""

import asyncio
import json
import logging

from livekit import rtc
from livekit.agents import Agent, AgentSession, function_tool
from livekit.agents.voice.io import AudioInput, AudioOutput, AudioOutputCapabilities
from livekit.plugins import openai

from bench.stock.turn import INSTRUCTIONS, MICROPHONE_HZ, Turn

SPEAKER_HZ = 24_000


class Microphone(AudioInput):
    def __init__(self) -> None:
        super().__init__(label="memory")
        self._frames = asyncio.Queue()

    async def __anext__(self) -> rtc.AudioFrame:
        return await self._frames.get()

    async def hear(self, pcm: bytes) -> None:
        self._frames.put_nowait(rtc.AudioFrame(pcm, MICROPHONE_HZ, 1, len(pcm) // 2))


class Loudspeaker(AudioOutput):
    """Plays in no time, which is said at the end of each segment."""

    def __init__(self, turn: Turn) -> None:
        super().__init__(label="memory", capabilities=AudioOutputCapabilities(pause=False), sample_rate=SPEAKER_HZ)
        self._turn = turn
        self._played_s = 0.0

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        if self._played_s == 0.0:
            self.on_playback_started(created_at=asyncio.get_running_loop().time())
        self._played_s += frame.duration
        self._turn.note_audio(bytes(frame.data), frame.sample_rate)

    def flush(self) -> None:
        super().flush()
        self._finish(interrupted=False)

    def clear_buffer(self) -> None:
        self._finish(interrupted=True)

    def _finish(self, *, interrupted: bool) -> None:
        if self._played_s > 0.0:
            played_s, self._played_s = self._played_s, 0.0
            self.on_playback_finished(playback_position=played_s, interrupted=interrupted)


class Assistant(Agent):
    def __init__(self, turn: Turn) -> None:
        super().__init__(instructions=INSTRUCTIONS)
        self._turn = turn

    @function_tool
    async def get_weather(self, city: str) -> str:
        """Returns the weather in a city.

        Args:
            city: The name of the city.
        """
        # LiveKit passes other results on as `str` makes them.
        return json.dumps(self._turn.note_call({"city": city}))


async def main() -> None:
    turn = Turn("livekit-plugins-openai")
    model = openai.realtime.RealtimeModel(base_url=turn.url, api_key="local")
    session = AgentSession(llm=model)
    microphone = Microphone()
    session.input.audio, session.output.audio = microphone, Loudspeaker(turn)

    @session.on("user_input_transcribed")
    def on_user_input_transcribed(event) -> None:
        if event.is_final:
            turn.heard += event.transcript + " "

    @session.on("conversation_item_added")
    def on_conversation_item_added(event) -> None:
        if getattr(event.item, "role", "") == "assistant":
            turn.answer += event.item.text_content or ""

    @session.on("error")
    def on_error(event) -> None:
        turn.problems.append(str(event.error))

    await session.start(Assistant(turn), record=False)
    received = set()
    session.current_agent.realtime_llm_session.on("openai_server_event_received", lambda e: received.add(e["type"]))
    turn.is_connected = lambda: "session.updated" in received
    await turn.speak(microphone.hear)
    await session.aclose()
    turn.report()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(main())

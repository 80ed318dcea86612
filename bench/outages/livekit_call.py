# mypy: ignore-errors
"""`python -m bench.outages.livekit_call ORDER`: LiveKit's Gemini plugin in an `AgentSession` without a room.

It has the adapter that LiveKit recommends for failures of a realtime model. The microphone and the loudspeaker are in
memory, and the loudspeaker reports in real time what it has played.
"""

import asyncio
import json
import logging

from google.genai.types import HttpOptions
from livekit import rtc
from livekit.agents import Agent, AgentSession, function_tool
from livekit.agents.llm import RealtimeModelFallbackAdapter
from livekit.agents.voice.io import AudioInput, AudioOutput, AudioOutputCapabilities
from livekit.plugins import google

from bench.outages.call import INSTRUCTIONS, MICROPHONE_HZ, Call

SPEAKER_HZ = 24_000


class Microphone(AudioInput):
    def __init__(self) -> None:
        super().__init__(label="memory")
        self._frames = asyncio.Queue()

    async def __anext__(self) -> rtc.AudioFrame:
        return await self._frames.get()

    async def hear(self, pcm: bytes) -> None:
        self._frames.put_nowait(rtc.AudioFrame(pcm, MICROPHONE_HZ, 1, len(pcm) // 2))


class Output(AudioOutput):
    def __init__(self, call: Call) -> None:
        super().__init__(label="memory", capabilities=AudioOutputCapabilities(pause=False), sample_rate=SPEAKER_HZ)
        self._speaker = call.speaker
        self._segment_s = 0.0
        self._finishing = None

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        if self._finishing is not None:
            await self._finishing
        if self._segment_s == 0.0:
            self.on_playback_started(created_at=asyncio.get_running_loop().time())
        self._segment_s += frame.duration
        self._speaker.play(bytes(frame.data), frame.sample_rate)

    def flush(self) -> None:
        super().flush()
        if self._segment_s > 0.0 and self._finishing is None:
            self._finishing = asyncio.create_task(self._finish_when_played())

    def clear_buffer(self) -> None:
        if self._segment_s == 0.0:
            return
        if self._finishing is not None:
            self._finishing.cancel()
        self._finish(self._segment_s - self._speaker.clear(), interrupted=True)

    async def _finish_when_played(self) -> None:
        # The event loop's clock and that of the loudspeaker are the same.
        await asyncio.sleep(max(0.0, self._speaker.ends_s - asyncio.get_running_loop().time()))
        self._finish(self._segment_s, interrupted=False)

    def _finish(self, played_s: float, *, interrupted: bool) -> None:
        self._segment_s, self._finishing = 0.0, None
        self.on_playback_finished(playback_position=max(0.0, played_s), interrupted=interrupted)


class Assistant(Agent):
    def __init__(self, call: Call) -> None:
        super().__init__(instructions=INSTRUCTIONS)
        self._call = call

    @function_tool
    async def order_pizza(self, topping: str) -> str:
        """Orders a pizza.

        Args:
            topping: What is on the pizza.
        """
        return json.dumps(await self._call.place_order(topping))


async def main() -> None:
    call = Call.from_order()
    models = [
        google.realtime.RealtimeModel(
            model=model, api_key="local", http_options=HttpOptions(base_url=call.url, api_version="v1beta")
        )
        for model in call.models
    ]
    session = AgentSession(llm=RealtimeModelFallbackAdapter(models))
    microphone = Microphone()
    session.input.audio, session.output.audio = microphone, Output(call)

    @session.on("error")
    def on_error(event) -> None:
        call.problems.append(str(event.error)[:300])

    @session.on("close")
    def on_close(event) -> None:
        call.problems.append(f"The session was closed: {event.reason}")

    await session.start(Assistant(call), record=False)
    session.generate_reply(instructions=f"Say exactly these words: {call.greeting}")
    await call.hold(microphone.hear)
    call.report("livekit-agents", "livekit-plugins-google", "google-genai")
    await session.aclose()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(main())

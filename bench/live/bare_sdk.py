"""`python -m bench.live.bare_sdk`: sessions of the google-genai SDK alone, in the place of a server.

It receives what the simulator says and sends what a microphone records, and does nothing else. What another contender
takes longer than this is its own.
"""

import asyncio
from contextlib import AsyncExitStack

from google import genai
from google.genai import types
from google.genai.live import AsyncSession

from bench.live.streaming import HZ, Arrivals, Send, read_order, stream_all


async def receive(session: AsyncSession, arrivals: Arrivals) -> None:
    while True:
        async for message in session.receive():
            content = message.server_content
            if content is None:
                continue
            if content.input_transcription is not None:
                arrivals.note_text("transcript", content.input_transcription.text or "")
            if content.output_transcription is not None:
                arrivals.note_text("text", content.output_transcription.text or "")
            if content.model_turn is not None:
                for part in content.model_turn.parts or ():
                    if part.inline_data is not None:
                        arrivals.note_audio(part.inline_data.data or b"")


def sender(session: AsyncSession) -> Send:
    async def send(pcm: bytes) -> None:
        await session.send_realtime_input(audio=types.Blob(data=pcm, mime_type=f"audio/pcm;rate={HZ}"))

    return send


async def main() -> None:
    order = await read_order()
    options = types.HttpOptions(base_url=str(order["url"]), async_client_args={"ping_interval": None, "proxy": None})
    client = genai.Client(api_key="local", http_options=options)
    config = types.LiveConnectConfig(
        response_modalities=[types.Modality.AUDIO],
        input_audio_transcription=types.AudioTranscriptionConfig(),
        output_audio_transcription=types.AudioTranscriptionConfig(),
    )
    arrivals = Arrivals()
    async with AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(client.aio.live.connect(model=str(order["model"]), config=config))
            for _ in range(int(str(order["sessions"])))
        ]
        receiving = [asyncio.create_task(receive(session, arrivals)) for session in sessions]
        await stream_all([sender(session) for session in sessions], float(str(order["ramp_s"])), arrivals)
        for task in receiving:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(main())

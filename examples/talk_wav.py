"""Speaks a recording to a server as a microphone would, and saves the spoken answer.

The recording is a WAV file with 16,000 Hz, one channel and 16 bits. Start a server with `antiphon serve`, then run:

    python examples/talk_wav.py question.wav answer.wav
"""

import argparse
import asyncio
import sys
from pathlib import Path

from antiphon.client import ClientError, connect


async def main() -> None:
    parser = argparse.ArgumentParser(description="Speak a recording to an Antiphon server.")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--token")
    parser.add_argument("question", type=Path)
    parser.add_argument("answer", type=Path)
    given = parser.parse_args()
    async with connect(given.url, token=given.token) as conversation:
        answer = await conversation.speak(given.question)
    given.answer.write_bytes(answer.wav)
    print(f"You: {answer.question}")
    print(f"Antiphon: {answer.text}")
    if answer.metrics is not None:
        print(f"The first sound came {answer.metrics.total_ms:.0f} ms after the end of your speech.")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ClientError as error:
        sys.exit(f"talk_wav.py: {error}")

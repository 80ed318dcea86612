"""One spoken turn of a stock client: the microphone that it hears, its own tool, and what came back.

It needs only the standard library, since it runs in the peers' environment. A client program is started with one
argument, a JSON object: the address of the server, the file with the speech, when its last sound ends, and the file for
the answer. It prints what it knows at the end as one line of JSON.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path

MICROPHONE_HZ = 16_000
FRAME_MS = 20
FRAME_BYTES = 2 * MICROPHONE_HZ * FRAME_MS // 1000
PATIENCE_S = 45.0
QUIET_S = 2.0
"""An answer has ended if no audio has come for this long."""

TOOL = "get_weather"
DESCRIPTION = "Returns the weather in a city."
PROPERTIES = {"city": {"type": "string", "description": "The name of the city."}}
INSTRUCTIONS = "You are a weather assistant. Answer in one short sentence."


def measure_weather(city: str) -> dict[str, object]:
    """The client's own function. The number depends on the city, so that nobody can know it without a call."""
    return {"city": city, "celsius": 10 + sum(map(ord, city.lower())) % 20}


class Turn:
    def __init__(self, package: str) -> None:
        order = json.loads(sys.argv[1])
        self.url: str = order["url"]
        self.package = package
        self.is_connected: Callable[[], bool] = lambda: False
        """Whether the client has a session that is set up."""
        self.heard = ""
        self.calls: list[dict[str, object]] = []
        self.answer = ""
        self.problems: list[str] = []
        self._speech = Path(order["speech"]).read_bytes()
        self._ends_at_ms = order["ends_at_ms"]
        self._answer_path = Path(order["answer"])
        self._pcm = bytearray()
        self._hz = 0
        self._spoken_s: float | None = None
        """When the last sound of the speech was sent."""
        self._first_audio_s: float | None = None
        self._was_connected = False
        self._last_audio_s = 0.0

    def note_call(self, arguments: dict[str, object]) -> dict[str, object]:
        """Runs the tool."""
        self.calls.append(arguments)
        return measure_weather(str(arguments.get("city", "")))

    def note_audio(self, pcm: bytes, hz: int) -> None:
        """Takes a piece of the answer. What comes before the user has spoken is a greeting and is not kept."""
        now_s = asyncio.get_running_loop().time()
        self._last_audio_s = now_s
        if self._spoken_s is None:
            return
        if self._first_audio_s is None:
            self._first_audio_s = now_s
        self._pcm += pcm
        self._hz = hz

    async def speak(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Sends silence until a greeting is over, then the speech, then silence until the answer has ended."""
        loop = asyncio.get_running_loop()
        begin_s, frame, at = loop.time(), 0, -1
        while not self._is_over(loop.time(), begin_s):
            await asyncio.sleep(begin_s + frame * FRAME_MS / 1000 - loop.time())
            if at < 0 and self.is_connected() and loop.time() > max(begin_s, self._last_audio_s) + QUIET_S:
                at = 0
                self._was_connected = True
            pcm = self._speech[at : at + FRAME_BYTES] if at >= 0 else b""
            await send(pcm.ljust(FRAME_BYTES, b"\0"))
            frame += 1
            if at >= 0:
                at += FRAME_BYTES
                if self._spoken_s is None and at / FRAME_BYTES * FRAME_MS >= self._ends_at_ms:
                    self._spoken_s = loop.time()

    def _is_over(self, now_s: float, begin_s: float) -> bool:
        if now_s > begin_s + PATIENCE_S:
            self.problems.append(f"The turn was not over after {PATIENCE_S:.0f} s.")
            return True
        if self.problems:
            return True
        return bool(self.calls) and self._first_audio_s is not None and now_s > self._last_audio_s + QUIET_S

    def report(self) -> None:
        self._answer_path.write_bytes(self._pcm)
        first_ms = None
        if self._first_audio_s is not None and self._spoken_s is not None:
            first_ms = (self._first_audio_s - self._spoken_s) * 1000
        found = {
            "version": version(self.package),
            "connected": self._was_connected,
            "heard": self.heard.strip(),
            "calls": self.calls,
            "answer": self.answer.strip(),
            "hz": self._hz,
            "first_audio_ms": first_ms,
            "problems": self.problems,
        }
        print(json.dumps(found), flush=True)

"""One call of a contender: the person who asks the questions of the script, and the loudspeaker that plays the answers.

It needs only the standard library, since it also runs in the peers' environments. A contender is started with one
argument, a JSON object (`Call.from_order`). It prints what it knows at the end as one line of JSON.
"""

import asyncio
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

MICROPHONE_HZ = 16_000
FRAME_MS = 20
FRAME_BYTES = 2 * MICROPHONE_HZ * FRAME_MS // 1000
PAUSE_S = 1.0
"""How long the person waits after the fault, if there is one, before the next question."""
QUIET_S = 3.5
"""An answer has ended if nothing was played for this long."""
PATIENCE_S = 15.0
"""How long the person waits for an answer before the next question."""
OPENING_S = 20.0
"""How long the greeting may take."""

CONTROL_S = 5.0

TOOL = "order_pizza"
DESCRIPTION = "Orders a pizza."
PROPERTIES = {"topping": {"type": "string", "description": "What is on the pizza."}}
INSTRUCTIONS = "You take orders for pizza, and answer questions. Answer in a few short sentences."

Hear = Callable[[bytes], Awaitable[None]]


class Loudspeaker:
    """Plays what arrives, as soon as it arrives or after what is still being played."""

    def __init__(self) -> None:
        self.pieces: list[tuple[float, bytes, int]] = []
        """When each piece begins to be heard, its audio and its rate."""
        self.ends_s = 0.0

    def play(self, pcm: bytes, hz: int) -> None:
        begins_s = max(time.monotonic(), self.ends_s)
        self.pieces.append((begins_s, pcm, hz))
        self.ends_s = begins_s + len(pcm) / 2 / hz

    def clear(self) -> float:
        """Drops what has not been heard, as after an interruption, and returns how many seconds that was."""
        now_s = time.monotonic()
        dropped_s = max(0.0, self.ends_s - now_s)
        heard = []
        for begins_s, pcm, hz in self.pieces:
            kept = max(0, int((now_s - begins_s) * hz)) * 2
            if kept:
                heard.append((begins_s, pcm[:kept], hz))
        self.pieces = heard
        self.ends_s = min(self.ends_s, now_s)
        return dropped_s


class Call:
    def __init__(self, order: dict[str, Any]) -> None:
        self.url: str = order["url"]
        self.models: list[str] = order["models"]
        """The models that it may use, best first."""
        self.greeting: str = order["greeting"]
        self.tool_s: float = order["tool_s"]
        self._control_url: str = order["control_url"]
        self._steps = [(step, Path(step["speech"]).read_bytes()) for step in order["steps"]]
        self._orders = Path(order["orders"])
        self._folder = Path(order["folder"])
        self.speaker = Loudspeaker()
        self.problems: list[str] = []
        self._speech = b""
        self._turns: list[dict[str, Any]] = []

    @classmethod
    def from_order(cls) -> "Call":
        return cls(json.loads(sys.argv[1]))

    async def place_order(self, topping: str) -> dict[str, object]:
        """Runs the tool, which has a side effect that can be counted."""
        with self._orders.open("a") as file:
            file.write(f"{topping}\n")
        await asyncio.sleep(self.tool_s)
        return {"ordered": topping}

    async def hold(self, hear: Hear) -> None:
        """Has the whole conversation with a contender that has been started and that hears with this function."""
        microphone = asyncio.create_task(self._stream(hear))
        try:
            await self._listen(asked_s=time.monotonic(), patience_s=OPENING_S)
            self._keep("greeting", asked_s=None)
            for step, speech in self._steps:
                await self._ask(step, speech)
        finally:
            microphone.cancel()
            await asyncio.gather(microphone, return_exceptions=True)

    def report(self, *packages: str) -> None:
        versions = {package: version(package) for package in packages}
        print(json.dumps({"versions": versions, "turns": self._turns, "problems": self.problems}), flush=True)

    async def _ask(self, step: dict[str, Any], speech: bytes) -> None:
        await asyncio.to_thread(self._arm, step["faults"])
        await asyncio.sleep(PAUSE_S)
        self._speech = speech
        asked_s = time.monotonic() + step["ends_at_ms"] / 1000
        await self._listen(asked_s, PATIENCE_S)
        self._keep(step["name"], asked_s)

    async def _listen(self, asked_s: float, patience_s: float) -> None:
        """Waits until an answer has been heard, or for as long as the person is patient."""
        while True:
            await asyncio.sleep(FRAME_MS / 1000)
            now_s = time.monotonic()
            answered = any(begins_s > asked_s for begins_s, _, _ in self.speaker.pieces)
            if answered and now_s > self.speaker.ends_s + QUIET_S:
                return
            if not answered and now_s > asked_s + patience_s:
                return

    async def _stream(self, hear: Hear) -> None:
        begin_s, frame = time.monotonic(), 0
        while True:
            # By the clock, since sleeps are always a little too long.
            await asyncio.sleep(max(0.0, begin_s + frame * FRAME_MS / 1000 - time.monotonic()))
            pcm, self._speech = self._speech[:FRAME_BYTES], self._speech[FRAME_BYTES:]
            frame += 1
            try:
                await hear(pcm.ljust(FRAME_BYTES, b"\0"))
            except Exception as error:  # A contender that has given up does not end the conversation.
                self._note(f"{type(error).__name__}: {error}")

    def _note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def _keep(self, name: str, asked_s: float | None) -> None:
        """Stores what was heard since the last question."""
        pieces, self.speaker.pieces = self.speaker.pieces, []
        first_s = pieces[0][0] if pieces else 0.0
        path = self._folder / f"{len(self._turns)}.pcm"
        path.write_bytes(b"".join(pcm for _, pcm, _ in pieces))
        placed = [
            {"at_s": begins_s - (asked_s or first_s), "bytes": len(pcm), "hz": hz} for begins_s, pcm, hz in pieces
        ]
        ran = self._orders.read_text().split() if self._orders.exists() else []
        self._turns.append({"name": name, "audio": str(path), "pieces": placed, "orders": ran})

    def _arm(self, faults: list[dict[str, Any]]) -> None:
        """Replaces the faults of the simulator by these, and closes connections that are silent since the last one."""
        self._control("DELETE", "/faults")
        for each in self._control("GET", "/sessions")["connections"]:
            if each["is_silent"]:
                self._control("POST", "/faults", {"when": "now", "do": "close", "connection": each["connection"]})
        for fault in faults:
            try:
                self._control("POST", "/faults", fault)
            except urllib.error.HTTPError as error:
                # There is no connection on which it could happen.
                self._note(error.read().decode())

    def _control(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._control_url}{path}", data, method=method)
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=CONTROL_S) as response:
            return json.loads(response.read() or "null")

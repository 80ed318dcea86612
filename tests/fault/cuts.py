"""Clients whose connection is cut in the middle of an answer, and what they have heard of it at the end."""

import asyncio
import base64
import io
import wave
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from tests.fakes.spelling import read
from tests.fakes.voice import Vocabulary
from tests.fault.servers import LOOK_FIRST, PATIENCE_S, QUESTION_WORDS, Client, Endpoint, Message, recital

FRAME_S: Final = 0.02
SILENCE: Final = bytes(640)


class Listener(Client):
    """A client that plays audio in real time, and reports when it has played it."""

    def __init__(self) -> None:
        super().__init__()
        self.speech: dict[int, bytes] = {}
        """The speech received for each turn, as PCM16 at the wire rate."""
        self._played_at_s = 0.0
        self._made_turn = 0
        self._vocabulary = Vocabulary()
        self._vocabulary.say(" ".join(QUESTION_WORDS))

    @property
    def heard(self) -> list[str]:
        """The text spoken in each turn, decoded from the audio."""
        return [" ".join(read(pcm).split()) for pcm in self.speech.values()]

    async def open(self, served: Endpoint) -> "Listener":
        await self.connect(served, mode="voice")
        await self.send("start_listening")
        await self.until("state", state="listening")
        return self

    async def speak(self, question: str) -> None:
        await self.play_to(bytes(640 * 10) + self._vocabulary.say(question))

    async def play_to(self, pcm: bytes) -> None:
        """Speaks, and keeps the microphone open until the words are recognized."""
        assert self._socket is not None
        frames = [pcm[at : at + 640] for at in range(0, len(pcm), 640)]
        hearing = asyncio.create_task(self.until("transcript", is_final=True))
        try:
            while not hearing.done():
                frame = frames.pop(0) if frames else SILENCE
                await self._socket.send(b"\0" + frame.ljust(640, b"\0"))
                await asyncio.sleep(FRAME_S)
            await hearing
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    async def listen(self, seconds: float, answers: int) -> None:
        """Receives and plays for this long, or until there is nothing more to hear."""
        try:
            async with asyncio.timeout(seconds):
                await self.listen_out(answers)
        except TimeoutError:
            pass

    async def listen_out(self, answers: int) -> None:
        """Waits until this many answers are received and heard, and the server listens again."""
        loop = asyncio.get_running_loop()
        while not (self.state == "listening" and not self.waiting and len(self.every("response")) >= answers):
            is_made = self.state == "speaking" and self._made_turn in self.speech
            left_s = max(0.0, self._played_at_s - loop.time()) if is_made else PATIENCE_S
            try:
                async with asyncio.timeout(left_s):
                    await self.hear()
            except TimeoutError:
                if not is_made:
                    raise
                await self.send("playback_done", turn=self._made_turn)
                await self.until("state")

    def _show(self, message: Message) -> None:
        if message["type"] == "audio":
            with wave.open(io.BytesIO(base64.b64decode(message["data"]))) as sound:
                pcm = sound.readframes(sound.getnframes())
            self.speech[message["turn"]] = self.speech.get(message["turn"], b"") + pcm
            now_s = asyncio.get_running_loop().time()
            self._played_at_s = max(now_s, self._played_at_s) + len(pcm) / 44_100
        elif message["type"] == "generation_complete":
            self._made_turn = message["turn"]
        super()._show(message)


async def cut_and_come_back(rng: Random, places: Sequence[Endpoint]) -> dict[str, Any]:
    """Cuts one answer at a random moment; its listener reconnects to any of the servers."""
    spoken, again = rng.random() < 0.4, rng.random() < 0.3
    question = f"{LOOK_FIRST if rng.random() < 0.3 else ''}recite {rng.randint(2, 20)}"
    listener = await Listener().open(rng.choice(places))
    moments = []
    if spoken:
        await listener.speak(question)
    else:
        await listener.send("text_message", text=question)
    for _ in range(1 + again):
        moments.append(round(rng.uniform(0.0, 2.5), 3))
        await listener.listen(moments[-1], answers=1)
        listener.cut()
        await asyncio.sleep(rng.uniform(0.0, 0.6))
        await listener.resume(rng.choice(places))
        assert listener.session["resumed"] is True
        # A message typed as the connection broke may never have arrived.
        await listener.send("ping", t=1)
        await listener.until("pong")
        if ("user", question) not in listener.shown:
            await listener.send("text_message", text=question)
    await listener.listen_out(answers=1)
    await listener.send("text_message", text="recite 1")
    await listener.listen_out(answers=2)
    await listener.leave()
    return {
        "question": question,
        "spoken": spoken,
        "moments": moments,
        "shown": listener.shown,
        "responses": [message["text"] for message in listener.every("response")],
        "heard": listener.heard,
    }


def faults_of(outcome: dict[str, Any]) -> list[str]:
    """The faults of one answer: none if it was received and heard exactly once."""
    answer, last = recital(outcome["question"]), recital("recite 1")
    faults = []
    if outcome["responses"] != [answer, last]:
        faults.append(f"the responses are {outcome['responses']}")
    if outcome["heard"] != [" ".join(answer.split()), last.strip()]:
        faults.append(f"{outcome['heard']} was heard")
    wanted = [("user", outcome["question"]), ("assistant", answer), ("user", "recite 1"), ("assistant", last)]
    if outcome["shown"] != wanted:
        faults.append(f"{outcome['shown']} is shown")
    return [f"{fault} ({outcome['question']!r}, spoken: {outcome['spoken']}, {outcome['moments']})" for fault in faults]

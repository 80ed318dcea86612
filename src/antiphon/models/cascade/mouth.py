"""Says an answer while it is still being written: the first clause at once, sentences after it."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from antiphon.models.live import LiveEvent, OutputAudio, TurnComplete, TurnFailed
from antiphon.speech.base import Sound, SpeechError, Synthesizer
from antiphon.speech.clauses import Clauses
from antiphon.speech.spoken import speakable

MAX_AHEAD_S: Final = 8.0
"""So much more may be made than can have been played: whoever interrupts makes the rest worthless."""
MIN_PIECE_MS: Final = 200
"""Engines that stream send scraps; each would be a message of its own. The first is sent as it comes."""
CHARACTERS_PER_S: Final = 15.0
"""Of ordinary speech, for engines that do not say how long a text will take."""

Emit = Callable[[LiveEvent], None]


class Mouth:
    """What it is given is said in order, and events that were put behind words are told when those are said.

    Its task lives only while there is something to say.
    """

    def __init__(self, synthesizer: Synthesizer, usual_voice: str | None, emit: Emit) -> None:
        self._usual_voice = usual_voice
        self._voice, self._speed = usual_voice, 1.0
        self._synthesizer = synthesizer
        self._emit = emit
        self._clauses = Clauses()
        self._waiting: deque[str | LiveEvent] = deque()
        self._task: asyncio.Task[None] | None = None
        self._hushed: set[asyncio.Task[None]] = set()
        """Cancelled, and not yet done with letting go of the engine."""
        self._unsaid: list[str] = []
        """Words of the text that make no sound, such as code. They count as heard with the words after them."""
        self._playing_until_s = 0.0

    @property
    def is_audible(self) -> bool:
        """Whether a client that plays what it gets at once is still playing."""
        return asyncio.get_running_loop().time() < self._playing_until_s

    def choose(self, voice: str | None, speed: float) -> None:
        """From the next clause on; None is the usual voice."""
        self._voice, self._speed = voice or self._usual_voice, speed

    def say(self, text: str) -> None:
        self._waiting.extend(self._clauses.push(text))
        self._start()

    def pause(self) -> None:
        """What was given so far is whole: a tool runs now, or the answer ends."""
        self._waiting.extend(self._clauses.finish())
        self._start()

    def then(self, event: LiveEvent) -> None:
        """Tells the event when everything before it has been said."""
        self.pause()
        self._waiting.append(event)
        self._start()

    def hush(self) -> None:
        """Says nothing more of this answer. Only that it is over is still told."""
        is_over = any(isinstance(each, TurnComplete) for each in self._waiting)
        self._clauses = Clauses()
        self._waiting.clear()
        self._unsaid.clear()
        self._playing_until_s = 0.0
        if self._task is not None:
            self._task.cancel()
            self._hushed.add(self._task)
            self._task.add_done_callback(self._hushed.discard)
            self._task = None
        if is_over:
            self._emit(TurnComplete())

    async def close(self) -> None:
        self.hush()
        if self._hushed:
            await asyncio.wait(self._hushed)

    def _start(self) -> None:
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._waiting:
            # Left in its place while it is being said: what comes behind it is not over yet.
            each = self._waiting[0]
            if isinstance(each, str):
                await self._keep_pace()
                await self._try_to_speak(each)
            else:
                self._emit(each)
            self._waiting.popleft()

    async def _keep_pace(self) -> None:
        ahead_s = self._playing_until_s - asyncio.get_running_loop().time()
        if ahead_s > MAX_AHEAD_S:
            await asyncio.sleep(ahead_s - MAX_AHEAD_S)

    async def _try_to_speak(self, clause: str) -> None:
        try:
            await self._speak(clause)
        except SpeechError as error:
            # The text goes on: what cannot be said can still be read.
            self._emit(TurnFailed(str(error)))
            ends = [each for each in self._waiting if isinstance(each, TurnComplete)]
            self._waiting = deque([clause, *ends])

    async def _speak(self, clause: str) -> None:
        spoken, words = speakable(clause), [*self._unsaid, *clause.split()]
        self._unsaid = []
        expected_ms = len(spoken) / CHARACTERS_PER_S / self._speed * 1_000
        made_ms, told = 0.0, 0
        held = Sound(b"", None)
        async for sound in self._synthesizer.speak(spoken, voice=self._voice, speed=self._speed):
            if sound.left_ms is None:
                held = Sound(held.pcm + sound.pcm, None)
                if made_ms and self._ms(held.pcm) < MIN_PIECE_MS:
                    continue
                sound, held = held, Sound(b"", None)
            made_ms += self._ms(sound.pcm)
            whole_ms = max(expected_ms, made_ms + 1) if sound.left_ms is None else made_ms + sound.left_ms
            upto = round(len(words) * made_ms / whole_ms) if sound.left_ms != 0 else len(words)
            self._send(sound, " ".join(words[told:upto]))
            told = upto
        if held.pcm:
            self._send(Sound(held.pcm, 0), " ".join(words[told:]))
        else:
            self._unsaid = words[told:]

    def _send(self, sound: Sound, text: str) -> None:
        if not sound.pcm:
            return
        now_s = asyncio.get_running_loop().time()
        self._playing_until_s = max(now_s, self._playing_until_s) + self._ms(sound.pcm) / 1_000
        is_last = sound.left_ms == 0 and len(self._waiting) > 1 and not isinstance(self._waiting[1], str)
        self._emit(OutputAudio(sound.pcm, text, last=is_last))

    def _ms(self, pcm: bytes) -> float:
        return len(pcm) * 1_000 / (2 * self._synthesizer.output_hz)

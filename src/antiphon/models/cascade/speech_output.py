"""Speaks an answer while it is still being written: the first clause at once, then sentence by sentence."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final, cast

from antiphon.models.background import BackgroundTasks, BufferedStream
from antiphon.models.live import GenerationComplete, LiveEvent, OutputAudio, TurnFailed
from antiphon.speech.base import Sound, SpeechError, SpeechRequest, Synthesizer, Urgency
from antiphon.speech.clauses import Clauses
from antiphon.speech.spoken import speakable
from antiphon.telemetry.log import get_logger

MAX_AHEAD_S: Final = 8.0
"""How much audio may be synthesised ahead of playback. It is wasted if the user interrupts."""
MIN_PIECE_MS: Final = 200
"""Engines that stream send tiny pieces, which are joined up to this length. The first one is sent at once."""
CHARACTERS_PER_S: Final = 15.0
"""The speed of ordinary speech, for engines that do not say how long a text will take."""
WAIT_S: Final = 2.0
"""How long the user waits for an answer in silence."""
WAIT_WORDS: Final = "One moment."
FAILED: Final = "I couldn't speak the answer, but you can read it."

log = get_logger(__name__)


class SpokenAnswer:
    """The speech of one answer. Clauses are spoken in order, and events that were put behind them wait for them.

    Its task runs only while there is something to say.
    """

    def __init__(self, turn: str, output: "SpeechOutput", emit: Callable[[LiveEvent], None]) -> None:
        self.turn = turn
        self._output = output
        self._emit = emit
        self._clauses = Clauses()
        self._waiting: deque[str | LiveEvent] = deque()
        self._unsaid: list[str] = []
        """Words that make no sound, such as an emoji. They count as heard with the words after them."""
        self._has_begun = False
        """Whether audio of this answer was sent. From then on the synthesizer does not refuse it."""
        self._failure: TurnFailed | None = None
        """Why the rest of this answer is not spoken."""
        self._task: asyncio.Task[None] | None = None
        self._filling: asyncio.TimerHandle | asyncio.Task[None] | None = None
        """Waits to say a few words if the answer takes long to begin, and then says them."""
        self._has_filled = False
        self._playing_until_s = 0.0
        self._may_send = asyncio.Event()
        self._may_send.set()
        self._held_since_s: float | None = None
        """When the client stopped playing, if the answer is held."""

    @property
    def is_audible(self) -> bool:
        """Whether a client that plays audio as soon as it comes is still playing."""
        now_s = asyncio.get_running_loop().time() if self._held_since_s is None else self._held_since_s
        return now_s < self._playing_until_s

    def fill_wait(self) -> None:
        """Says a few words that are no part of the answer, if nothing of it has come after a while."""
        self._filling = asyncio.get_running_loop().call_later(WAIT_S, self._start_filling)

    def say(self, text: str) -> None:
        if not self._has_filled:
            self._stop_filling()
        self._enqueue(*self._clauses.push(text))

    def pause(self) -> None:
        """Speaks the text so far without waiting for more: a tool runs now."""
        self._enqueue(*self._clauses.finish())

    def then(self, event: LiveEvent) -> None:
        """Emits the event when everything before it has been spoken."""
        self._stop_filling()
        self._enqueue(*self._clauses.finish(), event)

    def hold(self) -> None:
        """The client stops playing, and keeps what it has. Nothing more is sent until `resume`."""
        if self._held_since_s is None:
            self._held_since_s = asyncio.get_running_loop().time()
            self._may_send.clear()

    def resume(self) -> None:
        """The client goes on playing."""
        if self._held_since_s is not None:
            if self.is_audible:
                self._playing_until_s += asyncio.get_running_loop().time() - self._held_since_s
            self._held_since_s = None
        self._may_send.set()

    def cancel(self) -> None:
        """Stops speaking. No more events of this answer are emitted."""
        self._waiting.clear()
        self._stop_filling()
        self._playing_until_s = 0.0
        if self._task is not None:
            self._task.cancel()

    def _enqueue(self, *more: str | LiveEvent) -> None:
        self._waiting.extend(more)
        if self._waiting and (self._task is None or self._task.done()):
            self._task = self._output.tasks.start(self._run())

    def _stop_filling(self) -> None:
        if self._filling is not None:
            self._filling.cancel()

    def _start_filling(self) -> None:
        self._filling = self._output.tasks.start(self._fill_wait())

    async def _fill_wait(self) -> None:
        try:
            async with aclosing(self._output.order(WAIT_WORDS)) as sounds:
                async for sound in sounds:
                    await self._may_send.wait()
                    self._has_filled = True
                    self._play(sound)
                    self._emit(OutputAudio(self.turn, sound.pcm, is_filler=True))
        except SpeechError as error:
            # The answer itself may still be spoken.
            log.info("wait_not_filled", engine=self._output.engine, reason=str(error))

    async def _run(self) -> None:
        while self._waiting:
            each = self._waiting.popleft()
            if isinstance(each, str):
                await self._try_to_speak(each)
            elif isinstance(each, GenerationComplete) and self._failure is not None:
                self._emit(self._failure)
            else:
                self._emit(each)

    async def _try_to_speak(self, clause: str) -> None:
        if self._failure is not None:
            return
        engine = self._output.engine
        try:
            await self._keep_pace()
            await self._speak(clause)
        except SpeechError as error:
            log.warning("answer_not_spoken", engine=engine, reason=str(error))
            self._failure = TurnFailed(self.turn, str(error))
        except Exception:
            log.exception("speech_output_failed", engine=engine)
            self._failure = TurnFailed(self.turn, FAILED)

    async def _keep_pace(self) -> None:
        ahead_s = self._playing_until_s - asyncio.get_running_loop().time()
        if ahead_s > MAX_AHEAD_S:
            await asyncio.sleep(ahead_s - MAX_AHEAD_S)

    async def _speak(self, clause: str) -> None:
        """Sends each piece of audio with its share of the words."""
        spoken, words = speakable(clause), [*self._unsaid, *clause.split()]
        made_ms, sent = 0.0, 0
        async with aclosing(self._output.synthesize(spoken, goes_on=self._has_begun)) as sounds:
            async for sound in sounds:
                made_ms += self._output.ms(sound.pcm)
                left_ms = sound.left_ms or 0
                # Engines guess how much is left, and the guess may grow.
                upto = max(sent, round(len(words) * made_ms / (made_ms + left_ms)))
                await self._may_send.wait()
                self._send(sound, "".join(f"{word} " for word in words[sent:upto]))
                sent = upto
                if left_ms:
                    await self._keep_pace()
        self._unsaid = words[sent:]

    def _play(self, sound: Sound) -> None:
        """Notes that a client will play this next."""
        now_s = asyncio.get_running_loop().time()
        self._playing_until_s = max(now_s, self._playing_until_s) + self._output.ms(sound.pcm) / 1_000

    def _send(self, sound: Sound, text: str) -> None:
        self._stop_filling()
        self._play(sound)
        is_last = sound.left_ms == 0 and bool(self._waiting) and not isinstance(self._waiting[0], str)
        self._has_begun = True
        self._emit(OutputAudio(self.turn, sound.pcm, text, last=is_last))


class SpeechOutput:
    """The voice of one session. It can make the first audio of an answer before the answer is wanted."""

    def __init__(self, synthesizer: Synthesizer, default_voice: str | None) -> None:
        self.tasks = BackgroundTasks()
        self._default_voice = default_voice
        self._voice, self._speed = default_voice, 1.0
        self._synthesizer = synthesizer
        self._prepared: tuple[SpeechRequest, BufferedStream[Sound]] | None = None
        """How the next answer will probably begin."""

    @property
    def engine(self) -> str:
        return self._synthesizer.name

    def set_voice(self, voice: str | None, speed: float) -> None:
        """Sets the voice from the next clause on. None means the default voice."""
        self._voice, self._speed = voice or self._default_voice, speed

    def start(self, turn: str, emit: Callable[[LiveEvent], None]) -> SpokenAnswer:
        return SpokenAnswer(turn, self, emit)

    def prepare(self, clause: str) -> None:
        """Synthesises the first audio of a clause that probably begins the next answer, if the engine has time."""
        wanted = self._want(speakable(clause))
        if not wanted.text or (self._prepared is not None and self._prepared[0] == wanted):
            return
        self.drop()
        self._prepared = (wanted, BufferedStream(self._order(wanted, Urgency.IDLE, goes_on=False), self.tasks, limit=1))

    def drop(self) -> None:
        """Drops the prepared audio."""
        if self._prepared is not None:
            self._prepared[1].cancel()
            self._prepared = None

    async def synthesize(self, spoken: str, *, goes_on: bool) -> AsyncGenerator[Sound, None]:
        """Yields the audio of a text. No piece is empty, and each says, or estimates, how much is left."""
        if not spoken:
            return
        expected_ms = len(spoken) / CHARACTERS_PER_S / self._speed * 1_000
        made_ms, held = 0.0, b""
        made = self._find_prepared(self._want(spoken), goes_on=goes_on)
        async with aclosing(cast(AsyncGenerator[Sound, None], made)) as sounds:
            async for sound in sounds:
                if sound.left_ms is not None and sound.pcm:
                    yield sound
                elif sound.pcm:
                    # One is always held back, since only the end shows which is the last.
                    if self.ms(held) >= (MIN_PIECE_MS if made_ms else 1):
                        made_ms += self.ms(held)
                        yield Sound(held, max(1, round(expected_ms - made_ms)))
                        held = b""
                    held += sound.pcm
        if held:
            yield Sound(held, 0)

    async def order(self, text: str) -> AsyncGenerator[Sound, None]:
        """Yields the audio of a text that nothing was prepared for, if the engine has time."""
        made = self._order(self._want(text), Urgency.NOW, goes_on=False)
        async with aclosing(cast(AsyncGenerator[Sound, None], made)) as sounds:
            async for sound in sounds:
                if sound.pcm:
                    yield sound

    def ms(self, pcm: bytes) -> float:
        return len(pcm) * 1_000 / (2 * self._synthesizer.output_hz)

    async def close(self) -> None:
        await self.tasks.aclose()

    def _find_prepared(self, wanted: SpeechRequest, *, goes_on: bool) -> AsyncIterator[Sound]:
        """Returns the audio of this text. Its first piece may have been prepared already."""
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            known, stream = prepared
            if known == wanted and not stream.has_failed:
                return stream.take()
            stream.cancel()
        return self._order(wanted, Urgency.NOW, goes_on=goes_on)

    def _want(self, text: str) -> SpeechRequest:
        return SpeechRequest(text, self._voice, self._speed)

    def _order(self, wanted: SpeechRequest, urgency: Urgency, *, goes_on: bool) -> AsyncIterator[Sound]:
        return self._synthesizer.speak(
            wanted.text, voice=wanted.voice, speed=wanted.speed, urgency=urgency, goes_on=goes_on
        )

"""Says an answer while it is still being written: the first clause at once, sentences after it."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final, cast

from antiphon.models.cascade.begun import Begun
from antiphon.models.cascade.chores import Chores
from antiphon.models.live import GenerationComplete, LiveEvent, OutputAudio, TurnComplete, TurnFailed
from antiphon.speech.base import Sound, SpeechError, SpeechRequest, Synthesizer, Urgency
from antiphon.speech.clauses import Clauses
from antiphon.speech.spoken import speakable
from antiphon.telemetry.log import get_logger

MAX_AHEAD_S: Final = 8.0
"""So much more may be made than can have been played: whoever interrupts makes the rest worthless."""
MAX_HELD_S: Final = 1.0
"""Then it goes on, whatever is the matter: a microphone can fall silent before it is known what it heard."""
MIN_PIECE_MS: Final = 200
"""Engines that stream send scraps; each would be a message of its own. The first is not made to wait."""
CHARACTERS_PER_S: Final = 15.0
"""Of ordinary speech, for engines that do not say how long a text will take."""
FAILED: Final = "The answer could not be spoken. You can read it."

log = get_logger(__name__)


class Mouth:
    """What it is given is said in order, and events that were put behind words are told when those are said.

    Its task lives only while there is something to say.
    """

    def __init__(self, synthesizer: Synthesizer, usual_voice: str | None, emit: Callable[[LiveEvent], None]) -> None:
        self._usual_voice = usual_voice
        self._voice, self._speed = usual_voice, 1.0
        self._synthesizer = synthesizer
        self._emit = emit
        self._tasks = Chores()
        self._aside = Chores()
        self._prepared: tuple[SpeechRequest, Begun[Sound]] | None = None
        """How the next answer will probably begin."""
        self._begin()

    @property
    def is_audible(self) -> bool:
        """Whether a client that plays what it gets at once is still playing."""
        return asyncio.get_running_loop().time() < self._playing_until_s

    def choose(self, voice: str | None, speed: float) -> None:
        """From the next clause on; None is the usual voice."""
        self._voice, self._speed = voice or self._usual_voice, speed

    def prepare(self, clause: str) -> None:
        """An answer will probably begin with this: its first sound is made now, if there is nothing else to do."""
        wanted = self._want(speakable(clause))
        if not wanted.text or (self._prepared is not None and self._prepared[0] == wanted):
            return
        self.forget()
        self._prepared = (wanted, Begun(self._order(wanted, Urgency.IDLE, goes_on=False), self._aside, most=1))

    def forget(self) -> None:
        """What was prepared is not wanted."""
        if self._prepared is not None:
            self._prepared[1].give_up()
            self._prepared = None

    def say(self, text: str) -> None:
        self._wait(*self._clauses.push(text))

    def pause(self) -> None:
        """What was given so far is whole: a tool runs now, or the answer ends."""
        self._wait(*self._clauses.finish())

    def then(self, event: LiveEvent) -> None:
        """Tells the event when everything before it has been said."""
        self._wait(*self._clauses.finish(), event)

    def hold(self, held: bool) -> None:
        """Somebody may be speaking: nothing more is sent until that is known."""
        if held:
            self._may_send.clear()
        else:
            self._may_send.set()

    def hush(self) -> None:
        """Says nothing more of this answer. Only that it is over is still told."""
        is_over = any(isinstance(each, TurnComplete) for each in self._waiting)
        self._tasks.cancel()
        self._begin()
        if is_over:
            self._emit(TurnComplete())

    async def close(self) -> None:
        self.hush()
        await self._tasks.aclose()
        await self._aside.aclose()

    def _begin(self) -> None:
        """With nothing of an earlier answer."""
        self._clauses = Clauses()
        self._waiting: deque[str | LiveEvent] = deque()
        self._unsaid: list[str] = []
        """Words that make no sound, such as a picture. They count as heard with the words after them."""
        self._has_begun = False
        """Whether something of this answer was sent. From then on it is not refused."""
        self._failure: TurnFailed | None = None
        """Why the rest of this answer is only to be read."""
        self._task: asyncio.Task[None] | None = None
        self._playing_until_s = 0.0
        self._may_send = asyncio.Event()
        self._may_send.set()

    def _wait(self, *more: str | LiveEvent) -> None:
        self._waiting.extend(more)
        if self._waiting and (self._task is None or self._task.done()):
            self._task = self._tasks.start(self._run())

    async def _run(self) -> None:
        while self._waiting:
            each = self._waiting.popleft()
            if not isinstance(each, str):
                self._tell(each)
            elif self._failure is None:
                await self._try_to_speak(each)

    def _tell(self, event: LiveEvent) -> None:
        if isinstance(event, GenerationComplete) and self._failure is not None:
            event = self._failure
        if isinstance(event, TurnComplete):
            self._unsaid, self._has_begun, self._failure = [], False, None
        self._emit(event)

    async def _try_to_speak(self, clause: str) -> None:
        try:
            await self._keep_pace()
            await self._speak(clause)
        except SpeechError as error:
            log.warning("answer_not_spoken", engine=self._synthesizer.name, reason=str(error))
            self._failure = TurnFailed(str(error))
        except Exception:
            log.exception("mouth_failed", engine=self._synthesizer.name)
            self._failure = TurnFailed(FAILED)

    async def _keep_pace(self) -> None:
        ahead_s = self._playing_until_s - asyncio.get_running_loop().time()
        if ahead_s > MAX_AHEAD_S:
            await asyncio.sleep(ahead_s - MAX_AHEAD_S)

    async def _wait_while_held(self) -> None:
        try:
            async with asyncio.timeout(MAX_HELD_S):
                await self._may_send.wait()
        except TimeoutError:
            self._may_send.set()

    async def _speak(self, clause: str) -> None:
        """Each piece of sound has its share of the words."""
        spoken, words = speakable(clause), [*self._unsaid, *clause.split()]
        made_ms, told = 0.0, 0
        async with aclosing(self._make(spoken)) as sounds:
            async for sound in sounds:
                made_ms += self._ms(sound.pcm)
                left_ms = sound.left_ms or 0
                # Engines guess how much is left, and may guess more after less.
                upto = max(told, round(len(words) * made_ms / (made_ms + left_ms)))
                await self._wait_while_held()
                self._send(sound, "".join(f"{word} " for word in words[told:upto]))
                told = upto
                if left_ms:
                    await self._keep_pace()
        self._unsaid = words[told:]

    async def _make(self, spoken: str) -> AsyncGenerator[Sound, None]:
        """The sounds of an engine, none of them empty, all with a length that is left: if need be, by a guess."""
        if not spoken:
            return
        expected_ms = len(spoken) / CHARACTERS_PER_S / self._speed * 1_000
        made_ms, held = 0.0, b""
        made = self._find_prepared(self._want(spoken))
        async with aclosing(cast(AsyncGenerator[Sound, None], made)) as sounds:
            async for sound in sounds:
                if sound.left_ms is not None and sound.pcm:
                    yield sound
                elif sound.pcm:
                    # One is always held back, since only the end shows which is the last.
                    if self._ms(held) >= (MIN_PIECE_MS if made_ms else 1):
                        made_ms += self._ms(held)
                        yield Sound(held, max(1, round(expected_ms - made_ms)))
                        held = b""
                    held += sound.pcm
        if held:
            yield Sound(held, 0)

    def _find_prepared(self, wanted: SpeechRequest) -> AsyncIterator[Sound]:
        """These sounds, of which the first may be there already."""
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            known, begun = prepared
            if known == wanted and not begun.has_failed:
                return begun.take()
            begun.give_up()
        return self._order(wanted, Urgency.NOW, goes_on=self._has_begun)

    def _want(self, text: str) -> SpeechRequest:
        return SpeechRequest(text, self._voice, self._speed)

    def _order(self, wanted: SpeechRequest, urgency: Urgency, *, goes_on: bool) -> AsyncIterator[Sound]:
        return self._synthesizer.speak(
            wanted.text, voice=wanted.voice, speed=wanted.speed, urgency=urgency, goes_on=goes_on
        )

    def _send(self, sound: Sound, text: str) -> None:
        now_s = asyncio.get_running_loop().time()
        self._playing_until_s = max(now_s, self._playing_until_s) + self._ms(sound.pcm) / 1_000
        is_last = sound.left_ms == 0 and bool(self._waiting) and not isinstance(self._waiting[0], str)
        self._has_begun = True
        self._emit(OutputAudio(sound.pcm, text, last=is_last))

    def _ms(self, pcm: bytes) -> float:
        return len(pcm) * 1_000 / (2 * self._synthesizer.output_hz)

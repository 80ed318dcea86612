"""One session's ears: from microphone audio to what was said, with guesses on the way that save the waiting."""

import asyncio
from dataclasses import dataclass
from typing import Final

from antiphon.audio.barge import BargeIn
from antiphon.models.cascade.chores import Chores, has_failed, result_of
from antiphon.models.cascade.ear import Ear, Sign
from antiphon.models.cascade.senses import Hearer, Senses
from antiphon.models.cascade.wording import Recognized, Wording, find_cut
from antiphon.models.completeness import Completeness
from antiphon.models.live import Timings
from antiphon.speech.base import SpeechError, Urgency

COMPLETE: Final = 0.7
"""What the turn detector must say. Of pauses it then takes 26 % for ends, and of ends 71 % (synthetic voices). At 0.5
that is 33 and 78 %, at 0.9 it is 14 and 55 %."""
LOOK_EVERY_MS: Final = 800
"""At the least: wherever the sound stops there is another look. In a sentence of 2.8 s there are five in all."""
SETTLED_MS: Final = 6_000
"""Of a turn that is longer than this, what was said before a pause is not recognised again after it."""
MAX_TURN_MS: Final = 20_000
"""Of audio that is kept for one turn. Of somebody who speaks on without a pause, the older part is recognised then."""
MAX_UNKNOWN_MS: Final = 60_000
"""As long as it cannot be recognised it is kept, up to this."""
STALLED_S: Final = 1.0
"""A microphone that falls silent without a word, in the middle of a turn, was switched off."""
TELLING_S: Final = 2.0
"""So long after its end a turn may still be on its way to whoever ends the audio in the meantime."""

NOT_UNDERSTOOD: Final = "What you said could not be recognised. Please say it again."


@dataclass(frozen=True, slots=True)
class _Look:
    """At what was said up to a moment."""

    task: "asyncio.Task[Recognized]"
    heard_bytes: int

    @property
    def has_failed(self) -> bool:
        return has_failed(self.task)


class Listening:
    def __init__(self, senses: Senses, hearer: Hearer) -> None:
        self._senses = senses
        self._hearer = hearer
        self._loop = asyncio.get_running_loop()
        self._ear = Ear(senses.silences.long_ms)
        self._barge = BargeIn()
        self._stream = senses.hearing.open(self._hear)
        self._client_plays = False
        self._is_in_doubt = False
        self._wording = Wording(senses.recognizer)
        self._glance: _Look | None = None
        """The last one while somebody speaks."""
        self._is_all = False
        """Whether nothing was to be heard since then."""
        self._guess: _Look | None = None
        """The last one at a pause, or at the end."""
        self._of_pause = Chores()
        """What goes on because of a pause, and is given up if it was only that."""
        self._aside = Chores()
        """What goes on while somebody speaks."""
        self._look_at_ms = 0
        self._finishing: asyncio.Task[None] | None = None
        self._told_s = -TELLING_S
        self._is_awaited = False
        """Whether the audio was ended, and somebody waits for a turn, or for word that there is none."""
        self._stall: asyncio.TimerHandle | None = None
        self._more_s = 0.0
        """When something was last pushed or heard."""

    def push(self, pcm: bytes, *, playing: bool) -> None:
        self._client_plays = playing
        self._stream.push(pcm)
        self._more_s = self._loop.time()

    async def end(self) -> None:
        """No more audio comes for now. `on_turn` follows, if it has not just come, or `on_nothing`."""
        await self._stream.flush()
        if self._stream.is_closed:
            return
        self._is_awaited = self._ear.is_open or self._is_finishing
        if self._ear.is_open:
            self._take(self._ear.end())
        elif not self._is_telling:
            self._hearer.on_nothing()

    def expect_answer(self) -> None:
        """What is played from now on is another answer."""
        self._barge.reset()

    def played(self, pcm: bytes, hz: int) -> None:
        """A piece of the answer, which the microphone may hear too."""
        self._barge.played(pcm, hz)

    def settle(self) -> bool:
        """What was said has been answered: what is said from now on is another turn. False if it is being said."""
        if self._ear.is_open or self._is_finishing:
            return False
        self._ear.settle()
        return True

    async def close(self) -> None:
        self._stream.close()
        if self._stall is not None:
            self._stall.cancel()
        await self._of_pause.aclose()
        await self._aside.aclose()

    # What is heard.

    def _hear(self, probability: float, frame: bytes) -> None:
        is_guarded = not self._ear.is_open and (self._client_plays or self._hearer.is_answering())
        sign = self._ear.hear(probability, frame, may_start=not is_guarded)
        is_speech = is_guarded and self._barge.hear(probability, frame, playing=self._client_plays)
        self._doubt(is_guarded and self._barge.may_be_speech and not is_speech)
        if is_speech:
            sign = self._ear.start()
            if sign is Sign.STARTED:
                self._hearer.on_speech(goes_on=False)
        self._take(sign)
        if self._ear.is_speaking:
            self._listen_on()
        self._wait_for_more()

    def _doubt(self, is_open: bool) -> None:
        if is_open != self._is_in_doubt:
            self._is_in_doubt = is_open
            self._hearer.on_doubt(is_open=is_open)

    def _take(self, sign: Sign | None) -> None:
        match sign:
            case Sign.STARTED:
                # A vote on the last turn may still be out.
                self._of_pause.cancel()
                self._wording = Wording(self._senses.recognizer)
                self._guess = None
                self._look_at_ms = LOOK_EVERY_MS
            case Sign.PAUSED:
                self._pause()
            case Sign.RESUMED:
                self._go_on()
            case Sign.REOPENED:
                if self._wording.told is not None:
                    self._hearer.on_speech(goes_on=True)
                self._go_on()
            case Sign.ENDED:
                self._guess = self._guess or self._take_glance()
                self._finishing = self._of_pause.start(self._finish(self._ear.silence_ms))
            case Sign.DISCARDED:
                self._aside.cancel()
                self._tell_nothing()

    def _listen_on(self) -> None:
        """Now and then, what was said so far is recognised, for the eye; and wherever the sound stops, since that may
        have been all: most of it is done, then, before the silence is known as one."""
        self._is_all = self._is_all and self._ear.is_hushed
        if self._ear.is_hushed and self._ear.turn_ms < MAX_TURN_MS:
            if not self._is_all or self._glance is None or self._glance.has_failed:
                self._look_aside()
                self._is_all = True
        elif not self._aside and self._ear.turn_ms >= self._look_at_ms:
            self._look_aside()

    def _look_aside(self) -> None:
        self._look_at_ms = self._ear.turn_ms + LOOK_EVERY_MS
        if self._ear.turn_ms >= MAX_TURN_MS:
            self._aside.start(self._let_go())
            return
        # What was seen before is old by now.
        self._aside.cancel()
        audio = self._ear.turn
        self._glance = _Look(self._aside.start(self._tell_words(audio)), len(audio))

    def _take_glance(self) -> _Look | None:
        """The last one, if it has seen all."""
        glance, self._glance = self._glance, None
        if self._is_all and glance is not None and not glance.has_failed:
            return glance
        self._aside.cancel()
        return None

    def _pause(self) -> None:
        """The turn may be over. What was said is recognised now, and whether it was all is judged."""
        self._guess = self._take_glance() or self._look(Urgency.SOON)
        self._of_pause.start(self._judge(self._guess))

    def _go_on(self) -> None:
        """It was only a pause."""
        guess = self._guess
        if self._ear.turn_ms > SETTLED_MS and guess is not None and (part := result_of(guess.task)) and part.text:
            self._wording.keep(part)
            self._ear.forget(guess.heard_bytes)
            self._look_at_ms = 0
        self._of_pause.cancel()
        self._guess = self._finishing = None
        self._hearer.on_more()

    def _wait_for_more(self) -> None:
        self._more_s = self._loop.time()
        # One timer for the turn, which looks whether it is due: one for each frame took a twelfth of the loop's time.
        if self._stall is None and self._ear.is_open:
            self._stall = self._loop.call_later(STALLED_S, self._look_for_stall)

    def _look_for_stall(self) -> None:
        self._stall = None
        if self._stream.is_closed or not self._ear.is_open:
            return
        left_s = self._more_s + STALLED_S - self._loop.time()
        if left_s > 0:
            self._stall = self._loop.call_later(left_s, self._look_for_stall)
        else:
            self._take(self._ear.end())

    # What was said.

    async def _judge(self, guess: _Look) -> None:
        """How much silence is enough. Where the words do not tell, the turn detector does, by the melody."""
        text = self._wording.join((await guess.task).text)
        if not text or not self._ear.is_open:
            return
        self._show(text)
        self._hearer.on_guess(text)
        silences = self._senses.silences
        match self._senses.completeness(text):
            case Completeness.OVER:
                self._take(self._ear.content_with(silences.short_ms))
            case Completeness.WHOLE:
                self._take(self._ear.content_with(silences.middle_ms))
            case Completeness.UNKNOWN if await self._sounds_complete():
                self._take(self._ear.content_with(silences.middle_ms))

    async def _sounds_complete(self) -> bool:
        detector, audio = self._senses.detector, self._ear.sentence
        return await self._senses.voters.run(lambda _: detector.completeness(audio), Urgency.SOON) >= COMPLETE

    async def _finish(self, silence_ms: int) -> None:
        """The turn is over. Its text is usually there already."""
        ended_s = self._loop.time()
        wording = self._wording
        try:
            recognized = await self._understand()
        except Exception as error:
            self._ear.settle()
            self._hearer.on_failure(str(error) if isinstance(error, SpeechError) else NOT_UNDERSTOOD)
            self._tell_nothing()
            return
        # A turn that has gone on has words, even if they are not understood a second time.
        text = wording.join(recognized.text) or wording.told or ""
        if not text:
            self._ear.settle()
            self._tell_nothing()
            return
        goes_on, wording.told = wording.told is not None, text
        self._is_awaited = False
        self._told_s = self._loop.time()
        timings = Timings(silence_ms, wording.known_ms + recognized.took_ms, (self._told_s - ended_s) * 1_000)
        self._hearer.on_turn(text, timings, goes_on=goes_on)

    async def _understand(self) -> Recognized:
        """The last guess, if there is one. One that failed while there was time is no verdict."""
        if self._guess is None or self._guess.has_failed:
            self._guess = self._look(Urgency.NOW)
        return await self._guess.task

    def _look(self, urgency: Urgency) -> _Look:
        audio = self._ear.turn
        return _Look(self._of_pause.start(self._wording.recognize(audio, urgency)), len(audio))

    @property
    def _is_finishing(self) -> bool:
        return self._finishing is not None and not self._finishing.done()

    @property
    def _is_telling(self) -> bool:
        """Whether a turn is over and whoever answers it may not know yet."""
        is_fresh = self._loop.time() < self._told_s + TELLING_S
        return self._is_finishing or (is_fresh and not self._ear.is_quiet)

    def _tell_nothing(self) -> None:
        if self._is_awaited:
            self._is_awaited = False
            self._hearer.on_nothing()

    async def _tell_words(self, audio: bytes) -> Recognized:
        recognized = await self._wording.recognize(audio, Urgency.IDLE)
        if recognized.text:
            self._show(self._wording.join(recognized.text))
        return recognized

    def _show(self, text: str) -> None:
        if text != self._wording.shown:
            self._wording.shown = text
            self._hearer.on_words(text)

    async def _let_go(self) -> None:
        """Of a turn without an end, the older part is recognised and kept as text."""
        audio = self._ear.turn
        audio = audio[: find_cut(audio)]
        try:
            part = await self._wording.recognize(audio, Urgency.NOW)
        except SpeechError:
            if self._ear.turn_ms < MAX_UNKNOWN_MS:
                return
            part = Recognized("", 0.0)
        self._wording.keep(part)
        self._ear.forget(len(audio))
        self._look_at_ms = 0

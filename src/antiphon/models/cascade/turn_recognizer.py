"""Turns one session's microphone audio into the text of turns. Early guesses save time at the end of a turn."""

import asyncio
from functools import partial
from itertools import count
from typing import Final
from uuid import uuid4

from antiphon.audio.barge import CLEAR_SPEECH, BargeIn
from antiphon.models.background import BackgroundTasks, result_of
from antiphon.models.cascade.end_of_turn import needs_melody
from antiphon.models.cascade.endpointer import Endpointer, Signal
from antiphon.models.cascade.remarks import SURE_WORDS, Remark, is_noise, judge, split
from antiphon.models.cascade.shared_engines import SharedEngines
from antiphon.models.cascade.turn import (
    CAPTION_EVERY_MS,
    JUDGE_EVERY_MS,
    Answered,
    Recognition,
    Recognized,
    Turn,
    TurnListener,
    TurnStatus,
    find_cut,
)
from antiphon.models.completeness import Completeness, continue_request
from antiphon.models.expectation import Expectation
from antiphon.models.live import Names, Timings
from antiphon.speech.base import NamePreferring, SpeechError, Urgency

REUSE_AFTER_MS: Final = 6_000
"""In a turn that is longer than this, the text before a pause is kept and not recognised again."""
MAX_AUDIO_MS: Final = 20_000
"""How much audio of a turn is kept. If the user speaks on without a pause, the older part is recognised then."""
MAX_UNRECOGNIZED_MS: Final = 60_000
"""How much audio is kept while recognition fails."""
STALLED_S: Final = 1.0
"""A microphone that sends nothing for this long in the middle of a turn was switched off."""
RELEASE_SILENCE_MS: Final = 200
"""How much silence ends a noise or an "okay" over an answer, which then goes on. "Okay, but …" has no such pause."""

JOIN_WITHIN_S: Final = 6.0
"""How long after the beginning of an answer a few words may still complete the request: as long as an answer takes, and
a moment to notice that it is not what was meant."""

NAMES_EVERY_S: Final = 60.0
"""How often the names that a user is likely to say are read again while they speak."""

NOT_UNDERSTOOD: Final = "I couldn't make out what you said. Please say it again."


class TurnRecognizer:
    """Recognises what one session's user says. Everything that is known about a turn is in its `Turn`."""

    def __init__(self, engines: SharedEngines, listener: TurnListener, names: Names | None = None) -> None:
        """`names` returns what this user is likely to say; nobody else's speech is biased towards it."""
        self._engines = engines
        self._recognizer = engines.recognizer
        self._names = names
        self._names_due_s = float("-inf")
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        prefix = uuid4().hex[:8]
        self._ids = (f"{prefix}-{number}" for number in count(1))
        self._endpointer = Endpointer(engines.silences.long_ms)
        self._barge_in = BargeIn()
        self._stream = engines.vad.open(self._hear)
        self._tasks = BackgroundTasks()
        self._turn: Turn | None = None
        """The turn under way, or one that is final and may still go on."""
        self._answered: Answered | None = None
        """The last turn, if its answer has begun and nobody has spoken since."""
        self._expects = Expectation.NOTHING
        """What the last answer asked for."""
        self._client_plays = False
        self._may_be_speech = False
        self._last_audio_s = 0.0
        self._update_names()

    def push(self, pcm: bytes, *, playing: bool) -> None:
        self._client_plays = playing
        self._stream.push(pcm)
        self._last_audio_s = self._loop.time()

    def end(self, id: str) -> None:
        """Ends the current turn, which gets this id, since no more audio comes. `on_final` or `on_empty` follows."""
        self._stream.flush(partial(self._end, id))

    def expect(self, expectation: Expectation) -> None:
        """Takes what the answer asks for. It holds for the next turn with words, also if that is continued."""
        self._expects = expectation

    def expect_answer(self) -> None:
        """Prepares for another answer to be played."""
        self._barge_in.reset()

    def played(self, pcm: bytes, hz: int) -> None:
        """Takes a piece of the answer, which the microphone may pick up."""
        self._barge_in.played(pcm, hz)

    def settle(self, id: str | None = None) -> bool:
        """Closes the turn when it is answered; later speech is another turn. Returns False if there is no final turn,
        or if it does not have the given id."""
        if self._turn is None or not self._turn.is_final or id not in (None, self._turn.id):
            return False
        self._answered = Answered(self._turn.id, self._turn.text, self._loop.time())
        self._drop_turn()
        return True

    def answer_dropped(self) -> None:
        """There is no answer left that the sound under way could let go on: it is a turn like any other."""
        if self._turn is not None and self._turn.is_unclear:
            self._turn.is_unclear = False
            self._listener.on_speech(self._turn)

    async def close(self) -> None:
        self._stream.close()
        self._drop_turn()
        await self._tasks.aclose()

    # The audio.

    def _hear(self, probability: float, frame: bytes) -> None:
        endpointer = self._endpointer
        is_guarded = not endpointer.is_open and (self._client_plays or self._listener.is_answering())
        signal = endpointer.hear(probability, frame, may_start=not is_guarded)
        is_speech = is_guarded and self._barge_in.hear(probability, frame, playing=self._client_plays)
        if self._client_plays and not is_guarded:
            self._barge_in.skip(frame)
        if is_speech:
            signal = endpointer.start(self._barge_in.own_frames)
        self._handle(signal, is_over_answer=is_speech)
        self._set_possible_speech(is_guarded and self._barge_in.may_be_speech)
        if self._turn is not None:
            self._turn.clear_frames += probability >= CLEAR_SPEECH
            if endpointer.is_speaking:
                self._update_caption(self._turn)
            self._watch_for_stall(self._turn)
        self._last_audio_s = self._loop.time()

    def _set_possible_speech(self, possible: bool) -> None:
        if possible != self._may_be_speech:
            self._may_be_speech = possible
            self._listener.on_possible_speech(possible=possible)

    def _end(self, id: str) -> None:
        turn = self._turn
        if turn is None or turn.status is not TurnStatus.HEARING:
            self._listener.on_empty(id)
        else:
            turn.id, turn.status = id, TurnStatus.AWAITED
        self._handle(self._endpointer.end())

    def _handle(self, signal: Signal | None, *, is_over_answer: bool = False) -> None:
        if signal is Signal.STARTED:
            self._turn = self._start_turn(is_over_answer=is_over_answer)
            if is_over_answer:
                self._listener.on_hold()
            else:
                self._listener.on_speech(self._turn)
            return
        turn = self._turn
        if signal is None or turn is None:
            return
        match signal:
            case Signal.PAUSED:
                turn.guess = self._with_last_piece(turn, turn.take_early() or self._recognize(turn, Urgency.SOON))
                turn.pause_tasks.start(self._judge(turn, turn.guess))
            case Signal.RESUMED:
                self._resume(turn)
            case Signal.REOPENED:
                if turn.is_final:
                    turn.continue_as(next(self._ids))
                    self._listener.on_continued(turn)
                self._resume(turn)
            case Signal.ENDED:
                turn.guess = turn.guess or turn.take_early()
                turn.pause_tasks.start(self._finish(turn, self._endpointer.silence_ms))
            case Signal.DISCARDED:
                self._give_up(turn)

    def _update_names(self) -> None:
        """Reads the user's names from time to time. They are used from the next turn on."""
        if self._names is not None and self._loop.time() >= self._names_due_s:
            self._names_due_s = self._loop.time() + NAMES_EVERY_S
            self._tasks.start(self._read_names(self._names))

    async def _read_names(self, names: Names) -> None:
        recognizer = self._engines.recognizer
        if isinstance(recognizer, NamePreferring):
            self._recognizer = recognizer.preferring(await names())

    def _start_turn(self, *, is_over_answer: bool) -> Turn:
        self._update_names()
        before, self._answered = self._answered, None
        if self._expects is not Expectation.NOTHING:
            # The answer to a question does not complete the request before it.
            before = None
        if before is not None and self._loop.time() - before.at_s > JOIN_WITHIN_S:
            before = None
        return Turn(
            next(self._ids),
            self._recognizer,
            self._tasks,
            self._expects,
            before,
            is_over_answer=is_over_answer,
            is_echoed=is_over_answer and self._barge_in.own_frames is not None,
        )

    def _resume(self, turn: Turn) -> None:
        """Continues the turn after a pause."""
        guess, turn.guess = turn.guess, None
        part = None if guess is None else result_of(guess.task)
        if guess is not None and part is not None and part.text:
            turn.paused_after = part.text, max(guess.audio_bytes, self._endpointer.resumed_at)
            if self._endpointer.audio_ms > REUSE_AFTER_MS:
                turn.keep(part)
                self._endpointer.drop_oldest(guess.audio_bytes)
        turn.pause_tasks.cancel()
        if not turn.is_unclear:
            self._listener.on_resumed()

    def _watch_for_stall(self, turn: Turn) -> None:
        # One timer for the whole turn: restarting a timer for each frame took a twelfth of the loop's time.
        if turn.stall_timer is None and self._endpointer.is_open:
            turn.stall_timer = self._loop.call_later(STALLED_S, self._check_stall, turn)

    def _check_stall(self, turn: Turn) -> None:
        turn.stall_timer = None
        if turn is not self._turn or not self._endpointer.is_open:
            return
        left_s = self._last_audio_s + STALLED_S - self._loop.time()
        if left_s > 0:
            turn.stall_timer = self._loop.call_later(left_s, self._check_stall, turn)
        else:
            self._handle(self._endpointer.end())

    def _drop_turn(self) -> None:
        self._endpointer.settle()
        if self._turn is not None:
            self._turn.close()
            self._turn = None

    def _give_up(self, turn: Turn) -> None:
        """Drops a turn that wants no answer."""
        self._drop_turn()
        if turn.is_unclear:
            self._listener.on_release()
        if turn.is_awaited:
            self._listener.on_empty(turn.id)

    # Speech over an answer.

    def _remark(self, turn: Turn, text: str) -> Remark:
        return judge(text, turn.clear_frames, is_reply=self._listener.is_asking(), is_echoed=turn.is_echoed)

    def _interrupts(self, turn: Turn, text: str) -> bool:
        """Whether the words interrupt the answer. Then it is interrupted, and the turn is one like any other."""
        if turn.is_unclear and self._remark(turn, text) in (Remark.WORDS, Remark.STOP):
            self._interrupt(turn)
        return not turn.is_unclear

    def _interrupt(self, turn: Turn) -> None:
        turn.is_unclear = False
        self._listener.on_barge_in()
        self._listener.on_speech(turn)

    def _wants_no_answer(self, turn: Turn, text: str) -> bool:
        if turn.text:
            # It was final before.
            return False
        if turn.is_over_answer:
            return self._remark(turn, text) is not Remark.WORDS
        return is_noise(text, turn.clear_frames)

    # The text so far.

    def _update_caption(self, turn: Turn) -> None:
        """Recognises the text so far from time to time, to show it, and whenever the sound stops, since that may be the
        end: most of the work is then done before the silence counts as a pause."""
        has_stopped, audio_ms = self._endpointer.has_sound_stopped, self._endpointer.audio_ms
        if not has_stopped:
            turn.early = None
        if has_stopped and audio_ms < MAX_AUDIO_MS:
            if turn.early is None or turn.early.has_failed:
                turn.early = self._start_caption(turn)
        elif not turn.caption_tasks and audio_ms >= turn.next_caption_ms:
            turn.next_caption_ms = audio_ms + CAPTION_EVERY_MS
            if audio_ms >= MAX_AUDIO_MS:
                turn.caption_tasks.start(self._keep_older_part(turn))
            else:
                self._start_caption(turn)

    def _start_caption(self, turn: Turn) -> Recognition:
        turn.next_caption_ms = self._endpointer.audio_ms + (JUDGE_EVERY_MS if turn.is_unclear else CAPTION_EVERY_MS)
        # A recognition that is still under way is of less audio.
        turn.caption_tasks.cancel()
        audio = self._endpointer.audio
        return Recognition(turn.caption_tasks.start(self._recognize_caption(turn, audio)), len(audio))

    async def _recognize_caption(self, turn: Turn, audio: bytes) -> Recognized:
        recognized = await turn.recognize(audio, Urgency.SOON if turn.is_unclear else Urgency.IDLE)
        is_sure = not turn.is_unclear or len(split(recognized.text)) >= SURE_WORDS
        if recognized.text and is_sure and self._interrupts(turn, turn.join(recognized.text)):
            self._show(turn, turn.join(recognized.text))
        return recognized

    def _show(self, turn: Turn, text: str) -> None:
        if text != turn.caption:
            turn.caption = text
            self._listener.on_caption(turn)

    async def _keep_older_part(self, turn: Turn) -> None:
        """Recognises the older part of a turn without pauses, and keeps it as text."""
        audio = self._endpointer.audio
        audio = audio[: find_cut(audio)]
        try:
            part = await turn.recognize(audio, Urgency.NOW)
        except SpeechError:
            if self._endpointer.audio_ms < MAX_UNRECOGNIZED_MS:
                return
            part = Recognized("", 0.0, self._loop.time())
        turn.keep(part)
        self._endpointer.drop_oldest(len(audio))

    # The end of the turn.

    def _recognize(self, turn: Turn, urgency: Urgency) -> Recognition:
        audio = self._endpointer.audio
        return Recognition(turn.pause_tasks.start(turn.recognize(audio, urgency)), len(audio))

    def _with_last_piece(self, turn: Turn, guess: Recognition) -> Recognition:
        """Returns the recognition with the words after the last pause, if the recogniser dropped them."""
        if turn.paused_after is None:
            return guess
        work = turn.recognize_last_piece(guess.task, self._endpointer.audio, turn.paused_after)
        return Recognition(turn.pause_tasks.start(work), guess.audio_bytes)

    def _complete(self, turn: Turn, end: str) -> str:
        """Returns the text of the turn, with the request before it if it only completes that."""
        text, before, turn.completes = turn.join(end), turn.before, None
        if before is None or not text:
            return text
        joined = continue_request(before.text, text, self._engines.completeness)
        if joined is None:
            return text
        turn.completes = before
        return joined

    async def _judge(self, turn: Turn, guess: Recognition) -> None:
        """Decides how much silence ends the turn, by its words and, if they leave a doubt, by its melody."""
        end = (await guess.task).text
        said = turn.join(end)
        if turn.is_unclear and len(split(said)) < SURE_WORDS and self._remark(turn, said) is Remark.WORDS:
            # The first half of a "yeah, yeah" may be any word. The answer is held, so there is time.
            await asyncio.sleep(RELEASE_SILENCE_MS / 1_000)
        if not self._endpointer.is_open:
            return
        self._interrupts(turn, said)
        if turn.is_over_answer and self._wants_no_answer(turn, said):
            self._handle(self._endpointer.require_silence(RELEASE_SILENCE_MS))
            return
        text = self._complete(turn, end)
        if not text:
            return
        self._show(turn, text)
        completeness = self._engines.completeness(text)
        if completeness is not Completeness.HANGING:
            self._listener.on_guess(turn, text)
        melody = await self._judge_melody() if needs_melody(completeness) else 0.0
        silence_ms = self._engines.silences.after(completeness, melody, turn.expects)
        self._handle(self._endpointer.require_silence(silence_ms))

    async def _judge_melody(self) -> float:
        detector, audio = self._engines.detector, self._endpointer.sentence
        return await self._engines.detector_workers.run(lambda _: detector.completeness(audio), Urgency.SOON)

    async def _finish(self, turn: Turn, silence_ms: int) -> None:
        """Finishes the turn. The text is usually known already."""
        ended_s = self._loop.time()
        try:
            if turn.guess is None or turn.guess.has_failed:
                # A failure while there was still time may have been a lack of threads.
                turn.guess = self._recognize(turn, Urgency.NOW)
            recognized = await turn.guess.task
        except Exception as error:
            if turn.is_unclear:
                # It sounded like speech.
                self._interrupt(turn)
            self._drop_turn()
            message = str(error) if isinstance(error, SpeechError) else NOT_UNDERSTOOD
            self._listener.on_failure(turn.id if turn.is_awaited else None, message)
            return
        # A turn that was final before has words, even if they are not recognised a second time.
        said = turn.join(recognized.text) or turn.text
        self._interrupts(turn, said)
        text = self._complete(turn, recognized.text) or turn.text
        if not text or self._wants_no_answer(turn, said):
            self._give_up(turn)
            return
        if not turn.is_awaited and self._engines.completeness(text) is Completeness.HANGING:
            # If the words were known too late to ask for more silence, the rest of it is waited for here.
            left_ms = self._engines.silences.unfinished_ms - silence_ms - (self._loop.time() - ended_s) * 1_000
            await asyncio.sleep(max(0.0, left_ms / 1_000))
        turn.text, turn.status = text, TurnStatus.FINAL
        self._expects = Expectation.NOTHING
        wait_ms = (self._loop.time() - ended_s) * 1_000
        timings = Timings(
            silence_ms,
            turn.known_ms + recognized.took_ms,
            wait_ms,
            known_ms=(recognized.at_s - ended_s) * 1_000,
            last_stt_ms=recognized.took_ms,
        )
        self._listener.on_final(turn, timings)

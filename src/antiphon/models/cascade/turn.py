"""One turn of the user, from the first sound until it is answered or turns out to be empty, and its listener."""

import asyncio
import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol

import numpy as np
from msgspec import Struct

from antiphon.models.background import BackgroundTasks, has_failed
from antiphon.models.base import Completion
from antiphon.models.cascade.endpointer import FRAME_BYTES, PREROLL_FRAMES
from antiphon.models.expectation import Expectation
from antiphon.models.live import Timings
from antiphon.sound_format import MICROPHONE_HZ, SAMPLE_BYTES
from antiphon.speech.base import Recognizer, Urgency

CAPTION_EVERY_MS: Final = 800
"""How often the text so far is recognised at least. It is also recognised whenever the sound stops, so five times in a
sentence of 2.8 s."""
JUDGE_EVERY_MS: Final = 300
"""How often speech over an answer is recognised until its words are known. The answer waits for them."""
FIRST_JUDGED_MS: Final = 600
"""How much audio of it there is the first time: a third of a second of speech after its pre-roll."""

LEAD_IN: Final = bytes(PREROLL_FRAMES * FRAME_BYTES)
CUT_WITHIN_BYTES: Final = 2 * SAMPLE_BYTES * MICROPHONE_HZ
WINDOW_SAMPLES: Final = 800
"""A twentieth of a second."""


class Recognized(Struct, frozen=True):
    text: str
    took_ms: float
    at_s: float
    """When it was known, by the clock of the loop."""


@dataclass(frozen=True, slots=True)
class Recognition:
    """The recognition of the audio up to some moment. It may still be running."""

    task: "asyncio.Task[Recognized]"
    audio_bytes: int

    @property
    def has_failed(self) -> bool:
        return has_failed(self.task)


@dataclass(frozen=True, slots=True)
class Answered:
    """A turn whose answer has begun."""

    turn: str
    text: str
    at_s: float


class TurnStatus(Enum):
    HEARING = auto()
    """The user is speaking, or the text is not known yet."""
    AWAITED = auto()
    """The same, but the session has ended the audio and given the turn its id. It waits for the text, or to learn that
    the turn is empty."""
    FINAL = auto()
    """The text is final. The user may still go on."""


class Turn:
    """The text of a turn and the work on it. Its audio is kept by the endpointer.

    In a long turn the text of the older part is known, and its audio has been dropped.
    """

    def __init__(
        self,
        id: str,
        recognizer: Recognizer,
        tasks: BackgroundTasks,
        expects: Expectation = Expectation.NOTHING,
        before: "Answered | None" = None,
        *,
        is_over_answer: bool = False,
        is_echoed: bool = False,
    ) -> None:
        self.id = id
        self.before = before
        """The turn before it, if that was answered a moment ago: this one may only complete it."""
        self.expects = expects
        """What the answer before it asked for."""
        self.is_over_answer = is_over_answer
        """Whether it began while an answer was under way."""
        self.is_echoed = is_echoed
        """Whether the microphone heard the answer then."""
        self.is_unclear = is_over_answer
        """Whether it is not known yet if the sound over the answer is meant for the assistant. Until then, nobody is
        told of the turn."""
        self.clear_frames = 0
        """How many frames are clearly speech."""
        self.completes: Answered | None = None
        """The turn before it, if its own words only complete that one's. The text is of both."""
        self.continues: str | None = None
        """The id under which it was final before the user went on."""
        self.continued_text = ""
        """The text that was final then."""
        self.text = ""
        """The last final text."""
        self.status = TurnStatus.HEARING
        self.caption = ""
        """The interim text that was last shown."""
        self.next_caption_ms = FIRST_JUDGED_MS if is_over_answer else CAPTION_EVERY_MS
        """How much audio there is when the text so far is recognised again."""
        self.early: Recognition | None = None
        """The recognition that began when the sound stopped, as long as there was no sound since."""
        self.guess: Recognition | None = None
        """The recognition of what may be the whole turn: that of the last pause, or of the end."""
        self.paused_after: tuple[str, int] | None = None
        """The words before the last pause, and how much audio there was before what follows it."""
        self.stall_timer: asyncio.TimerHandle | None = None
        self.pause_tasks = BackgroundTasks(tasks)
        """The work that began with a pause, which is cancelled if the user goes on."""
        self.caption_tasks = BackgroundTasks(tasks)
        self._known: list[Recognized] = []
        self._recognizer = recognizer

    @property
    def is_final(self) -> bool:
        return self.status is TurnStatus.FINAL

    @property
    def is_awaited(self) -> bool:
        return self.status is TurnStatus.AWAITED

    @property
    def completion(self) -> Completion | None:
        """How it was completed after its first words were final; None if it was not."""
        if self.completes is not None:
            return Completion(self.completes.text, is_answered=True)
        return None if self.continues is None else Completion(self.continued_text, is_answered=False)

    @property
    def known_ms(self) -> float:
        """How long it took to recognise the known part."""
        return sum(part.took_ms for part in self._known)

    async def recognize(self, audio: bytes, urgency: Urgency) -> Recognized:
        """Returns the text of audio that follows the known part. Raises `SpeechError`."""
        began_s = asyncio.get_running_loop().time()
        # Audio that was cut off from what came before begins with speech, and the recogniser loses its first word.
        text = await self._recognizer.recognize(LEAD_IN + audio if self._known else audio, urgency)
        now_s = asyncio.get_running_loop().time()
        return Recognized(text, (now_s - began_s) * 1_000, now_s)

    async def recognize_last_piece(
        self, whole: "asyncio.Task[Recognized]", audio: bytes, paused_after: tuple[str, int]
    ) -> Recognized:
        """Returns the text of the whole audio. If that has no more words than there were before the pause, what came
        after it is recognised alone: recognisers drop a short word after a question that seems to be over ("what time
        is it in … Rome"). Raises `SpeechError`."""
        recognized, (before, size) = await whole, paused_after
        if _words(recognized.text) != _words(before):
            return recognized
        began_s = asyncio.get_running_loop().time()
        piece = await self._recognizer.recognize(audio[size:], Urgency.SOON)
        now_s = asyncio.get_running_loop().time()
        took_ms = recognized.took_ms + (now_s - began_s) * 1_000
        return Recognized(f"{before.rstrip(' .,!?')} {piece}" if piece else recognized.text, took_ms, now_s)

    def keep(self, part: Recognized) -> None:
        """Adds to the known part. The caller drops its audio."""
        self._known.append(part)
        self.paused_after = None
        self.next_caption_ms = 0
        self.early = None

    def join(self, text: str) -> str:
        """Returns the text of the whole turn, with this as its end."""
        return " ".join(filter(None, [*(part.text for part in self._known), text]))

    def take_early(self) -> Recognition | None:
        """Takes the recognition that began when the sound stopped, if it can be used."""
        early, self.early = self.early, None
        if early is not None and not early.has_failed:
            return early
        self.caption_tasks.cancel()
        return None

    def continue_as(self, id: str) -> None:
        """Reopens the turn under a new id, because the user continues after the text was final."""
        self.continues, self.id, self.status = self.id, id, TurnStatus.HEARING
        self.continued_text = self.text

    def close(self) -> None:
        self.pause_tasks.cancel()
        self.caption_tasks.cancel()
        if self.stall_timer is not None:
            self.stall_timer.cancel()


class TurnListener(Protocol):
    """Receives what the user says."""

    def is_answering(self) -> bool:
        """Whether an answer is being made or played. A noise is not enough to interrupt it."""
        ...

    def on_possible_speech(self, *, possible: bool) -> None:
        """Somebody may be speaking over the answer, which should wait. It is no longer possible if nobody does, or
        after `on_hold`."""
        ...

    def on_hold(self) -> None:
        """Somebody speaks over the answer, which should wait until the words are known. `on_release` or `on_barge_in`
        follows, unless the session drops the answer first."""
        ...

    def on_release(self) -> None:
        """It was a noise, or words that want no answer: the answer goes on."""
        ...

    def is_asking(self) -> bool:
        """Whether the answer asks something, so that a yes is a reply to it."""
        ...

    def on_speech(self, turn: Turn) -> None:
        """The user begins to speak. If it is a noise, nothing more comes of this turn."""
        ...

    def on_barge_in(self) -> None:
        """The user speaks over the answer: it is not wanted any more."""
        ...

    def on_continued(self, turn: Turn) -> None:
        """The user continues a turn that was final. It has a new id."""
        ...

    def on_caption(self, turn: Turn) -> None:
        """The interim text has changed."""
        ...

    def on_guess(self, turn: Turn, text: str) -> None:
        """The user pauses: this may be the whole turn."""
        ...

    def on_resumed(self) -> None:
        """The pause is over: the guess was not the whole turn."""
        ...

    def on_final(self, turn: Turn, timings: Timings) -> None: ...

    def on_empty(self, turn: str) -> None:
        """The session ended the audio, but nothing was said in this turn."""
        ...

    def on_failure(self, turn: str | None, message: str) -> None:
        """A turn could not be recognised. It has an id if the session ended the audio."""
        ...


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def find_cut(audio: bytes) -> int:
    """Finds the best place to cut speech: the middle of the quietest window of its last two seconds."""
    start = max(0, len(audio) - CUT_WITHIN_BYTES)
    samples = np.abs(np.frombuffer(audio, np.int16)[start // 2 :].astype(np.int32))
    windows = samples[: len(samples) - len(samples) % WINDOW_SAMPLES].reshape(-1, WINDOW_SAMPLES)
    return start + 2 * (WINDOW_SAMPLES * int(windows.sum(axis=1).argmin()) + WINDOW_SAMPLES // 2)

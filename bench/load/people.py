"""The two kinds of callers, and how often each speaks."""

from collections.abc import Sequence
from itertools import count, cycle
from pathlib import Path
from typing import Final, Protocol

from bench.load.call import Call
from bench.load.crowd import Crowd
from bench.load.ears import STT_MS, TTS_MS
from bench.load.ledger import Ledger
from bench.load.line import Line
from bench.load.microphone import EVERY_FRAMES, FRAME_MS, SOONER_STEPS, STEP_FRAMES
from bench.load.model import HEARS_MS, RESTS_MS
from bench.load.phrases import Phrase
from bench.load.talk import Talk, Times


class People(Protocol):
    @property
    def first(self) -> int:
        """How many come and go before the others, so that everything that is loaded once is loaded."""
        ...

    @property
    def warm_s(self) -> float:
        """How long it takes until all of them have had their first turn."""
        ...

    @property
    def phrases_dir(self) -> Path | None:
        """The folder of the phrases, for a server that listens."""
        ...

    def make_crowd(self, address: tuple[str, int], sessions: int) -> Crowd: ...


class Scripted:
    """Callers that send silence and are answered by the script."""

    first: Final = 1
    ramp_s: Final = (HEARS_MS + RESTS_MS) / 1000
    warm_s: Final = ramp_s + 0.2
    phrases_dir: Final = None

    def make_crowd(self, address: tuple[str, int], sessions: int) -> Crowd:
        return Crowd(address, Call, ramp_s=self.ramp_s, late_s=1.0)


class Speaking:
    """Callers that say the phrases in rotation."""

    first: Final = 3
    warm_s: Final = (EVERY_FRAMES + SOONER_STEPS * STEP_FRAMES) * FRAME_MS / 1000

    def __init__(self, phrases: Sequence[Phrase], phrases_dir: Path, silences_ms: Sequence[int]) -> None:
        self._times = Times(silences_ms, STT_MS, TTS_MS)
        self.phrases_dir = phrases_dir
        self._phrases = cycle(phrases)

    def make_crowd(self, address: tuple[str, int], sessions: int) -> Crowd:
        arrived = count()

        def make_talk(address: tuple[str, int], ledger: Ledger) -> Line:
            place = next(arrived)
            first_at = EVERY_FRAMES * place // sessions // STEP_FRAMES * STEP_FRAMES
            return Talk(address, ledger, self._phrases.__next__, self._times, first_at, seed=place)

        # The server reports what ended the turn only after the answer was played, which takes some seconds.
        return Crowd(address, make_talk, ramp_s=1.0, late_s=8.0)

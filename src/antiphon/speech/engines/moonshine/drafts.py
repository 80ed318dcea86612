"""What speech was taken for when less of it was heard. While somebody speaks it is recognised again and again."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from time import monotonic
from typing import Final

from antiphon.audio.pcm import Signal
from antiphon.sound_format import MICROPHONE_HZ

BEGINNING: Final = MICROPHONE_HZ // 2
"""Samples by which speech is known again. No two microphones hear the same for half a second."""
FRESH_S: Final = 3.0
MAX_DRAFTS: Final = 256
"""As many people may be speaking. A draft is some tokens, and one that is wrong costs a few milliseconds."""


class Drafts:
    """Any number of threads may use it at the same time."""

    def __init__(self, now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self._drafts: OrderedDict[int, tuple[float, Sequence[int]]] = OrderedDict()
        self._looking = Lock()

    def find(self, signal: Signal) -> Sequence[int]:
        """Tokens that speech with this beginning probably begins with."""
        key = _key(signal)
        with self._looking:
            at_s, tokens = self._drafts.get(key, (0.0, ()))
            return tokens if self._now_s() < at_s + FRESH_S else ()

    def keep(self, signal: Signal, tokens: Sequence[int]) -> None:
        if len(signal) < BEGINNING:
            return
        key = _key(signal)
        with self._looking:
            # The last one is mostly a full stop, put where the speech broke off.
            self._drafts[key] = (self._now_s(), tokens[:-1])
            self._drafts.move_to_end(key)
            if len(self._drafts) > MAX_DRAFTS:
                self._drafts.popitem(last=False)


def _key(signal: Signal) -> int:
    return hash(signal[:BEGINNING].tobytes())

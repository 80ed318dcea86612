"""Wake words: short phrases such as "hey Jarvis" that a small network finds in a microphone's audio, on this machine.

The models are microWakeWord's, which come with the package pymicro-wakeword (Apache-2.0). They were trained with a
pause after the word, and without one they are less certain. Their own cutoffs are kept all the same. With 0.7 instead
of 0.97, hey_jarvis is heard 6 times instead of 3 in 20 sentences without a pause, but it also wakes 3 times instead of
never in 125 minutes of other sentences (flite's voices), and what is said then leaves the machine. Lower cutoffs of the
other words have the same price: okay_nabu at 0.7 is heard 18 times instead of 13, and wakes 3 times instead of once in
166 minutes. To hear a doubtful word once more with silence after it does as well as a lower cutoff, and no better.
"""

from pathlib import Path
from typing import Final

from pymicro_wakeword import MicroWakeWord, MicroWakeWordFeatures, Model

from antiphon.audio import AudioError
from antiphon.audio.pcm import level_dbfs
from antiphon.sound_format import MICROPHONE_HZ, SAMPLE_BYTES

WAKE_WORDS: Final = tuple(sorted(model.value for model in Model))

BYTES_PER_MS: Final = MICROPHONE_HZ * SAMPLE_BYTES // 1_000
FRAME_BYTES: Final = 20 * BYTES_PER_MS
RECENT_BYTES: Final = 1_000 * BYTES_PER_MS
"""How much audio is kept while it listens: about a wake word."""
DECIDE_BYTES: Final = 240 * BYTES_PER_MS
"""How much is heard after the wake word before it is decided where the request begins."""
PAUSE_FRAMES: Final = 5
"""How long a pause is after which nothing belongs to the wake word any more."""
PAUSE_DROP_DB: Final = 28.0
"""How far below the loudest frame of the wake word a pause is. With 20 dB an "s" is one."""


LAGS_MS: Final = {"alexa": 200, "hey_jarvis": 200, "hey_mycroft": 0, "okay_nabu": 60}
"""How long the next word has been said already when a network reports its word, if somebody goes on without a pause."""
USUAL_LAG_MS: Final = 100


class WakeWord:
    """Listens for one wake word. It takes 16 kHz PCM16 in pieces of any length, from one thread at a time."""

    def __init__(self, name: str) -> None:
        """Loads a wake word of the package by its name, or another by its JSON file's path. Raises `AudioError`."""
        self._features = MicroWakeWordFeatures()
        self._detector = _load(name)
        self._lag_bytes = LAGS_MS.get(name, USUAL_LAG_MS) * BYTES_PER_MS
        self._recent = b""
        self._following: bytes | None = None
        """What follows the wake word, once it was heard."""

    @property
    def phrase(self) -> str:
        """What is said to wake it, as in "Hey Jarvis"."""
        return str(self._detector.wake_word)

    def hear(self, pcm: bytes) -> bytes | None:
        """Takes more audio. A quarter of a second after the wake word it returns what was said since, without the end
        of the wake word; None before. Then it has to be reset."""
        for at in range(0, len(pcm), FRAME_BYTES):
            piece = pcm[at : at + FRAME_BYTES]
            if self._following is not None:
                self._following += piece
                continue
            self._recent = (self._recent + piece)[-RECENT_BYTES:]
            if self._completes(piece):
                self._following = self._recent[len(self._recent) - self._lag_bytes :]
        decided = self._lag_bytes + DECIDE_BYTES
        if self._following is None or len(self._following) < decided:
            return None
        begin = _find_request(self._following[:decided], loudest_db=max(_levels_db(self._recent)))
        return self._following[begin:]

    def reset(self) -> None:
        """Forgets what was heard."""
        self._features.reset()
        self._detector.reset()
        self._recent, self._following = b"", None

    def _completes(self, pcm: bytes) -> bool:
        is_heard = False
        for features in self._features.process_streaming(pcm):
            # All of it goes through the network, so that the next piece finds it in the right state.
            is_heard = bool(self._detector.process_streaming(features)) or is_heard
        return is_heard


def _find_request(pcm: bytes, *, loudest_db: float) -> int:
    """Returns where the first pause begins: what was said before it is the end of the wake word. Without a pause all of
    it is the request."""
    quiet = 0
    for place, level_db in enumerate(_levels_db(pcm)):
        quiet = quiet + 1 if level_db < loudest_db - PAUSE_DROP_DB else 0
        if quiet == PAUSE_FRAMES:
            return (place + 1 - PAUSE_FRAMES) * FRAME_BYTES
    return 0


def _levels_db(pcm: bytes) -> list[float]:
    """Returns the level of each frame."""
    return [level_dbfs(pcm[at : at + FRAME_BYTES]) for at in range(0, len(pcm), FRAME_BYTES)]


def _load(name: str) -> MicroWakeWord:
    if name in WAKE_WORDS:
        return MicroWakeWord.from_builtin(Model(name))
    path = Path(name)
    if path.suffix != ".json":
        raise AudioError(
            f'There is no wake word "{name}". There are {", ".join(WAKE_WORDS)}, and others of microWakeWord by the'
            " path of their JSON file."
        )
    try:
        return MicroWakeWord.from_config(path)
    except OSError as error:
        raise AudioError(f"The wake word {path} cannot be read: {error.strerror}.") from error
    except (KeyError, ValueError, RuntimeError) as error:
        raise AudioError(f"{path} does not describe a model of microWakeWord ({error}).") from error

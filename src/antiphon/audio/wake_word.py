"""Wake words: short phrases such as "hey Jarvis" that a small network finds in a microphone's audio, on this machine.

The models are microWakeWord's, which come with the package pymicro-wakeword (Apache-2.0).
"""

from pathlib import Path
from typing import Final

from pymicro_wakeword import MicroWakeWord, MicroWakeWordFeatures, Model

from antiphon.audio import AudioError

WAKE_WORDS: Final = tuple(sorted(model.value for model in Model))


class WakeWord:
    """Listens for one wake word. It takes 16 kHz PCM16 in pieces of any length, from one thread at a time."""

    def __init__(self, name: str) -> None:
        """Loads a wake word of the package by its name, or another by its JSON file's path. Raises `AudioError`."""
        self._features = MicroWakeWordFeatures()
        self._detector = _load(name)

    @property
    def phrase(self) -> str:
        """What is said to wake it, as in "Hey Jarvis"."""
        return str(self._detector.wake_word)

    def hear(self, pcm: bytes) -> bool:
        """Takes more audio. Returns whether it completes the wake word."""
        is_heard = False
        for features in self._features.process_streaming(pcm):
            # All of it goes through the network, so that the next piece finds it in the right state.
            is_heard = bool(self._detector.process_streaming(features)) or is_heard
        return is_heard

    def reset(self) -> None:
        """Forgets what was heard. Without this, one wake word would be reported several times."""
        self._features.reset()
        self._detector.reset()


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

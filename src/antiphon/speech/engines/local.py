"""A synthesiser whose voices are loaded into this process."""

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from threading import Lock
from typing import Final, Protocol

from antiphon.sound_format import SPEECH_HZ
from antiphon.speech.base import Sound, Urgency, Voice
from antiphon.speech.workers import Workers

SLOWEST: Final = 0.5
FASTEST: Final = 2.0


class LoadedVoice(Protocol):
    """A voice in memory. It is thread-safe."""

    def speak(self, text: str, speed: float) -> Iterator[Sound]:
        """Yields the speech at `SPEECH_HZ`, piece by piece. The work is done as the pieces are taken."""
        ...


class LocalSynthesizer:
    """Loads each voice at its first use, and makes each piece of speech in a job of its own for the workers."""

    def __init__(
        self,
        name: str,
        voices: Sequence[Voice],
        load: Callable[[str], LoadedVoice],
        workers: Workers,
        *,
        max_loaded: int,
    ) -> None:
        """The first of the voices is the default. `load` opens one by its id; it may raise `SpeechError`.

        Of more than `max_loaded` voices, the least recently used is unloaded.
        """
        self._name = name
        self._voices = {voice.id: voice for voice in voices}
        self._load = load
        self._workers = workers
        self._max_loaded = max_loaded
        self._loaded: OrderedDict[str, LoadedVoice] = OrderedDict()
        self._looking = Lock()
        self._loading = Lock()

    @property
    def name(self) -> str:
        return self._name

    @property
    def output_hz(self) -> int:
        return SPEECH_HZ

    @property
    def voices(self) -> Sequence[Voice]:
        return tuple(self._voices.values())

    def load(self, voice: str | None = None) -> LoadedVoice:
        """Loads the voice now, in this thread. Raises `SpeechError`."""
        return self._voice(self._known(voice))

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        sounds = self._sounds(text, self._known(voice), min(FASTEST, max(SLOWEST, speed)))
        sound = await self._workers.run(lambda _: next(sounds, None), urgency, refusable=not goes_on)
        while sound is not None:
            yield sound
            # Listeners who have heard nothing yet go first, but no sentence is broken off.
            sound = await self._workers.run(lambda _: next(sounds, None), Urgency.SOON, refusable=False)

    async def aclose(self) -> None:
        self._loaded.clear()

    def _sounds(self, text: str, id: str, speed: float) -> Iterator[Sound]:
        # A generator, so that a voice is loaded by a worker.
        yield from self._voice(id).speak(text, speed)

    def _known(self, voice: str | None) -> str:
        return voice if voice is not None and voice in self._voices else next(iter(self._voices))

    def _voice(self, id: str) -> LoadedVoice:
        if (voice := self._find(id)) is not None:
            return voice
        # Loaded voices stay usable meanwhile.
        with self._loading:
            if (voice := self._find(id)) is not None:
                return voice
            voice = self._load(id)
            with self._looking:
                self._loaded[id] = voice
                if len(self._loaded) > self._max_loaded:
                    self._loaded.popitem(last=False)
            return voice

    def _find(self, id: str) -> LoadedVoice | None:
        with self._looking:
            if id in self._loaded:
                self._loaded.move_to_end(id)
            return self._loaded.get(id)

"""Wrappers around any engine: a synthesiser that caches, and a recogniser that refuses optional work."""

from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from typing import Final

from antiphon.speech.base import Recognizer, Sound, SpeechBusy, SpeechRequest, Synthesizer, Urgency, Voice
from antiphon.speech.clauses import Clauses
from antiphon.speech.spoken import speakable

MAX_BYTES: Final = 8_000_000
"""Three minutes of audio at 22,050 Hz."""
MAX_ENTRY_SHARE: Final = 1 / 8
"""The largest share of the cache for one entry: longer texts are seldom repeated, and would evict those that are."""


class WrappedSynthesizer:
    """What every wrapper takes from the synthesiser inside. Closing it closes the synthesiser."""

    def __init__(self, synthesizer: Synthesizer) -> None:
        self._synthesizer = synthesizer

    @property
    def name(self) -> str:
        return self._synthesizer.name

    @property
    def output_hz(self) -> int:
        return self._synthesizer.output_hz

    @property
    def voices(self) -> Sequence[Voice]:
        return self._synthesizer.voices

    async def aclose(self) -> None:
        await self._synthesizer.aclose()


class CachingSynthesizer(WrappedSynthesizer):
    """Caches what a synthesiser has spoken, and evicts the least recently used."""

    def __init__(self, synthesizer: Synthesizer, max_bytes: int = MAX_BYTES) -> None:
        super().__init__(synthesizer)
        self._max_bytes = max_bytes
        self._sounds: OrderedDict[SpeechRequest, tuple[Sound, ...]] = OrderedDict()
        self._bytes = 0
        self._fixed: set[str] = set()
        """Texts that were warmed: they are evicted last."""

    async def warm(self, texts: Iterable[str], *, voice: str | None = None, speed: float = 1.0) -> None:
        """Fills the cache with these texts, clause by clause as an answer is spoken. Raises `SpeechError`."""
        for text in texts:
            clauses = Clauses()
            for spoken in map(speakable, [*clauses.push(text), *clauses.finish()]):
                self._fixed.add(spoken)
                async for _ in self.speak(spoken, voice=voice, speed=speed):
                    pass

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        said = SpeechRequest(text, self._known(voice), speed)
        if (known := self._sounds.get(said)) is not None:
            self._sounds.move_to_end(said)
            for sound in known:
                yield sound
            return
        made: list[Sound] = []
        sounds = self._synthesizer.speak(text, voice=voice, speed=speed, urgency=urgency, goes_on=goes_on)
        try:
            async for sound in sounds:
                made.append(sound)
                yield sound
        finally:
            if isinstance(sounds, AsyncGenerator):
                await sounds.aclose()
        self._keep(said, tuple(made))

    async def aclose(self) -> None:
        self._sounds.clear()
        self._bytes = 0
        await super().aclose()

    def _known(self, voice: str | None) -> str | None:
        """Returns the voice that is used: the default replaces an unknown one."""
        ids = [each.id for each in self.voices]
        return voice if voice in ids else next(iter(ids), None)

    def _keep(self, said: SpeechRequest, sounds: tuple[Sound, ...]) -> None:
        if not sounds or _bytes(sounds) > self._max_bytes * MAX_ENTRY_SHARE:
            return
        self._bytes += _bytes(sounds) - _bytes(self._sounds.get(said, ()))
        self._sounds[said] = sounds
        self._sounds.move_to_end(said)
        while self._bytes > self._max_bytes:
            oldest = next((each for each in self._sounds if each.text not in self._fixed), next(iter(self._sounds)))
            self._bytes -= _bytes(self._sounds.pop(oldest))


def _bytes(sounds: Sequence[Sound]) -> int:
    return sum(len(sound.pcm) for sound in sounds)


OPTIONAL_WORK_REFUSED: Final = "This recogniser does no optional work."


class WrappedRecognizer:
    """What every wrapper takes from the recogniser inside. Closing it closes the recogniser."""

    def __init__(self, recognizer: Recognizer) -> None:
        self._recognizer = recognizer

    @property
    def name(self) -> str:
        return self._recognizer.name

    async def aclose(self) -> None:
        await self._recognizer.aclose()


class UrgentOnlyRecognizer(WrappedRecognizer):
    """Refuses optional work, for a recogniser whose requests cost money."""

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        if urgency is Urgency.IDLE:
            raise SpeechBusy(OPTIONAL_WORK_REFUSED)
        return await self._recognizer.recognize(pcm, urgency)

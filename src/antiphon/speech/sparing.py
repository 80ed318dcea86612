"""A recogniser that is spared what nobody waits for, since each request has a price."""

from typing import Final

from antiphon.speech.base import Recognizer, SpeechBusy, Urgency

SPARED: Final = "This recogniser is kept for what somebody waits for."


class Sparing:
    """Wraps any recogniser, and closes it with itself. What is only nice to have is always refused."""

    def __init__(self, recognizer: Recognizer) -> None:
        self._recognizer = recognizer

    @property
    def name(self) -> str:
        return self._recognizer.name

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        if urgency is Urgency.IDLE:
            raise SpeechBusy(SPARED)
        return await self._recognizer.recognize(pcm, urgency)

    async def aclose(self) -> None:
        await self._recognizer.aclose()

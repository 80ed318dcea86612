"""What a voice sounds like: one short sentence, beside the conversation."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from antiphon.errors import AntiphonError
from antiphon.session.outbox import Outbox

SAMPLE: Final = "Hello, this is how I sound."

MakeSample = Callable[[str, str | None, float], Awaitable[bytes]]
"""Says a text in a voice, None for the usual one, at a speed: PCM16 at the wire's rate. Raises an `AntiphonError` whose
text can be shown."""


class Sampler:
    """Makes one sample at a time: of those that were asked for meanwhile, only the last is wanted."""

    def __init__(self, make: MakeSample, outbox: Outbox, refuse: Callable[[str], None]) -> None:
        self._make = make
        self._outbox = outbox
        self._refuse = refuse
        self._task: asyncio.Task[None] | None = None

    def start(self, voice: str | None, speed: float) -> None:
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.create_task(self._run(voice, speed))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self, voice: str | None, speed: float) -> None:
        try:
            pcm = await self._make(SAMPLE, voice, speed)
        except AntiphonError as error:
            self._refuse(str(error))
        else:
            self._outbox.send_audio(0, 0, pcm, last=True, once=True)

"""A conversation with a realtime model whose server is a fake on the same event loop."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Final

from antiphon.models.live import InputTranscript, LiveContext, LiveEvent, OutputAudio, OutputText
from antiphon.models.providers.openai_realtime import OpenAIRealtime, RealtimeEndpoint, openai_endpoint
from antiphon.models.providers.realtime_profiles import RealtimeOptions
from antiphon.tools.spec import Mode
from antiphon.transcript import Entry, Message, Transcript
from tests.fakes.paced import Listener
from tests.fakes.realtime_server import RealtimeServer
from tests.fakes.vendor_answers import Output

KEY: Final = "sk-secret-of-ada"
NOW_S: Final = 1_800_000_000
QUIET: Final = bytes(640)
LOUD: Final = 8 * (20 * b"\x00\x40" + 20 * b"\x00\xc0")
"""20 ms of a tone, which counts as speech."""


LONG: Final = "one two three four five six seven eight nine ten"
"""An answer that takes a second to generate, and four to speak."""


def script(*answers: Sequence[Output]) -> RealtimeServer:
    """A server that gives these answers, one after the other."""
    left = list(answers)
    return RealtimeServer(lambda messages, asked: left.pop(0))


def sent_after(server: RealtimeServer, kind: str) -> list[str]:
    """The types of the events that the client has sent after the first of this type, without audio."""
    return server.kinds[server.kinds.index(kind) + 1 :]


class FixedClock:
    """A clock that stands still; only timers of the loop advance."""

    def now(self, zone: tzinfo) -> datetime:
        return datetime.fromtimestamp(NOW_S, zone)

    def now_ms(self) -> int:
        return NOW_S * 1000

    def monotonic(self) -> float:
        return 0.0


@dataclass
class RealtimeTalk:
    server: RealtimeServer
    model: OpenAIRealtime
    listener: Listener

    @property
    def events(self) -> list[LiveEvent]:
        return self.listener.events

    @property
    def story(self) -> list[LiveEvent]:
        """The events without the pieces of answers and transcripts that are not final."""
        return [
            event
            for event in self.events
            if not isinstance(event, OutputText | OutputAudio)
            and not (isinstance(event, InputTranscript) and not event.is_final)
        ]

    def hear(self, ms: int = 500, *, loud: bool = True, playing: bool = False) -> None:
        for _ in range(ms // 20):
            self.model.send_audio(LOUD if loud else QUIET, playing=playing)

    async def speak(self) -> None:
        """Says something to the model, and waits until nothing more happens."""
        self.hear()
        self.hear(1_000, loud=False)
        await self.listener.settle()


def endpoint_of(server: RealtimeServer, model: str = "gpt-realtime-2") -> RealtimeEndpoint:
    return openai_endpoint(model, server.url, KEY)


def context_of(*history: Message, system: str = "Be kind.", tools: Sequence[Mapping[str, Any]] = ()) -> LiveContext:
    transcript = Transcript(Entry(f"before-{place}", message) for place, message in enumerate(history))
    return LiveContext(system, transcript, history, tools, Mode.VOICE)


@asynccontextmanager
async def realtime_talk(
    server: RealtimeServer,
    *history: Message,
    endpoint: RealtimeEndpoint | None = None,
    options: RealtimeOptions | None = None,
    answers: bool = True,
) -> AsyncIterator[RealtimeTalk]:
    """Connects, and checks at the end that the server had nothing to refuse unless a test expects it."""
    async with server:
        model = OpenAIRealtime(endpoint or endpoint_of(server), options, FixedClock())
        await model.connect(context_of(*history))
        listener = Listener(model, answers=answers)
        try:
            yield RealtimeTalk(server, model, listener)
        finally:
            await model.close()
            await listener.reading

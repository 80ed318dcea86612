"""A text model that streams events which a test has made."""

from collections.abc import AsyncIterator, Iterator

from antiphon.models.base import Event, Prompt, TextProfile


class StreamingModel:
    """Streams these events, and knows whether its reply was closed."""

    profile = TextProfile("talker", needs_network=False)

    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events
        self.is_closed = False

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        try:
            for event in self._events:
                yield event
        finally:
            self.is_closed = True

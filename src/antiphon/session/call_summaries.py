"""The summaries of calls that a model writes after the call, beside the sessions, which may be over by then."""

import asyncio
from collections.abc import Sequence
from typing import Final

from antiphon.continuity.summarizer import Summarizer
from antiphon.errors import AntiphonError
from antiphon.storage.conversations import VoiceCallStore
from antiphon.telemetry.log import get_logger
from antiphon.transcript import Message

SUMMARY_S: Final = 20.0
"""How long a model may take for the summary of a call, including the wait for its turn."""
AT_ONCE: Final = 4
"""How many summaries are written at the same time. A server that drains ends many calls at once."""
CLOSE_S: Final = 2.0
"""How long a process that stops waits for the summaries under way."""

log = get_logger(__name__)


class CallSummaries:
    """A call is stored with an extractive summary. If the model fails or takes too long, it keeps that one."""

    def __init__(self, store: VoiceCallStore, summarizer: Summarizer) -> None:
        self._store = store
        self._summarizer = summarizer
        self._places = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, call_id: str, messages: Sequence[Message]) -> None:
        """Begins to summarise a call that has ended."""
        task = asyncio.create_task(self._write(call_id, messages))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Waits a moment for the summaries under way, and gives up those that take longer."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=CLOSE_S)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _write(self, call_id: str, messages: Sequence[Message]) -> None:
        try:
            async with asyncio.timeout(SUMMARY_S), self._places:
                summary = await self._summarizer.summarize(messages)
            if summary:
                await self._store.set_summary(call_id, summary)
        except (AntiphonError, TimeoutError) as error:
            log.warning("call_not_summarized", call=call_id, error=type(error).__name__)
        except Exception:
            log.exception("call_not_summarized", call=call_id)

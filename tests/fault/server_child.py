"""A whole server with a slow model. It reads its pickled `Node` from stdin, says its port, and serves.

The model does what the last typed words say. "tell NAME COUNT" is answered by so many numbered words, a tenth of a
second each. With "look first" before it, the time is looked up once. "who said what" is answered by the roles of all
messages that the model was given. "recite COUNT" is answered by so many words, of which the voice can be read. With
"book" before it, a timer with that label is set first.

The voice hears the words of `RECITED`, and what it says can be read (`tests/fakes/spelling.py`). With the model
"native", the server itself cannot speak: only the model has a voice.

With "dies-after=METHOD:COUNT", it kills itself after that method of the store of reminders has been called as often.
"""

import asyncio
import os
import pickle
import signal
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from antiphon.clock import SystemClock
from antiphon.compose import open_app
from antiphon.config import Settings, Storage
from antiphon.models.base import CallRequested, Event, MessageComplete, Prompt, StopReason, TextDelta, TextProfile
from antiphon.security.origin import own_origins
from antiphon.security.quota import Quota
from antiphon.server.app import make_app
from antiphon.server.authenticator import Authenticator
from antiphon.server.serving import Server, listen, run_loop
from antiphon.services.reminders import Scheduler
from antiphon.session import hub as hub_module
from antiphon.session import stored_session
from antiphon.session.nodes import Nodes
from antiphon.session.ringing import Listeners
from antiphon.telemetry import log
from antiphon.tools.call import ToolCall
from antiphon.transcript import AssistantMessage, ToolMessage, UserMessage
from tests.fakes.paced import Paced
from tests.fakes.spelling import SpellingVoice
from tests.fakes.voice import FakeEngines
from tests.fault.servers import (
    BOOK,
    DIES_AFTER,
    LOOK_FIRST,
    QUESTION_WORDS,
    RECITE,
    RESTARTING,
    ROLES,
    Node,
    recital,
    story,
)

NAMES = {UserMessage: "user", AssistantMessage: "assistant", ToolMessage: "tool"}


class Storyteller:
    profile = TextProfile("storyteller", needs_network=False)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        asked = next(message.text for message in reversed(prompt.messages) if isinstance(message, UserMessage))
        looked = any(isinstance(message, ToolMessage) for message in prompt.messages)
        booked = isinstance(prompt.messages[-1], ToolMessage)
        if asked.startswith(BOOK) and not booked:
            yield CallRequested(ToolCall(None, "set_timer", {"duration": "20 hours", "label": asked}))
            yield MessageComplete(StopReason.CALLS)
            return
        if asked.startswith(LOOK_FIRST) and not looked:
            yield CallRequested(ToolCall(None, "get_current_time", {}))
            yield MessageComplete(StopReason.CALLS)
            return
        roles = " ".join(NAMES[type(message)] for message in prompt.messages)
        answer = roles if asked == ROLES else recital(asked) if RECITE in asked else story(asked)
        for word in answer.split():
            yield TextDelta(f"{word} ")
        yield MessageComplete(StopReason.DONE)


def die_after(store: object, name: str, count: int) -> None:
    """Has the process killed in the moment after its so many-eth write by this method: nothing after it happens."""
    method, left = getattr(store, name), [count]

    async def call(*args: Any) -> Any:
        outcome = await method(*args)
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome

    setattr(store, name, call)


async def main(node: Node) -> None:
    log.configure(json=True, level="info")
    model_name, drain_s = node.model, node.drain_s
    SystemClock.now_ms = lambda self: time.time_ns() // 1_000_000 + node.clock_ms  # type: ignore[method-assign]
    if node.lease_ms is not None:
        stored_session.LEASE_MS = hub_module.LEASE_MS = node.lease_ms  # type: ignore[misc, attr-defined]
        hub_module.RENEW_S = node.lease_ms / 1000 / 3  # type: ignore[misc]
    settings = Settings(project_dir=node.folder, data_dir=node.folder, storage=Storage(url=node.url))
    async with open_app(settings) as app:
        sockets = listen("127.0.0.1", 0)
        port = int(sockets[0].getsockname()[1])
        model = Paced(await app.assistant() if model_name == "builtin" else Storyteller())
        voice = SpellingVoice()
        fakes = FakeEngines()
        fakes.words.say(" ".join(QUESTION_WORDS))

        async def synthesize(text: str, voice_id: str | None, speed: float) -> bytes:
            return b"".join([sound.pcm async for sound in voice.speak(text)])

        speaks = None if model_name == "native" else synthesize
        hub = app.hub(app.ladders(model, fakes.factory(model, voice)), speaks)
        if model_name.startswith(DIES_AFTER):
            method, count = model_name.removeprefix(DIES_AFTER).split(":")
            die_after(app.database.reminders, method, int(count))
        scheduler = Scheduler(app.services.reminders, Listeners(hub, app.database.reminders, app.database.clock))
        authenticator = Authenticator(app.database.tokens, app.database.blocks, app.database.clock, required=False)
        database = app.database
        nodes = Nodes(hub, database.commands, database.changes, lambda user: database.overview.sessions(20, user=user))
        asgi = make_app(hub, authenticator, [], origins=own_origins("127.0.0.1", port), quota=Quota({}))

        async def drain() -> None:
            await scheduler.aclose()
            await hub.drain(drain_s, RESTARTING)

        def started() -> None:
            scheduler.start()
            os.write(1, f"{port}\n".encode())

        looking = asyncio.create_task(nodes.run())
        try:
            await Server(asgi, host="127.0.0.1", port=port, on_drain=drain, on_started=started).serve(sockets)
        finally:
            looking.cancel()
            await asyncio.wait([looking])


if __name__ == "__main__":
    run_loop(main(pickle.load(sys.stdin.buffer)))

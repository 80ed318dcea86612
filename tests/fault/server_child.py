"""A whole server with a slow model: `python -m tests.fault.server_child FOLDER DRAIN_S MODEL`.

It says its port, and serves.

The model does what the last typed words say. "tell NAME COUNT" is answered by so many numbered words, a tenth of a
second each. With "look first" before it, the time is looked up once. "who said what" is answered by the roles of all
messages that the model was given. "recite COUNT" is answered by so many words, of which the voice can be read.

The voice hears the words of `RECITED`, and what it says can be read (`tests/fakes/spelling.py`). With the model
"native", the server itself cannot speak: only the model has a voice.

With "dies-after=METHOD:COUNT", it kills itself after that method of the store of reminders has been called as often.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from antiphon.clock import SystemClock
from antiphon.compose import open_app
from antiphon.config import Settings
from antiphon.models.base import CallRequested, Event, MessageComplete, Prompt, StopReason, TextDelta, TextProfile
from antiphon.security.origin import own_origins
from antiphon.security.quota import Quota
from antiphon.server.app import make_app
from antiphon.server.authenticator import Authenticator
from antiphon.server.serving import Server, listen, run_loop
from antiphon.services.reminders import Scheduler
from antiphon.session.ringing import Listeners
from antiphon.telemetry import log
from antiphon.tools.call import ToolCall
from antiphon.transcript import AssistantMessage, ToolMessage, UserMessage
from tests.fakes.paced import Paced
from tests.fakes.spelling import SpellingVoice
from tests.fakes.voice import FakeEngines
from tests.fault.servers import DIES_AFTER, LOOK_FIRST, QUESTION_WORDS, RECITE, RESTARTING, ROLES, recital, story

NAMES = {UserMessage: "user", AssistantMessage: "assistant", ToolMessage: "tool"}


class Storyteller:
    profile = TextProfile("storyteller", needs_network=False)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        asked = next(message.text for message in reversed(prompt.messages) if isinstance(message, UserMessage))
        looked = any(isinstance(message, ToolMessage) for message in prompt.messages)
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


async def main(folder: Path, drain_s: float, model_name: str) -> None:
    log.configure(json=True, level="info")
    async with open_app(Settings(project_dir=folder, data_dir=folder)) as app:
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
        scheduler = Scheduler(app.services.reminders, Listeners(hub, app.database.reminders, SystemClock()))
        authenticator = Authenticator(app.database.tokens, app.database.blocks, SystemClock(), required=False)
        asgi = make_app(hub, authenticator, [], origins=own_origins("127.0.0.1", port), quota=Quota({}))

        async def drain() -> None:
            await scheduler.aclose()
            await hub.drain(drain_s, RESTARTING)

        def started() -> None:
            scheduler.start()
            os.write(1, f"{port}\n".encode())

        await Server(asgi, host="127.0.0.1", port=port, on_drain=drain, on_started=started).serve(sockets)


if __name__ == "__main__":
    run_loop(main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]))

"""A text model that follows a script, and records its prompts."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from antiphon.models.base import CallRequested, Event, MessageComplete, Prompt, StopReason, TextDelta, TextProfile
from antiphon.tools.call import ToolCall


@dataclass
class ScriptedModel:
    """Each item is one message: a text, or calls. When the script is over it says "The end."."""

    script: list[str | list[ToolCall]]
    prompts: list[Prompt] = field(default_factory=list)
    profile: TextProfile = field(default_factory=lambda: TextProfile("scripted", needs_network=False))

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        self.prompts.append(Prompt(prompt.system, tuple(prompt.messages), prompt.tools, prompt.mode))
        message = self.script.pop(0) if self.script else "The end."
        if isinstance(message, str):
            for word in message.split(" "):
                yield TextDelta(f"{word} ")
            yield MessageComplete(StopReason.DONE)
            return
        for call in message:
            yield CallRequested(call)
        yield MessageComplete(StopReason.CALLS)

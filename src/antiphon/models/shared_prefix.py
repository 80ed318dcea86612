"""Makes the prompts of all sessions begin alike, so that a server's prefix cache holds for each of them.

Most chat templates write the tools behind the system prompt. A prompt whose end says "this is a call" would make the
server read all tools again when a conversation changes from text to voice, which takes a small model on a CPU a minute
and more.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

from antiphon.models.base import Event, Prompt, TextModel, warm
from antiphon.transcript import UserMessage


class SharedPrefixModel:
    """Any text model that is given the note about the mode in the first message of the user, behind the tools.

    A second system message would be the natural place, but the templates of several models refuse one.
    """

    def __init__(self, model: TextModel) -> None:
        self.profile = model.profile
        self._model = model

    async def warm(self, prompt: Prompt) -> bool:
        return await warm(self._model, move_note(prompt))

    def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        return self._model.reply(move_note(prompt))


def move_note(prompt: Prompt) -> Prompt:
    """Moves the note from the end of the system prompt to the first message of the user, if there is one."""
    messages = list(prompt.messages)
    for place, message in enumerate(messages):
        if isinstance(message, UserMessage) and prompt.mode_note:
            messages[place] = UserMessage(f"({prompt.mode_note})\n\n{message.text}")
            system = prompt.system.removesuffix(prompt.mode_note).rstrip()
            return replace(prompt, system=system, messages=messages, mode_note="")
    return prompt

"""The text model of a voice: it can be asked ahead of the end of a turn, and a turn can be taken back."""

from antiphon.models.base import Prompt, TextModel
from antiphon.models.cascade.ahead import Ahead
from antiphon.models.text_live import TextLiveModel
from antiphon.transcript import UserMessage


class Mind(TextLiveModel):
    def __init__(self, model: TextModel) -> None:
        self._ahead = Ahead(model)
        super().__init__(self._ahead)

    async def think_ahead(self, text: str) -> None:
        """The user has probably said this, and nothing more: the answer may as well begin to be made."""
        context = self._connection()
        messages = (*self._messages, UserMessage(text))
        await self._ahead.prepare(Prompt(context.system, messages, context.tools, context.mode))

    async def think_again(self) -> None:
        """The user has said more."""
        await self._ahead.drop()

    def take_back(self, text: str) -> None:
        """This turn of the user was not whole: it will come again, as a part of a longer one."""
        for at in reversed(range(len(self._messages))):
            if self._messages[at] == UserMessage(text):
                del self._messages[at]
                self._begin = min(self._begin, len(self._messages))
                return

    async def close(self) -> None:
        await super().close()
        await self._ahead.drop()

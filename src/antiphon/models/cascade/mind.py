"""The text model of a voice: it can be asked ahead of the end of a turn, and a turn can be taken back."""

from collections.abc import Callable

from antiphon.models.base import Prompt, TextModel
from antiphon.models.cascade.ahead import Ahead
from antiphon.models.health import ModelHealth
from antiphon.models.live import LiveEvent
from antiphon.models.text_live import TextLiveModel
from antiphon.transcript import UserMessage


class Mind(TextLiveModel):
    """What it thinks is told as it is thought; `events` has nothing."""

    def __init__(
        self,
        model: TextModel,
        tell: Callable[[LiveEvent], None],
        on_first_clause: Callable[[str], None] = lambda clause: None,
        health: ModelHealth | None = None,
    ) -> None:
        """`on_first_clause` is told how an answer will probably begin, before it is wanted."""
        self._ahead = Ahead(model, on_first_clause)
        self._tell = tell
        super().__init__(self._ahead, health)

    def think_ahead(self, text: str) -> None:
        """The user has probably said this, and nothing more: the answer may as well begin to be made."""
        context = self._connection()
        messages = (*self._messages, UserMessage(text))
        self._ahead.prepare(Prompt(context.system, messages, context.tools, context.mode), context.prefetch)

    def think_again(self) -> None:
        """The user has said more."""
        self._ahead.drop()

    def stop(self) -> None:
        """The answer under way is void. Of its events only `TurnComplete` is still told."""
        if self._turn is not None:
            self._turn.cancel()

    def take_back(self, text: str) -> None:
        """This turn of the user, the last one, was not whole: it will come again, as a part of a longer one."""
        for at in reversed(range(len(self._messages))):
            if self._messages[at] == UserMessage(text):
                del self._messages[at]
                self._begin -= at < self._begin
                return

    async def close(self) -> None:
        await super().close()
        await self._ahead.aclose()

    def _emit(self, event: LiveEvent) -> None:
        self._tell(event)

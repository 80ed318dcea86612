"""How a model is asked: with the conversation so far, with what a yes of the user lets run, with what came late."""

from collections.abc import Awaitable, Callable

from antiphon.models.base import ModelError
from antiphon.models.live import Foresee, LiveContext, LiveModel
from antiphon.prompts.composer import Composer
from antiphon.protocol.server_messages import Error
from antiphon.session import events as e
from antiphon.session.brain import Brain
from antiphon.session.keeper import Keeper
from antiphon.session.machine import RESTING
from antiphon.session.outbox import Outbox
from antiphon.session.state import Phase, Session
from antiphon.session.toolwork import ToolWork
from antiphon.session.voice import Voice
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode


def describe(
    model: LiveModel,
    mode: Mode,
    tools: ToolSession,
    keeper: Keeper,
    session: Session,
    foresee: Foresee,
    composer: Composer,
) -> LiveContext:
    """What a model is connected with."""
    # The last turn is the one being asked; the model gets it by itself.
    history = keeper.messages[:-1] if session.phase is Phase.PROCESSING else keeper.messages
    return LiveContext(
        system=composer.compose(mode, tools_version=tools.snapshot.version, summaries=tools.snapshot.summaries(mode)),
        messages=tuple(history),
        tools=tools.snapshot.provider_schemas(model.profile.tool_schemas, mode),
        mode=mode,
        foresee=foresee,
    )


class Asking:
    def __init__(
        self,
        brain: Brain,
        voice: Voice,
        work: ToolWork,
        keeper: Keeper,
        outbox: Outbox,
        session: Callable[[], Session],
        step: Callable[[e.Event], Awaitable[None]],
    ) -> None:
        self._brain = brain
        self._voice = voice
        self._work = work
        self._keeper = keeper
        self._outbox = outbox
        self._session = session
        self._step = step
        self.is_behind = False
        """Whether other sessions have added to the conversation what the model has not been told."""

    async def ask(self, text: str) -> None:
        """Gives the model a turn. A yes or no to a question of ours is heard by code first."""
        try:
            await self.catch_up()
            await self._voice.wake()
            late = self._work.take_late()
            if late:
                await self._keeper.keep_runs(late)
                await self._brain.tell(late)
            ran = await self._work.hear(text)
            if ran:
                await self._keeper.keep_runs(ran)
            await self._brain.ask(text, ran)
        except ModelError as error:
            await self._step(e.Failed(str(error), error.retryable))

    async def confirm(self, token: str, approved: bool) -> None:
        """The person's answer by a button. What comes of a yes is told as a turn of ours."""
        answer = await self._work.confirm(token, approved)
        if answer is None:
            return
        awake = False
        if self._session().phase in RESTING:
            try:
                # Before the run is kept: the history that a model begins with must not have it yet.
                await self._voice.wake()
                awake = True
            except ModelError as error:
                self._outbox.send(Error(str(error), "model_failed", error.retryable))
        await self._keeper.keep_runs([answer])
        if awake:
            await self._step(e.SpeakFirst())
            try:
                await self._brain.ask("", [answer])
            except ModelError as error:
                await self._step(e.Failed(str(error), error.retryable))

    async def catch_up(self) -> None:
        """A model that is behind is given up; the next one begins with all of the conversation."""
        if self.is_behind:
            self.is_behind = False
            await self._brain.close()

"""How a model is asked: with the conversation so far, with what a yes of the user lets run, with what came late."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from antiphon.models.base import ModelError
from antiphon.models.live import LiveContext, LiveModel, Prefetch, ToolAnswer
from antiphon.prompts.composer import Composer
from antiphon.session import events as e
from antiphon.session.brain import Brain
from antiphon.session.keeper import Keeper
from antiphon.session.machine import RESTING
from antiphon.session.outbox import Outbox
from antiphon.session.state import Phase, Session
from antiphon.session.toolwork import ToolWork
from antiphon.session.voice import Voice
from antiphon.tools.gate import DECLINED
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode


def describe(
    model: LiveModel,
    mode: Mode,
    tools: ToolSession,
    keeper: Keeper,
    session: Session,
    prefetch: Prefetch,
    composer: Composer,
) -> LiveContext:
    """What a model is connected with."""
    # The turn under way is given to the model by itself.
    history = keeper.messages_before_turn if session.phase is Phase.PROCESSING else keeper.messages
    return LiveContext(
        system=composer.compose(mode, tools_version=tools.snapshot.version, summaries=tools.snapshot.summaries(mode)),
        messages=tuple(history),
        tools=tools.snapshot.provider_schemas(model.profile.tool_schemas, mode),
        mode=mode,
        prefetch=prefetch,
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
        self._approved_turn: int | None = None
        """The answer that waits for the run of an approved call, which it will tell of."""
        self._outcomes: list[ToolAnswer] = []
        """What came of calls that no answer has told of. The next one does."""
        self._was_declined = False
        """Whether a call was declined by a button, and that is still to be acknowledged."""

    async def ask(self, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        """Gives the model a turn. A yes or no to a question of ours is heard by code first.

        `ran` was done for this turn by a process that did not live to answer it. It is stored already.
        """
        self._approved_turn = None
        try:
            await self.catch_up()
            await self._voice.wake()
            approved = [] if ran else await self._work.hear(text)
            if approved:
                await self._keeper.keep_runs(approved, self._outbox)
            await self._brain.ask(text, [*ran, *approved])
        except ModelError as error:
            await self._step(e.Failed(str(error), error.retryable))

    async def tell_late(self) -> None:
        """Before a new turn of the user: adds what came of calls that nobody has told of to the conversation."""
        late = [*self._work.take_late(), *self._outcomes]
        self._outcomes, self._was_declined = [], False
        if late:
            await self._brain.tell(late)
            await self._keeper.keep_runs(late, self._outbox)

    async def confirm(self, token: str, approved: bool) -> None:
        """The person's answer by a button. What comes of it is told as a turn of ours, once no other is under way."""
        decision = await self._work.decide(token, approved)
        if decision is None:
            return
        if not approved:
            self._was_declined = True
            await self.tell_outcomes()
            return
        turn, failure = None, None
        if self._session().phase in RESTING:
            failure = await self._begin()
            self._approved_turn = turn = self._session().turn
        # Beside the mailbox: a client that sends a ping while the call runs is answered.
        self._work.start_approved(decision, partial(self._tell_approved, turn, failure))

    async def tell_outcomes(self) -> None:
        """Tells what came of calls that were decided or left by others, if no answer is under way."""
        if self._session().phase not in RESTING:
            return
        if self._outcomes:
            failure = await self._begin()
            answers, self._outcomes = self._outcomes, []
            await self._answer_with(answers, failure)
        elif self._was_declined:
            self._was_declined = False
            failure = await self._begin()
            await self._attempt(self._brain.say(DECLINED), failure)

    def watch_left(self) -> None:
        """Sees to it that what came of calls that another process has left running is told."""
        self._work.watch_left(self._tell_outcome)

    async def _tell_outcome(self, answer: ToolAnswer) -> None:
        self._outcomes.append(answer)
        await self.tell_outcomes()

    async def _tell_approved(self, turn: int | None, failure: ModelError | None, answer: ToolAnswer) -> None:
        """Tells of a run in the answer that waits for it; if that was given up, or there is none, in the next one."""
        session = self._session()
        if turn is not None and turn == self._approved_turn == session.turn and session.phase not in RESTING:
            self._approved_turn = None
            await self._answer_with([answer], failure)
        else:
            await self._tell_outcome(answer)

    async def _begin(self) -> ModelError | None:
        """Begins a turn of ours. Gives what went wrong if there is no model for it."""
        try:
            # Before anything is kept: the history that a model begins with must not have what it is about to be told.
            await self._voice.wake()
            return None
        except ModelError as error:
            return error
        finally:
            await self._step(e.SpeakFirst())

    async def _answer_with(self, answers: list[ToolAnswer], failure: ModelError | None) -> None:
        await self._keeper.keep_runs(answers, self._outbox, begins_turn=True)
        await self._attempt(self._brain.ask("", answers), failure)

    async def _attempt(self, asking: Coroutine[Any, Any, None], failure: ModelError | None) -> None:
        try:
            await asking
        except ModelError as error:
            failure = error
        if failure is not None:
            await self._step(e.Failed(str(failure), failure.retryable))

    async def catch_up(self) -> None:
        """A model that is behind is given up; the next one begins with all of the conversation."""
        if self.is_behind:
            self.is_behind = False
            await self._brain.close()

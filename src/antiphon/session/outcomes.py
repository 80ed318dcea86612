"""What came of calls that no answer waits for: approved by a person, left by another process, finished too late."""

from collections.abc import Callable, Sequence
from functools import partial

from antiphon.continuity.model import ContinuousModel
from antiphon.models.live import ToolAnswer
from antiphon.session.outbox import Outbox
from antiphon.session.state import RESTING, SessionState
from antiphon.session.tool_runner import ToolRunner
from antiphon.session.transcript_writer import TranscriptWriter
from antiphon.session.voice import Voice
from antiphon.tools.gate import DECLINED


class CallOutcomes:
    def __init__(
        self,
        *,
        tools: ToolRunner,
        writer: TranscriptWriter,
        outbox: Outbox,
        voice: Voice,
        state: Callable[[], SessionState],
        respond: Callable[[str, str, Sequence[ToolAnswer]], None],
        connection: Callable[[], ContinuousModel | None],
    ) -> None:
        """`respond` asks the model to answer a turn; `connection` is the model's connection, if there is one."""
        self._tools = tools
        self._writer = writer
        self._outbox = outbox
        self._voice = voice
        self._state = state
        self._respond = respond
        self._connection = connection
        self._untold: list[ToolAnswer] = []
        """Outcomes that no answer has told of. The next one does."""
        self._was_declined = False
        """Whether a call was declined by a button, and that is still to be acknowledged."""

    async def confirm(self, token: str, approved: bool) -> None:
        """The person's answer by a button. Its outcome is told in a turn of its own, once no other is under way."""
        decision = await self._tools.decide(token, approved)
        if decision is None:
            return
        if not approved:
            self._was_declined = True
            await self.tell()
            return
        turn = None
        if self._state().phase in RESTING:
            turn = await self._voice.begin_turn()
        # Beside the mailbox: a client that sends a ping while the call runs is answered.
        self._tools.start_decided(decision, partial(self._tell_approved, turn))

    async def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer]) -> None:
        """Has the model answer a turn of the user. A yes or no to a question of ours is recognised by code first.

        `ran` was done for this turn by a process that did not live to answer it. It is stored already.
        """
        decision = None if ran else await self._tools.hear(text, turn)
        if decision is None and not ran and self._tools.is_acting_for_completed:
            # What is being done for the first words of the request must be known, so that it is not done twice.
            self._tools.start_after_actions(partial(self._respond_to_whole, turn, text))
        elif decision is None:
            await self._note_late_of_completed(turn)
            self._respond(turn, text, ran)
        else:
            self._tools.start_decided(decision, partial(self._answer_with, turn, text))

    async def check_consent(self, turn: str, text: str) -> None:
        """The words of a turn that the model answers by itself have become known: they may approve a call."""
        decision = await self._tools.hear(text, turn)
        if decision is not None:
            self._tools.start_decided(decision, self.add if decision.approved else _ignore)

    async def add(self, answer: ToolAnswer) -> None:
        self._untold.append(answer)
        await self.tell()

    async def tell(self) -> None:
        """Tells what came of calls, if no turn is under way."""
        if self._state().phase not in RESTING:
            return
        if self._untold:
            answers, self._untold = self._untold, []
            await self._tell_in_turn(await self._voice.begin_turn(), answers)
        elif self._was_declined:
            self._was_declined = False
            await self._voice.say(DECLINED)

    async def note_late(self) -> None:
        """Before a new turn of the user: adds outcomes that nobody has told of to the conversation."""
        late = [*self._tools.take_late(), *self._untold]
        self._untold, self._was_declined = [], False
        if late:
            entries = self._writer.transcript.entries
            turn = entries[-1].turn if entries else "late"
            connection = self._connection()
            if connection is not None:
                connection.send_tool_results(turn, late)
            await self._writer.store_runs(turn, late, self._outbox)

    def watch_left(self) -> None:
        """Sees to it that the outcome of calls that another process has left running is told."""
        self._tools.watch_left(self.add)

    async def _respond_to_whole(self, turn: str, text: str) -> None:
        if self._state().is_current(turn):
            await self._note_late_of_completed(turn)
            self._respond(turn, text, ())

    async def _note_late_of_completed(self, turn: str) -> None:
        late = self._tools.take_late_of_completed()
        if late:
            await self._writer.store_runs(turn, late, self._outbox)

    async def _tell_approved(self, turn: str | None, answer: ToolAnswer) -> None:
        """Tells the outcome in the turn that waits for it; if that was given up, or there is none, in the next one."""
        if turn is not None and self._state().is_current(turn):
            await self._tell_in_turn(turn, [answer])
        else:
            await self.add(answer)

    async def _answer_with(self, turn: str, text: str, answer: ToolAnswer) -> None:
        """The user's words have let a call run: the answer to them tells its outcome."""
        if not self._state().is_current(turn):
            await self.add(answer)
            return
        await self._writer.store_runs(turn, [answer], self._outbox)
        self._respond(turn, text, [answer])

    async def _tell_in_turn(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        await self._writer.store_runs(turn, answers, self._outbox)
        self._respond(turn, "", answers)


async def _ignore(answer: ToolAnswer) -> None:
    """The model has heard the no itself."""

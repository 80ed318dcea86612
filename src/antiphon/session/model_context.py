"""What a session's models are connected with: the prompt, the tools, and the conversation or a summary of it."""

from collections.abc import Callable

from antiphon.continuity.context import Carried, ContextPlanner
from antiphon.models.live import LiveContext, LiveProfile, Names
from antiphon.prompts.composer import HISTORY_NOTE, Composer, summary_note
from antiphon.session.calls import CallLog
from antiphon.session.client_application import ClientApplication
from antiphon.session.messaging import ClientMessages
from antiphon.session.state import SessionState
from antiphon.session.tool_runner import ToolRunner
from antiphon.session.transcript_writer import TranscriptWriter
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode
from antiphon.transcript import UserMessage


class SessionContext:
    """The `ContextSource` of a session."""

    def __init__(
        self,
        *,
        planner: ContextPlanner,
        composer: Composer,
        writer: TranscriptWriter,
        calls: CallLog,
        tools: ToolSession,
        tool_runner: ToolRunner,
        client: ClientMessages,
        application: Callable[[], ClientApplication],
        state: Callable[[], SessionState],
        answers_last: Callable[[], bool],
        names: Names | None = None,
    ) -> None:
        """`answers_last`: whether a call begins with the answer to the last message, if that is the user's. `names`:
        returns what the user is likely to say."""
        self._planner = planner
        self._composer = composer
        self._writer = writer
        self._calls = calls
        self._tools = tools
        self._tool_runner = tool_runner
        self._client = client
        self._application = application
        self._state = state
        self._answers_last = answers_last
        self._names = names

    async def plan(self, profile: LiveProfile, *, is_fallback: bool, uses_call_summary: bool) -> Carried:
        return await self._planner.plan(
            self._writer.transcript,
            profile,
            is_fallback=is_fallback,
            before_turn=self._asked(),
            call_summary=await self._calls.latest_summary() if uses_call_summary else "",
        )

    def describe(self, profile: LiveProfile, mode: Mode, carried: Carried, note: str) -> LiveContext:
        snapshot, transcript = self._tools.snapshot, self._writer.transcript
        view = transcript.since(carried.first_turn) if carried.first_turn is not None else transcript
        history = view.before(self._asked())
        notes = [*(self._client.notes or ()), note, summary_note(carried.summary)]
        if profile.keeps_context and history:
            notes.insert(0, HISTORY_NOTE)
        prompt = self._composer.compose(
            mode,
            tools_version=snapshot.version,
            summaries=snapshot.names() if profile.tools_per_turn else snapshot.summaries(),
            client_instructions=self._application().instructions,
            notes=notes,
        )
        return LiveContext(
            system=prompt.text,
            transcript=view,
            history=history,
            tools=snapshot.provider_schemas(profile.tool_schemas, mode) if self._application().uses_tools else (),
            mode=mode,
            prefetch=self._tool_runner.prefetch,
            mode_note=prompt.mode_note,
            allows_local=not self._application().instructions.strip(),
            summary=carried.summary,
            names=self._names,
        )

    def _asked(self) -> str | None:
        """Returns the turn that the model is given by itself: the one under way, or one that text left unanswered."""
        last = self._writer.transcript.entries[-1:]
        if self._answers_last() and last and isinstance(last[0].message, UserMessage):
            return last[0].turn
        return self._state().unanswered

"""What MCP clients can do with the sessions of their user: say something, ask something, show a notice.

They are tools like all others, so that they pass the gate; only MCP clients are given them.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from antiphon.protocol import server_messages as s
from antiphon.session.hub import ActiveSession, Hub
from antiphon.tools.arguments import Arguments
from antiphon.tools.client_tool import Adapter
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.tools.spec import Category, Mode, SideEffects, ToolSpec
from antiphon.tools.tool import Execute, Tool

MAX_TEXT_CHARS: Final = 2_000
MAX_NOTICE_CHARS: Final = 300
MAX_ANSWER_S: Final = 300
ANSWER_S: Final = 60
NOTICE_CODE: Final = "mcp"
NOBODY: Final = "Nobody is connected to Antiphon now. Open its page, or connect another client, and try again."

_SESSION: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 100,
    "description": "The session to use; without it, the one that was connected last.",
}


def session_tools(hub: Hub, adapt: Adapter) -> Sequence[Tool]:
    """Makes the tools. `adapt` makes the schema of a tool in MCP's format."""

    async def say(args: Args, context: Context) -> ToolResult:
        active = _find(hub, context.session.user, args)
        active.runner.announcements.add(args["text"], in_text=True)
        return ok(_told(active), spoken="All right, I'll say that.")

    async def ask(args: Args, context: Context) -> ToolResult:
        active = _find(hub, context.session.user, args)
        assert active.task is not None
        asking = asyncio.create_task(active.runner.announcements.ask(args["question"]))
        try:
            first: list[asyncio.Future[Any]] = [asking, active.task]
            await asyncio.wait(first, timeout=args["timeout_s"], return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return ok({"answer": asking.result(), **_told(active)})
        finally:
            asking.cancel()
            await asyncio.wait([asking])
        if active.task.done():
            return fail(ErrorType.SESSION_INACTIVE, "The session has ended before there was an answer.")
        return fail(ErrorType.TRANSIENT, f"There was no answer within {args['timeout_s']} seconds.")

    async def notify(args: Args, context: Context) -> ToolResult:
        active = _find(hub, context.session.user, args, is_shown=True)
        active.runner.outbox.send(s.Notice(s.NoticeKind(args["kind"]), args["text"], NOTICE_CODE))
        return ok(_told(active), spoken="All right, I've shown that.")

    text = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_CHARS}
    seconds = {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_ANSWER_S,
        "default": ANSWER_S,
        "description": "How long to wait for the answer.",
    }
    notice = {"type": "string", "minLength": 1, "maxLength": MAX_NOTICE_CHARS, "description": "What to show."}
    kind = {"type": "string", "enum": [str(each) for each in s.NoticeKind], "default": "info"}
    return (
        _make(
            adapt,
            "say",
            "Say a text to the user in their conversation with Antiphon: spoken in a call, shown in a chat.",
            say,
            {"text": {**text, "description": "What to say."}},
        ),
        _make(
            adapt,
            "ask",
            "Ask the user a question in their conversation with Antiphon, and wait for the answer.",
            ask,
            {"question": {**text, "description": "What to ask."}, "timeout_s": seconds},
            # It changes nothing, so that a client that goes away ends it.
            changes=False,
            budget_ms=(MAX_ANSWER_S + 5) * 1000,
        ),
        _make(
            adapt,
            "notify",
            "Show the user a short notice, without saying anything.",
            notify,
            {"text": notice, "kind": {**kind, "description": "How it is shown."}},
        ),
    )


def _make(
    adapt: Adapter,
    name: str,
    description: str,
    execute: Execute,
    properties: Mapping[str, Any],
    *,
    changes: bool = True,
    budget_ms: int = 1_000,
) -> Tool:
    required = next(iter(properties))
    parameters = {
        "type": "object",
        "additionalProperties": False,
        "required": [required],
        "properties": {**properties, "session_id": _SESSION},
    }
    spec = ToolSpec(
        tool_id=name,
        version="1",
        description=description,
        category=Category.ACTION if changes else Category.UTILITY,
        side_effects=SideEffects.WRITES if changes else SideEffects.NONE,
        idempotent=not changes,
        requires_confirmation=False,
        allowed_modes=tuple(Mode),
        latency_budget_ms=budget_ms,
        parameters=parameters,
    )
    return Tool(
        spec=spec,
        digest="",
        origin="mcp clients",
        summary=description,
        documentation=description,
        examples="",
        provider_schemas={"mcp": adapt(spec)},
        sentences=None,
        arguments=Arguments(parameters),
        execute=execute,
    )


def _find(hub: Hub, user: str, args: Args, *, is_shown: bool = False) -> ActiveSession:
    """Finds the session that is meant, among those whose clients can be told something when they have not asked.

    With `is_shown`, a client that can only be spoken to is none of them.
    """
    connected = [each for each in hub.connected(user) if each.takes_reminders and not (is_shown and each.speaks_only)]
    wanted = args.get("session_id")
    if wanted is not None:
        connected = [each for each in connected if each.id == wanted]
        if not connected:
            raise ToolError(ErrorType.NOT_FOUND, f"You have no connected session {wanted!r}.")
    if not connected:
        raise ToolError(ErrorType.SESSION_INACTIVE, NOBODY)
    return connected[-1]


def _told(active: ActiveSession) -> dict[str, Any]:
    return {"session_id": active.id, "mode": str(active.runner.tools.mode)}

"""What MCP clients can do with the sessions of their user: say something, ask something, show a notice.

They are tools like all others, so that they pass the gate; only MCP clients are given them.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from antiphon.protocol import server_messages as s
from antiphon.session.hub import ActiveSession
from antiphon.session.nodes import REACH_S, UNREACHED, CommandRefused, Handler, Nodes
from antiphon.tools.arguments import Arguments
from antiphon.tools.client_tool import Adapter
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.spec import Category, Mode, SideEffects, ToolSpec
from antiphon.tools.tool import Execute, Tool

MAX_TEXT_CHARS: Final = 2_000
MAX_NOTICE_CHARS: Final = 300
MAX_ANSWER_S: Final = 300
ANSWER_S: Final = 60
NOTICE_CODE: Final = "mcp"
MAX_TRIED: Final = 3
"""How many sessions of other processes are tried."""
NOBODY: Final = "Nobody is connected to Antiphon now. Open its page, or connect another client, and try again."

_SESSION: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 100,
    "description": "The session to use; without it, the one that was connected last.",
}


def session_tools(nodes: Nodes, adapt: Adapter) -> Sequence[Tool]:
    """Makes the tools. `adapt` makes the schema of a tool in MCP's format."""
    for name, handler in _HANDLERS.items():
        nodes.offer(name, handler)

    async def say(args: Args, context: Context) -> ToolResult:
        told = await _reach(nodes, context.session.user, "say", args)
        return ok(told, spoken="All right, I'll say that.")

    async def ask(args: Args, context: Context) -> ToolResult:
        return ok(await _reach(nodes, context.session.user, "ask", args, within_s=args["timeout_s"] + REACH_S))

    async def notify(args: Args, context: Context) -> ToolResult:
        told = await _reach(nodes, context.session.user, "notify", args)
        return ok(told, spoken="All right, I've shown that.")

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


async def _reach(nodes: Nodes, user: str, kind: str, args: Args, *, within_s: float = REACH_S) -> dict[str, Any]:
    """Has the session that is meant do it: one of this process, or else one that another process runs."""
    wanted = args.get("session_id")
    here = [each for each in nodes.hub.connected(user) if wanted in (None, each.id) and _can_be_told(each, kind)]
    try:
        if here:
            told: dict[str, Any] = await _HANDLERS[kind](here[-1], args)
            return told
        there = [each for each in await nodes.elsewhere(user) if wanted in (None, each.id)]
        for record in there[:MAX_TRIED]:
            try:
                told = await nodes.tell(record.id, kind, args, within_s=within_s)
            except CommandRefused as refused:
                # The process has died, or the session has no client. Another one of the user may.
                if refused.reason not in (UNREACHED, ErrorType.SESSION_INACTIVE) or kind == "ask":
                    raise
            else:
                return told
    except CommandRefused as refused:
        type = ErrorType(refused.reason) if refused.reason in set(ErrorType) else ErrorType.TRANSIENT
        raise ToolError(type, str(refused)) from None
    if wanted is not None:
        raise ToolError(ErrorType.NOT_FOUND, f"You have no connected session {wanted!r}.")
    raise ToolError(ErrorType.SESSION_INACTIVE, NOBODY)


def _can_be_told(active: ActiveSession, kind: str) -> bool:
    """Whether its client can be told something when it has not asked. Some can only be spoken to."""
    is_connected = active.runner.outbox.link is not None
    return is_connected and active.takes_reminders and not (kind == "notify" and active.speaks_only)


def _checked(kind: str, handler: Handler) -> Handler:
    async def handle(active: ActiveSession, args: Any) -> Any:
        if not _can_be_told(active, kind):
            raise CommandRefused(ErrorType.SESSION_INACTIVE, NOBODY)
        return await handler(active, args)

    return handle


async def _say(active: ActiveSession, args: Args) -> Any:
    active.runner.announcements.add(args["text"], in_text=True)
    return _told(active)


async def _ask(active: ActiveSession, args: Args) -> Any:
    assert active.task is not None
    asking = asyncio.create_task(active.runner.announcements.ask(args["question"]))
    try:
        first: list[asyncio.Future[Any]] = [asking, active.task]
        await asyncio.wait(first, timeout=args["timeout_s"], return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            return {"answer": asking.result(), **_told(active)}
    finally:
        asking.cancel()
        await asyncio.wait([asking])
    if active.task.done():
        raise CommandRefused(ErrorType.SESSION_INACTIVE, "The session has ended before there was an answer.")
    raise CommandRefused(ErrorType.TRANSIENT, f"There was no answer within {args['timeout_s']} seconds.")


async def _notify(active: ActiveSession, args: Args) -> Any:
    active.runner.outbox.send(s.Notice(s.NoticeKind(args["kind"]), args["text"], NOTICE_CODE))
    return _told(active)


def _told(active: ActiveSession) -> dict[str, Any]:
    return {"session_id": active.id, "mode": str(active.runner.tools.mode)}


_HANDLERS: Final = {kind: _checked(kind, each) for kind, each in (("say", _say), ("ask", _ask), ("notify", _notify))}

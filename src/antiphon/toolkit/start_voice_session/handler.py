"""Asks the page to switch from text to voice."""

from antiphon.tools.context import Args, Context
from antiphon.tools.messages import VoiceSessionStart
from antiphon.tools.result import ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    pending_request = args.get("pending_request", "").strip() or None
    session_id = context.session.id
    await context.messaging.send(VoiceSessionStart(session_id, pending_request))
    return ok(
        {
            "voice_session_requested": True,
            "pending_request": pending_request,
            "message": "Voice session will be activated by client",
            "session_id": session_id,
        },
        spoken="Let's switch to voice mode.",
    )

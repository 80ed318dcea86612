"""Blocks the user after abuse: sends a farewell, then nothing until the time is over."""

import asyncio
from typing import Final

from antiphon.tools.context import Args, Context, Messaging
from antiphon.tools.errors import ErrorType
from antiphon.tools.messages import Message, Timeout
from antiphon.tools.result import After, ToolResult, fail, ok
from antiphon.tools.spec import Mode

SEND_LIMIT_S: Final = 0.5
"""How long sending may take: half of the tool's budget, so that an unresponsive page does not delay the block."""


async def execute(args: Args, context: Context) -> ToolResult:
    if not context.session.active:
        return fail(ErrorType.SESSION_INACTIVE, "The session has already ended, so there is no one to block.")
    duration_seconds, farewell = args["duration_seconds"], args["farewell_message"].strip()
    until = context.clock.now_ms() + round(duration_seconds * 1000)
    told = await _tell(context.messaging, Timeout(until, duration_seconds, farewell))
    context.audit.log("user_timeout", duration_seconds=duration_seconds, until=until, client_told=told)
    in_voice = context.session.mode is Mode.VOICE
    return ok(
        {"until": until, "duration_seconds": duration_seconds},
        spoken=farewell,
        intents=[context.voice.end_session(After.FAREWELL_SPOKEN), context.audio.suppress(True)] if in_voice else [],
    )


async def _tell(messaging: Messaging, message: Message) -> bool:
    # The user could cause any failure here by closing the page, so it must not undo the block.
    try:
        async with asyncio.timeout(SEND_LIMIT_S):
            await messaging.send(message)
    except Exception:
        return False
    return True

"""Hearing the recordings of any user."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from antiphon.security.admission import Caller
from antiphon.server.admin.access import EVENTS, record
from antiphon.server.deps import HttpDeps
from antiphon.server.recordings import open_sound
from antiphon.storage.overview import AuditFilter

HEARD: Final = "heard_recording"
LISTENING_MS: Final = 60 * 60 * 1000
"""Requests for parts of a recording belong to a listening that began at most this long ago."""
MAX_LINES: Final = 1_000


async def play_any_recording(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    ids = request.path_params
    conversation = await deps.operator.overview.conversation(ids["id"])
    owner = None if conversation is None else conversation.user
    response = await open_sound(deps, request, owner)
    if "range" not in request.headers or not await _is_listening(deps, caller, ids["id"], ids["recording"]):
        await record(deps, caller, HEARD, conversation=ids["id"], recording=ids["recording"], owner=owner)
    return response


async def _is_listening(deps: HttpDeps, caller: Caller, conversation: str, recording: str) -> bool:
    """Whether the audit has it already that this operator is hearing this recording.

    A player asks for many parts, beginning anywhere, so the first byte alone does not tell who has heard something.
    """
    since_ms = deps.clock.now_ms() - LISTENING_MS
    wanted = AuditFilter(user=caller.user, conversation=conversation, outcome="event", since_ms=since_ms)
    lines = await deps.operator.overview.audit(wanted, MAX_LINES)
    return any(line.event == EVENTS + HEARD and (line.data or {}).get("recording") == recording for _, line in lines)

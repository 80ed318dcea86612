"""`/api/conversations/{id}/recordings`: users list and hear the recordings of their calls."""

from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from antiphon.security.admission import Caller
from antiphon.server.deps import HttpDeps
from antiphon.server.refusals import Refusal, RefusalCode, reply
from antiphon.services.recordings.sound_file import MEDIA_TYPE as MEDIA_TYPE
from antiphon.storage.recordings import Recording

LIST_PATH: Final = "/api/conversations/{id}/recordings"
PATH: Final = "/api/conversations/{id}/recordings/{recording}"
ADMIN_PATH: Final = "/api/admin/conversations/{id}/recordings/{recording}"
REFUSALS: Final = (RefusalCode.NOT_FOUND, RefusalCode.BUSY, RefusalCode.ELSEWHERE)
"""Why a recording cannot be heard."""
HEADERS: Final = {
    # The sound never changes. It is private, and must not outlive its deletion in a cache.
    "cache-control": "private, no-store",
    "content-disposition": "inline",
}


class RecordedTurn(Struct, frozen=True):
    """Where a turn of the conversation begins in a recording."""

    seq: int
    """The number of the turn in its conversation."""
    at_ms: int
    """Milliseconds from the beginning of the recording."""


class RecordingEntry(Struct, frozen=True):
    """A recording of a call, or of a part of it: the user on the left channel, the assistant on the right."""

    id: str
    call_id: str
    started_ms: int
    """Unix time."""
    duration_ms: int | None
    """Null while it is being made."""
    channels: int
    size_bytes: int | None
    format: str
    """Always "opus", in an Ogg file."""
    url: str
    """The path at which it can be heard."""
    turns: tuple[RecordedTurn, ...]
    """The turns that were spoken in it, in their order."""


class RecordingList(Struct, frozen=True):
    """The oldest first."""

    recordings: tuple[RecordingEntry, ...]


async def list_recordings(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    id = request.path_params["id"]
    if await deps.conversations.get(id, caller.user) is None:
        raise Refusal(RefusalCode.NOT_FOUND, "You have no such conversation.")
    found = () if deps.recordings is None else await deps.recordings.store.list(caller.user, id)
    return reply(RecordingList(tuple(describe_recording(each) for each in found)))


async def play_recording(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    return await open_sound(deps, request, caller.user)


async def open_sound(deps: HttpDeps, request: Request, owner: str | None) -> Response:
    """Answers a request for the sound of a recording of this user. Raises `Refusal` if it cannot be heard.

    Without an owner there is no such conversation.
    """
    archive, ids = deps.recordings, request.path_params
    recording = None if archive is None or owner is None else await archive.store.get(ids["recording"], owner)
    if archive is None or recording is None or recording.conversation_id != ids["id"]:
        raise Refusal(RefusalCode.NOT_FOUND, "There is no such recording. It may have been deleted.")
    if recording.duration_ms is None:
        raise Refusal(RefusalCode.BUSY, "This recording is not complete yet. Try again after the call.")
    path = await archive.fetch(recording)
    if path is None:
        if recording.node == archive.node:
            raise Refusal(RefusalCode.NOT_FOUND, "The file of this recording is gone from the server's data folder.")
        raise Refusal(
            RefusalCode.ELSEWHERE,
            f"The file of this recording is only on the server {recording.node} so far, and this is {archive.node}. "
            "Try again later, or ask that server for it.",
        )
    return FileResponse(path, headers=HEADERS, media_type=MEDIA_TYPE)


def describe_recording(recording: Recording, path: str = PATH) -> RecordingEntry:
    """`path` is the route at which the reader can hear it."""
    return RecordingEntry(
        id=recording.id,
        call_id=recording.call_id,
        started_ms=recording.started_ms,
        duration_ms=recording.duration_ms,
        channels=recording.channels,
        size_bytes=recording.size_bytes,
        format=recording.format,
        url=path.format(id=recording.conversation_id, recording=recording.id),
        turns=tuple(RecordedTurn(mark.seq, mark.at_ms) for mark in recording.marks),
    )

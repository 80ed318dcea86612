"""`/api/conversations` and `/api/calls`: users read, export and delete their own records."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from antiphon.protocol.client_messages import Role
from antiphon.protocol.server_messages import HistoryTurn
from antiphon.security.admission import Caller
from antiphon.server.deps import HttpDeps
from antiphon.server.recordings import RecordingEntry, describe_recording
from antiphon.server.refusals import Refusal, RefusalCode, reply
from antiphon.server.requests import read_query
from antiphon.storage.conversations import Conversation, Place, StoredTurn, VoiceCall
from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage

PAGE: Final = 50
MAX_PAGE: Final = 200
MARKDOWN: Final = "text/markdown"
_PLACE: Final = re.compile(r"([0-9]{1,15})\.(.+)")

Limit = Annotated[int, Meta(ge=1, le=MAX_PAGE)]


class Format(StrEnum):
    JSON = "json"
    MARKDOWN = "markdown"


class ConversationsQuery(Struct, forbid_unknown_fields=True):
    limit: Limit = PAGE
    before: str | None = None
    """`next` of the previous page."""


class ConversationQuery(Struct, forbid_unknown_fields=True):
    format: Format = Format.JSON


class DeleteQuery(Struct, forbid_unknown_fields=True):
    all: bool = False
    """Must be true, since this deletes every conversation of the user."""


class CallsQuery(Struct, forbid_unknown_fields=True):
    limit: Limit = PAGE


class ConversationEntry(Struct, frozen=True):
    id: str
    title: str
    created_ms: int
    """Unix time."""
    updated_ms: int
    """The time of the newest turn."""


class ConversationList(Struct, frozen=True):
    """The most recently updated first."""

    conversations: tuple[ConversationEntry, ...]
    next: str | None
    """Pass it as `before` to get the next page. Null: this is the last page."""


class ConversationTurn(Struct, frozen=True):
    seq: int
    at_ms: int
    spoken: bool
    message: UserMessage | AssistantMessage | ToolMessage


class ConversationRecord(Struct, frozen=True):
    """A conversation with all of its turns, oldest first."""

    id: str
    title: str
    created_ms: int
    updated_ms: int
    turns: tuple[ConversationTurn, ...]


class CallTurn(HistoryTurn, frozen=True, kw_only=True):
    """One turn of a call."""

    seq: int
    """Its number in the conversation. A recording has its place by it."""


class CallRecord(Struct, frozen=True):
    """A voice call: a part of a conversation that was spoken."""

    id: str
    conversation_id: str
    started_ms: int
    duration_ms: int | None
    """Null while the call goes on."""
    summary: str
    models: tuple[str, ...]
    """The models that answered, in the order of their first use."""
    energy_path: tuple[int, ...]
    """The energy levels that the call was answered at, in order, as in 3, 2, 1. Empty if they are not known."""
    transcript: tuple[CallTurn, ...]
    """Empty if the conversation was cleared or deleted."""
    recordings: tuple[RecordingEntry, ...] = ()
    """What was recorded of it, the oldest first."""


class CallList(Struct, frozen=True):
    """The most recently started first."""

    calls: tuple[CallRecord, ...]


class Deleted(Struct, frozen=True):
    deleted: int
    """How many were deleted."""


async def list_conversations(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    query = read_query(request, ConversationsQuery)
    seen = None if query.before is None else read_place(query.before)
    found = await deps.conversations.list(caller.user, query.limit + 1, seen)
    page = found[: query.limit]
    more = write_place(page[-1].place) if len(found) > len(page) else None
    return reply(ConversationList(tuple(map(_entry, page)), more))


async def show_conversation(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    query = read_query(request, ConversationQuery)
    conversation = await deps.conversations.get(request.path_params["id"], caller.user)
    if conversation is None:
        raise _unknown("conversation")
    record = _record(conversation, await deps.conversations.turns(conversation.id))
    if query.format is Format.JSON:
        return reply(record)
    headers = {"Content-Disposition": f'attachment; filename="conversation-{conversation.id}.md"'}
    return Response(markdown(record), headers=headers, media_type=MARKDOWN)


async def delete_conversation(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    if not await _delete(deps, request.path_params["id"], caller.user):
        raise _unknown("conversation")
    return Response(status_code=204)


async def delete_conversations(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    if not read_query(request, DeleteQuery).all:
        raise Refusal(RefusalCode.BAD_REQUEST, "This deletes all of your conversations. Add ?all=true to confirm.")
    deleted = 0
    while found := await deps.conversations.list(caller.user, MAX_PAGE):
        for conversation in found:
            deleted += await _delete(deps, conversation.id, caller.user)
    return reply(Deleted(deleted))


async def list_calls(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    query = read_query(request, CallsQuery)
    calls = await deps.voice_calls.list(caller.user, query.limit)
    return reply(CallList(tuple([await _call(deps, call) for call in calls])))


async def show_call(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    call = await deps.voice_calls.get(request.path_params["id"], caller.user)
    if call is None:
        raise _unknown("call")
    return reply(await _call(deps, call))


async def delete_call(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    id = request.path_params["id"]
    if not await deps.voice_calls.delete(id, caller.user):
        raise _unknown("call")
    if deps.recordings is not None:
        await deps.recordings.delete(caller.user, call_id=id)
    return Response(status_code=204)


async def delete_calls(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    deleted = await deps.voice_calls.clear(caller.user)
    if deps.recordings is not None:
        await deps.recordings.delete(caller.user)
    return reply(Deleted(deleted))


def markdown(record: ConversationRecord) -> str:
    """Writes a conversation as Markdown."""
    parts = [f"# {record.title}", f"{_day(record.created_ms)}, conversation {record.id}"]
    for turn in record.turns:
        how = " (spoken)" if turn.spoken else ""
        match turn.message:
            case UserMessage(text=text) if text:
                parts.append(f"**You{how}:** {text}")
            case AssistantMessage(text=text) if text:
                parts.append(f"**Assistant{how}:** {text}")
            case ToolMessage(name=name, content=content):
                parts.append(f"> `{name}` returned `{msgspec.json.encode(content).decode()}`")
    return "\n\n".join(parts) + "\n"


async def _delete(deps: HttpDeps, id: str, user: str) -> bool:
    turns = await deps.conversations.turns(id) if deps.images is not None else ()
    if deps.recordings is not None:
        # Before the conversation, which takes the list of the files with it.
        await deps.recordings.delete(user, conversation_id=id)
    deleted = await deps.conversations.delete(id, user)
    if deleted:
        if deps.images is not None:
            said = "\n".join(turn.body.decode("utf-8", "replace") for turn in turns)
            await deps.images.delete_mentioned(said, user)
        # HTTP requests to a conversation share a session with its id. Ending it fences a request that is still running.
        await deps.hub.stores.sessions.end(id)
    return deleted


async def _call(deps: HttpDeps, call: VoiceCall) -> CallRecord:
    most = None if call.last_seq is None else max(0, call.last_seq - call.first_seq + 1)
    turns = await deps.conversations.turns(call.conversation_id, call.first_seq - 1, most)
    recorded = () if deps.recordings is None else await deps.recordings.store.list(call.user, call.conversation_id)
    return CallRecord(
        id=call.id,
        conversation_id=call.conversation_id,
        started_ms=call.started_ms,
        duration_ms=None if call.ended_ms is None else call.ended_ms - call.started_ms,
        summary=call.summary,
        models=call.models,
        energy_path=call.energy_path,
        transcript=tuple(
            CallTurn(Role(turn.role), turn.text, turn.spoken, turn.at_ms, seq=turn.seq)
            for turn in turns
            if turn.text and turn.role != "tool" and (call.last_seq is None or turn.seq <= call.last_seq)
        ),
        recordings=tuple(describe_recording(each) for each in recorded if each.call_id == call.id),
    )


def write_place(place: Place) -> str:
    return f"{place.updated_ms}.{place.id}"


def read_place(text: str) -> Place:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise Refusal(RefusalCode.BAD_REQUEST, "Wrong parameter: `before` is not the `next` of a page.")
    return Place(int(found[1]), found[2])


def _entry(conversation: Conversation) -> ConversationEntry:
    return ConversationEntry(conversation.id, conversation.title, conversation.created_ms, conversation.updated_ms)


def _record(conversation: Conversation, turns: Sequence[StoredTurn]) -> ConversationRecord:
    return ConversationRecord(
        id=conversation.id,
        title=conversation.title,
        created_ms=conversation.created_ms,
        updated_ms=conversation.updated_ms,
        turns=tuple(
            ConversationTurn(turn.seq, turn.at_ms, turn.spoken, msgspec.json.decode(turn.body, type=Message))
            for turn in turns
        ),
    )


def _unknown(what: str) -> Refusal:
    return Refusal(RefusalCode.NOT_FOUND, f"You have no such {what}.")


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")

"""The timeline of a conversation: its words, tool calls, latencies and changes of the model, in the order of time."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from antiphon.security.admission import Caller
from antiphon.server.admin.access import EVENTS, record
from antiphon.server.admin.conversations import AdminConversation
from antiphon.server.deps import HttpDeps
from antiphon.server.recordings import ADMIN_PATH, RecordingEntry, describe_recording
from antiphon.server.refusals import Refusal, RefusalCode, reply
from antiphon.server.requests import read_query
from antiphon.session.event_log import ENERGY, METRICS
from antiphon.session.history import shorten
from antiphon.storage.base import AuditLine
from antiphon.storage.conversations import StoredTurn, VoiceCall
from antiphon.storage.events import SessionEvent
from antiphon.storage.overview import AuditFilter
from antiphon.storage.recordings import Recording
from antiphon.transcript import AssistantMessage, Message, ToolMessage

TURNS: Final = 200
MAX_TURNS: Final = 500
MAX_LINES: Final = 2_000
"""How many lines of the audit, and how many events, one page of a timeline has at most."""
MAX_CALLS: Final = 100
PAIRED_MS: Final = 10_000
"""How long after its line in the audit the result of a call is stored at most."""

_CURSOR: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,15})")


class TimelineQuery(Struct, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_TURNS)] = TURNS
    """How many messages of the transcript the page has at most."""
    before: str | None = None
    """`earlier` of the page after this one."""


class RecordedPlace(Struct, frozen=True):
    """Where something can be heard."""

    recording: str
    """The id of a recording that is complete. Its call may be on another page of the timeline."""
    at_ms: int
    """Milliseconds from the beginning of the recording."""


class SaidEntry(Struct, frozen=True, kw_only=True, tag="said", tag_field="kind"):
    """What the user or the assistant said."""

    at_ms: int
    seq: int
    role: str
    text: str
    spoken: bool
    place: RecordedPlace | None = None
    """Null if it was not recorded."""


class ToolCallEntry(Struct, frozen=True, kw_only=True, tag="tool", tag_field="kind"):
    """A tool call: as the transcript has it, as the audit has it, or both."""

    at_ms: int
    tool: str
    args: Any = None
    """Null if they are not known. Long values are shortened."""
    result: Any = None
    """What the model was told. Null if nothing is known of it."""
    ok: bool | None = None
    """Null if the transcript does not have the call."""
    outcome: str | None = None
    """ok, or the type of the error. Null if the audit does not have the call."""
    duration_ms: float | None = None
    confirmation: str | None = None
    """One of requested, approved, denied and expired."""
    cache_hit: bool = False
    event: str | None = None
    """What the tool itself, or the question for approval, has written into the audit."""
    tool_version: str | None = None
    session: str | None = None


class LatencyEntry(Struct, frozen=True, kw_only=True, tag="latency", tag_field="kind"):
    """How long the parts of a turn took, as `turn_metrics` of the protocol."""

    at_ms: int
    session: str
    turn: int
    end_of_turn_ms: float | None = None
    stt_ms: float | None = None
    first_token_ms: float | None = None
    first_audio_ms: float | None = None
    total_ms: float | None = None


class EnergyEntry(Struct, frozen=True, kw_only=True, tag="energy", tag_field="kind"):
    """The model has changed."""

    at_ms: int
    session: str
    mode: str
    level: int
    previous: int
    max: int
    reason: str
    model: str | None = None


class UpstreamEntry(Struct, frozen=True, kw_only=True, tag="upstream", tag_field="kind"):
    """What the user was told about the connection to the model."""

    at_ms: int
    session: str
    code: str
    text: str


class CallEntry(Struct, frozen=True, kw_only=True, tag="call", tag_field="kind"):
    """A voice call began."""

    at_ms: int
    id: str
    duration_ms: int | None
    """Null while the call goes on, and if its process died."""
    models: tuple[str, ...]
    energy_path: tuple[int, ...]
    summary: str
    recordings: tuple[RecordingEntry, ...] = ()
    """What was recorded of it, the oldest first."""


TimelineEntry = SaidEntry | ToolCallEntry | LatencyEntry | EnergyEntry | UpstreamEntry | CallEntry


class Timeline(Struct, frozen=True):
    """A conversation with everything that is known about it, oldest first."""

    conversation: AdminConversation
    entries: tuple[TimelineEntry, ...]
    earlier: str | None
    """Pass it as `before` to get the entries before these. Null: there are none."""


class _Window(Struct, frozen=True):
    """The time that a page of the timeline covers."""

    since_ms: int
    until_ms: int | None

    def has(self, at_ms: int) -> bool:
        return self.since_ms <= at_ms and (self.until_ms is None or at_ms < self.until_ms)


async def show_timeline(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    query = read_query(request, TimelineQuery)
    before_seq, until_ms = (None, None) if query.before is None else _read_cursor(query.before)
    store = deps.operator.overview
    conversation = await store.conversation(request.path_params["id"])
    if conversation is None:
        raise Refusal(RefusalCode.NOT_FOUND, "There is no such conversation. It may have been deleted.")
    await record(deps, caller, "read_conversation", conversation=conversation.id, owner=conversation.user)
    turns = await store.turns(conversation.id, query.limit + 1, before_seq)
    page = turns[-query.limit :]
    is_first = len(page) == len(turns)
    window = _Window(0 if is_first or not page else page[0].at_ms, until_ms)
    wanted = AuditFilter(conversation=conversation.id, since_ms=window.since_ms, until_ms=window.until_ms)
    lines = [line for _, line in await store.audit(wanted, MAX_LINES)]
    events = await deps.operator.events.list(
        conversation.id, MAX_LINES, since_ms=window.since_ms, until_ms=window.until_ms
    )
    calls = [call for call in await store.voice_calls(conversation, MAX_CALLS) if window.has(call.started_ms)]
    recordings = deps.recordings
    recorded = () if recordings is None else await recordings.store.list(conversation.user, conversation.id)
    own = [line for line in reversed(lines) if not (line.event or "").startswith(EVENTS)]
    shown = AdminConversation(
        conversation.id, conversation.user, conversation.title, conversation.created_ms, conversation.updated_ms
    )
    earlier = None if is_first else f"{page[0].seq}.{page[0].at_ms}"
    return reply(Timeline(shown, tuple(merge(page, own, events, calls, recorded)), earlier))


def merge(
    turns: Sequence[StoredTurn],
    lines: Sequence[AuditLine],
    events: Iterable[SessionEvent],
    calls: Iterable[VoiceCall],
    recordings: Sequence[Recording],
) -> list[TimelineEntry]:
    """Joins what the stores have about a conversation, each of them oldest first."""
    left = list(lines)
    entries: list[TimelineEntry] = list(_from_transcript(turns, left, _find_places(recordings)))
    entries += (_from_audit(line) for line in left)
    entries += (_from_event(event) for event in events)
    entries += (
        CallEntry(
            at_ms=call.started_ms,
            id=call.id,
            duration_ms=None if call.ended_ms is None else call.ended_ms - call.started_ms,
            models=call.models,
            energy_path=call.energy_path,
            summary=call.summary,
            recordings=tuple(describe_recording(each, ADMIN_PATH) for each in recordings if each.call_id == call.id),
        )
        for call in calls
    )
    # A call begins before its first words, and latencies are known after the answer. The sort keeps the other orders.
    return sorted(entries, key=lambda each: (each.at_ms, not isinstance(each, CallEntry)))


def _find_places(recordings: Sequence[Recording]) -> dict[int, RecordedPlace]:
    """Finds where turns begin in the recordings that are complete, by their numbers."""
    complete = [each for each in recordings if each.duration_ms is not None]
    return {mark.seq: RecordedPlace(each.id, mark.at_ms) for each in complete for mark in each.marks}


def _from_transcript(
    turns: Sequence[StoredTurn], lines: list[AuditLine], places: Mapping[int, RecordedPlace]
) -> Iterator[TimelineEntry]:
    """Yields what was said and which tools were called, and takes the lines about these calls out of `lines`."""
    args: dict[str, Any] = {}
    for turn in turns:
        message: Message = msgspec.json.decode(turn.body, type=Message)
        match message:
            case ToolMessage(call_id=call_id, name=name, content=content, ok=ok):
                line = _take_line(lines, message, turn.at_ms)
                audited = ToolCallEntry(at_ms=turn.at_ms, tool=name) if line is None else _from_audit(line)
                given = args.get(call_id)
                yield msgspec.structs.replace(
                    audited, args=audited.args if given is None else shorten(given), result=shorten(content), ok=ok
                )
                continue
            case AssistantMessage(calls=calls):
                args |= {call.id: call.args for call in calls}
        if turn.text:
            yield SaidEntry(
                at_ms=turn.at_ms,
                seq=turn.seq,
                role=turn.role,
                text=turn.text,
                spoken=turn.spoken,
                place=places.get(turn.seq),
            )


def _take_line(lines: list[AuditLine], result: ToolMessage, at_ms: int) -> AuditLine | None:
    """Takes the line about a call whose result was stored at this time: the one with its id, or else the first one with
    its outcome. A call that needed approval has two lines."""

    def distance(line: AuditLine) -> tuple[bool, bool]:
        return line.idempotency_key != f"provider:{result.call_id}", (line.outcome == "ok") != result.ok

    near = [
        line
        for line in lines
        if line.tool == result.name and line.event is None and at_ms - PAIRED_MS <= line.ts_ms <= at_ms
    ]
    if not near:
        return None
    line = min(near, key=distance)
    lines[:] = [each for each in lines if each is not line]
    return line


def _from_audit(line: AuditLine) -> ToolCallEntry:
    return ToolCallEntry(
        at_ms=line.ts_ms,
        tool=line.tool,
        args=shorten(line.args),
        outcome=line.outcome,
        duration_ms=line.duration_ms,
        confirmation=line.confirmation,
        cache_hit=line.cache_hit,
        event=line.event,
        tool_version=line.tool_version,
        session=line.session,
    )


def _from_event(event: SessionEvent) -> TimelineEntry:
    kinds: dict[str, type[LatencyEntry | EnergyEntry | UpstreamEntry]] = {METRICS: LatencyEntry, ENERGY: EnergyEntry}
    fields = {**event.data, "at_ms": event.at_ms, "session": event.session_id}
    kind = kinds.get(event.kind, UpstreamEntry)
    return msgspec.convert({**fields, "kind": kind.__struct_config__.tag}, kind)


def _read_cursor(text: str) -> tuple[int, int]:
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise Refusal(RefusalCode.BAD_REQUEST, "Wrong parameter: `before` is not the `earlier` of a page.")
    return int(found[1]), int(found[2])

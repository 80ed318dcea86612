"""The HTTP interface: one table of operations, from which the routes and the OpenAPI document are made."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from antiphon import __version__
from antiphon.security.admission import Caller
from antiphon.security.quota import Account, Kind
from antiphon.server import energy, images, kb, recordings, records
from antiphon.server.admin.access import check_admin
from antiphon.server.admin.operations import ADMIN_OPERATIONS
from antiphon.server.answer import REQUEST_ALIASES, ChatAnswer, ChatRequest
from antiphon.server.authenticator import TooManyWrongTokens
from antiphon.server.chat import Chat, ChatTurn
from antiphon.server.deps import HttpDeps, Model, ModelState
from antiphon.server.event_stream import MEDIA_TYPE, EventStream, disconnect
from antiphon.server.metrics import BuildCollector, EnergyCollector, ModelCollector, SessionCollector
from antiphon.server.operation import Handle, Operation
from antiphon.server.parts import Part, examine
from antiphon.server.refusals import Refusal, RefusalCode, reply, unavailable
from antiphon.server.requests import read_body, read_query
from antiphon.storage.base import STORE_UNAVAILABLE, StoreUnavailable
from antiphon.telemetry.log import get_logger
from antiphon.telemetry.metrics import CallCollector, EngineCollector, TurnCollector
from antiphon.tools.spec import Category, Mode, ToolSpec

NAME: Final = "antiphon"
NOBODY: Final = Caller("", authenticated=False)
"""The caller of a public operation."""

log = get_logger(__name__)


class Health(Struct, frozen=True):
    status: str
    """Either ok or unready."""
    problems: tuple[str, ...] = ()
    """What keeps the server from serving, one sentence each."""
    name: str = NAME
    """Always the same, so that this server can be told from others."""
    version: str = __version__
    model: ModelState | UnsetType = UNSET
    """The text model; only in `/ready`. A failing model does not make the server unready: another server would have the
    same model, and stored conversations can still be read."""
    voice_model: ModelState | UnsetType = UNSET
    """The model that hears and speaks by itself, if there is one; only in `/ready`."""
    fallback_models: tuple[ModelState, ...] | UnsetType = UNSET
    """The models that take over when these are rate-limited; only in `/ready`."""
    parts: tuple[Part, ...] | UnsetType = UNSET
    """Which part is unwell; only in `/ready`. Of these, only the store makes the server unready."""


class ToolMetrics(Struct, frozen=True):
    """Statistics of the calls since the process started."""

    calls: int
    errors: int
    cache_hits: int
    average_ms: float


class ToolEntry(ToolSpec, frozen=True, kw_only=True, rename="camel"):
    """A tool: the fields of its schema.json, its summary in the prompt, and its statistics."""

    summary: str
    metrics: ToolMetrics


class ToolsQuery(Struct, forbid_unknown_fields=True):
    category: Category | None = None
    """Only the tools of this category."""


class ToolList(Struct, frozen=True):
    version: str
    """The version of all tools together. Any change of a tool changes it."""
    tools: tuple[ToolEntry, ...]


class ModelList(Struct, frozen=True):
    models: tuple[Model, ...]


class VoiceEntry(Struct, frozen=True):
    id: str
    """The value for `voice` in `settings`."""
    name: str
    language: str
    """The language tag, for example "en-US"."""
    current: bool
    """Whether this is the default voice."""


class VoiceList(Struct, frozen=True):
    voices: tuple[VoiceEntry, ...]


async def health(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    return reply(Health("ok"))


async def ready(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    problems = tuple(await deps.ready())
    text, voice = ([each.state() for each in deps.model_healths.get(mode, ())] for mode in (Mode.TEXT, Mode.VOICE))
    health = Health(
        "unready" if problems else "ok",
        problems,
        model=text[0] if text else UNSET,
        voice_model=voice[0] if voice else UNSET,
        fallback_models=(*text[1:], *voice[1:]),
        parts=examine(problems, deps.model_healths, deps.voice_parts, answers_locally=deps.answers_locally),
    )
    return reply(health, 503 if problems else 200)


async def metrics(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    registry = CollectorRegistry()
    calls = CallCollector(lambda: {tool_id: tool.stats for tool_id, tool in deps.registry.snapshot().tools.items()})
    own = (
        calls,
        SessionCollector(deps.hub),
        ModelCollector(deps.model_healths),
        EnergyCollector(deps.hub),
        TurnCollector(deps.hub.models.turns),
        EngineCollector(deps.voice_parts.stt, deps.voice_parts.tts),
        BuildCollector(deps.registry),
    )
    for collector in (*own, *deps.collectors):
        registry.register(collector)
    # What the operating system and Python count.
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


async def tools(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    snapshot = deps.registry.snapshot()
    category = read_query(request, ToolsQuery).category
    wanted = snapshot.tools.values() if category is None else snapshot.by_category(category)
    entries = (
        ToolEntry(
            **{**msgspec.structs.asdict(tool.spec), "title": tool.spec.shown_title},
            summary=tool.summary,
            metrics=ToolMetrics(**tool.stats.summary()),
        )
        for tool in wanted
    )
    return reply(ToolList(snapshot.version, tuple(entries)))


async def models(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    return reply(ModelList(tuple(deps.models())))


async def voices(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    entries = (
        VoiceEntry(voice.id, voice.name, voice.language, current=number == 0)
        for number, voice in enumerate(deps.voices())
    )
    return reply(VoiceList(tuple(entries)))


async def openapi(deps: HttpDeps, request: Request, caller: Caller) -> Response:
    # Imported here, since the document is made from the table of operations below.
    from antiphon.server.openapi import document

    # In a thread, since it takes 60 ms the first time.
    made = await asyncio.to_thread(document)
    # The prefix under which the application is mounted in another one.
    root = request.scope.get("root_path", "")
    return reply({**made, "servers": [{"url": root}]} if root else made)


_GONE = (RefusalCode.NOT_FOUND,)
_BAD = (RefusalCode.BAD_REQUEST,)
_CONVERSATIONS = "/api/conversations"
_CONVERSATION = "/api/conversations/{id}"
_CALLS = "/api/calls"
_CALL = "/api/calls/{id}"
_ENERGY = "/api/energy"
_KNOWLEDGE = "/api/kb"
_RECORD = "/api/kb/{id}"

CHAT: Final = Operation(
    "POST",
    "/api/chat",
    "Send a message and get the answer; with `Accept: text/event-stream` as events, of which the last, `done`, has it.",
    handle=None,
    answer=ChatAnswer,
    body=ChatRequest,
    refusals=(
        RefusalCode.BAD_REQUEST,
        RefusalCode.BLOCKED,
        RefusalCode.NOT_FOUND,
        RefusalCode.CONFIRMATION_GONE,
        RefusalCode.BUSY,
        RefusalCode.TOO_LARGE,
        RefusalCode.TOO_FAST,
        RefusalCode.MODEL_FAILED,
        RefusalCode.DEADLINE,
    ),
    also=MEDIA_TYPE,
)
OPERATIONS: Final = (
    CHAT,
    Operation(
        "GET",
        _CONVERSATIONS,
        "List your conversations.",
        handle=records.list_conversations,
        answer=records.ConversationList,
        query=records.ConversationsQuery,
        refusals=_BAD,
    ),
    Operation(
        "DELETE",
        _CONVERSATIONS,
        "Delete all of your conversations.",
        handle=records.delete_conversations,
        answer=records.Deleted,
        query=records.DeleteQuery,
        refusals=_BAD,
    ),
    Operation(
        "GET",
        _CONVERSATION,
        "Get a conversation, as JSON or Markdown.",
        handle=records.show_conversation,
        answer=records.ConversationRecord,
        query=records.ConversationQuery,
        refusals=_BAD + _GONE,
        also=records.MARKDOWN,
    ),
    Operation(
        "DELETE",
        _CONVERSATION,
        "Delete a conversation.",
        handle=records.delete_conversation,
        answer=None,
        refusals=_GONE,
    ),
    Operation(
        "GET",
        recordings.LIST_PATH,
        "List the recordings of the calls of a conversation.",
        handle=recordings.list_recordings,
        answer=recordings.RecordingList,
        refusals=_GONE,
    ),
    Operation(
        "GET",
        recordings.PATH,
        "Hear a recording. Ranges of bytes are supported.",
        handle=recordings.play_recording,
        answer=recordings.MEDIA_TYPE,
        refusals=recordings.REFUSALS,
    ),
    Operation(
        "GET",
        _CALLS,
        "List your calls.",
        handle=records.list_calls,
        answer=records.CallList,
        query=records.CallsQuery,
        refusals=_BAD,
    ),
    Operation("DELETE", _CALLS, "Delete all of your calls.", handle=records.delete_calls, answer=records.Deleted),
    Operation("GET", _CALL, "Get a call.", handle=records.show_call, answer=records.CallRecord, refusals=_GONE),
    Operation("DELETE", _CALL, "Delete a call.", handle=records.delete_call, answer=None, refusals=_GONE),
    Operation(
        "GET",
        _KNOWLEDGE,
        "Search the knowledge base, or list its newest records.",
        handle=kb.search_records,
        answer=kb.KnowledgeResults,
        query=kb.KnowledgeQuery,
        refusals=(*_BAD, RefusalCode.FORBIDDEN, RefusalCode.TOO_FAST),
    ),
    Operation(
        "POST",
        _KNOWLEDGE,
        "Add a record to the knowledge base.",
        handle=kb.add_record,
        answer=kb.KnowledgeRecord,
        status=201,
        body=kb.NewRecord,
        refusals=(*_BAD, RefusalCode.FORBIDDEN, RefusalCode.TOO_LARGE, RefusalCode.TOO_FAST),
    ),
    Operation(
        "GET",
        _RECORD,
        "Get a record of the knowledge base.",
        handle=kb.show_record,
        answer=kb.KnowledgeRecord,
        refusals=_GONE,
    ),
    Operation(
        "DELETE",
        _RECORD,
        "Delete a record of the knowledge base.",
        handle=kb.delete_record,
        answer=None,
        refusals=(*_GONE, RefusalCode.FORBIDDEN),
    ),
    Operation(
        "GET",
        "/api/tools",
        "List the tools and their statistics.",
        handle=tools,
        answer=ToolList,
        query=ToolsQuery,
        refusals=_BAD,
    ),
    Operation(
        "GET",
        _ENERGY,
        "Tell which models there are for each level of energy, and the levels of your sessions.",
        handle=energy.show_energy,
        answer=energy.EnergyState,
    ),
    Operation(
        "PUT",
        _ENERGY,
        "Set the level of energy of your sessions, or of one of them.",
        handle=energy.set_energy,
        answer=energy.ChangedSessions,
        body=energy.EnergyRequest,
        refusals=(*_BAD, *_GONE, RefusalCode.TOO_LARGE, RefusalCode.TOO_FAST, RefusalCode.DEADLINE),
    ),
    Operation(
        "POST",
        "/api/sessions/{id}/renew",
        "Replace a session's model by a new one with the same context, because it answers badly.",
        handle=energy.renew_session,
        answer=energy.SessionEnergy,
        refusals=(*_GONE, RefusalCode.TOO_FAST, RefusalCode.DEADLINE),
    ),
    Operation("GET", "/api/models", "List the models that can be chosen.", handle=models, answer=ModelList),
    Operation("GET", "/api/voices", "List the voices that can be chosen.", handle=voices, answer=VoiceList),
    Operation(
        "GET",
        images.PATH,
        "Get an image that a tool has made: PNG, JPEG or WebP. Whoever knows its address may see it.",
        handle=images.show_image,
        answer=images.MEDIA_TYPE,
        refusals=_GONE,
        public=True,
    ),
    Operation(
        "GET",
        "/api/openapi.json",
        "Get this document.",
        handle=openapi,
        answer="application/json",
        public=True,
    ),
    Operation(
        "GET",
        "/health",
        "Tell whether the process is alive, and its version.",
        handle=health,
        answer=Health,
        public=True,
    ),
    Operation(
        "GET",
        "/ready",
        "Tell whether the server can serve, and which part is unwell; 503 and the reasons if it cannot.",
        handle=ready,
        answer=Health,
        public=True,
    ),
    Operation("GET", "/metrics", "Get metrics for Prometheus.", handle=metrics, answer="text/plain"),
    *ADMIN_OPERATIONS,
)


def routes(deps: HttpDeps) -> list[Route]:
    chat = Chat(deps)

    async def talk(deps: HttpDeps, request: Request, caller: Caller) -> Response:
        return await _talk(chat, request, caller)

    return [
        Route(operation.path, _endpoint(deps, operation, operation.handle or talk), methods=[operation.method])
        for operation in OPERATIONS
    ]


def _endpoint(deps: HttpDeps, operation: Operation, handle: Handle) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            caller = NOBODY if operation.public else await deps.identify(request)
            if operation.is_admin:
                caller = check_admin(caller)
            if caller is None:
                raise Refusal(RefusalCode.UNAUTHENTICATED, "A valid token is required: Authorization: Bearer TOKEN.")
            return await handle(deps, request, caller)
        except Refusal as refusal:
            return refusal.response()
        except TooManyWrongTokens as error:
            return Refusal(RefusalCode.TOO_FAST, str(error), retry_after_s=error.wait_s).response()
        except StoreUnavailable as error:
            log.error("request_failed", path=operation.path, error=str(error))
            return unavailable(STORE_UNAVAILABLE).response()
        except ClientDisconnect:
            return Response(status_code=204)
        except Exception:
            log.exception("request_failed", path=operation.path)
            return Refusal(RefusalCode.INTERNAL, "An error in the server prevented this.").response()

    return endpoint


async def _talk(chat: Chat, request: Request, caller: Caller) -> Response:
    deps = chat.deps
    address = request.client.host if request.client is not None else None
    account = Account(user=caller.user, address=address)
    wait_s = deps.quota.take(Kind.CONNECTION, account, 1, deps.clock.monotonic())
    if wait_s > 0:
        raise Refusal(RefusalCode.TOO_FAST, "Too many requests. Try again later.", retry_after_s=wait_s)
    turn = await chat.enter(caller, await read_body(request, ChatRequest, REQUEST_ALIASES), address=address)
    if MEDIA_TYPE in request.headers.get("accept", ""):
        return EventStream(turn)
    return await _answer(turn, request)


async def _answer(turn: ChatTurn, request: Request) -> Response:
    """Returns the whole answer, or cancels it if the client goes away."""
    making = asyncio.create_task(turn.run())
    leaving = asyncio.create_task(disconnect(request.receive))
    try:
        await asyncio.wait([making, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not making.done():
            raise ClientDisconnect
        return reply(making.result())
    finally:
        making.cancel()
        leaving.cancel()
        await asyncio.wait([making, leaving])

"""Answers one chat completion: the text model converses, the server's tools run through the gate, and a call of one of
the client's tools ends the answer.

Nothing is stored about the conversation, since the client sends all of it each time. The gate still has to recognise
two things from one request to the next. A yes or no must find the question that it answers: the tools' session is named
after the conversation up to the user's message, so the next request can compute the name of the one before. And a
model that repeats a call after it got the results of the client's tools must not make the server act twice: the ids of
the client's calls contain the number of the turn, under which the gate knows what has run.
"""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct

from antiphon.clock import Clock
from antiphon.gateway.api_errors import invalid, model_failed
from antiphon.gateway.chat_request import ChatRequest
from antiphon.models.base import TextModel
from antiphon.models.health import ModelHealth
from antiphon.models.live import (
    GenerationComplete,
    LiveContext,
    LiveEvent,
    OutputText,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnFailed,
    Usage,
    messages_of,
)
from antiphon.models.text_chat import TextChat
from antiphon.prompts.composer import Composer, notes_about
from antiphon.session.tool_runner import QuotaCharge, answer_of, run_charged
from antiphon.storage.people import BlockStore
from antiphon.tools.call import ToolCall
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.executor import Executor
from antiphon.tools.messages import Message, Timeout
from antiphon.tools.result import ConfirmationRequest
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode
from antiphon.transcript import Entry, Transcript, UserMessage

TURN: Final = "turn"
MAX_TURN_NUMBER: Final = 2**31
SCHEMAS: Final = "openai_chat"

_CALL_ID: Final = re.compile(r"call_(?P<turn>[0-9a-f]{8})_[0-9a-f]{16}")


class ClientCalls(Struct, frozen=True):
    """Calls of the client's tools. They end the answer."""

    calls: tuple[ToolCall, ...]


class Tokens(Struct, frozen=True):
    """What an answer cost."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatDeps:
    """What answers are made with."""

    model: TextModel
    health: ModelHealth
    composer: Composer
    executor: Executor
    blocks: BlockStore
    zone: ZoneInfo
    clock: Clock


class RequestMessaging:
    """`context.messaging` of a request: it keeps what the person is asked, and applies blocks."""

    def __init__(self, user: str, blocks: BlockStore) -> None:
        self.questions: list[str] = []
        self._user = user
        self._blocks = blocks

    async def send(self, message: Message) -> None:
        match message:
            case ConfirmationRequest(preview=preview):
                self.questions.append(preview)
            case Timeout(until=until, message=text):
                await self._blocks.block(self._user, until, text)
            case _:
                raise ToolError(ErrorType.TRANSIENT, "The client cannot show messages.")


class ChatAnswer:
    def __init__(
        self, deps: ChatDeps, request: ChatRequest, *, user: str, authenticated: bool, charge: QuotaCharge
    ) -> None:
        """`charge` counts calls of the server's tools. Raises `ApiError` if one of the client's has the same name."""
        self.usage: Tokens | None = None
        """What the answer has cost so far, if the model says so."""
        self.has_run_tools = False
        """Whether one of the server's tools was called: repeating the request might then repeat what it did."""
        self._deps = deps
        self._request = request
        self._charge = charge
        self._messaging = RequestMessaging(user, deps.blocks)
        self._said = ""
        self._session = ToolSession(
            id=f"chat-{request.turn_key}",
            user=user,
            snapshot=deps.executor.registry.snapshot(),
            authenticated=authenticated,
            turn=_turn_of(request.last_call_id),
            zone=deps.zone,
            messaging=self._messaging,
        )
        self._session.heard.extend(each.text for each in request.messages if isinstance(each, UserMessage))
        for name in request.tools:
            if name in self._session.snapshot.tools:
                raise invalid(f"The server has a tool called {name} itself. Give yours another name.", "tools")

    async def run(self) -> AsyncIterator[str | ClientCalls]:
        """Yields the text piece by piece, and the client's calls last. Raises `ApiError`."""
        decided = await self._hear_consent()
        events: asyncio.Queue[LiveEvent] = asyncio.Queue()
        chat = TextChat(self._deps.model, events.put_nowait)
        try:
            chat.connect(await self._describe_context(decided))
            chat.respond(TURN)
            while not isinstance(event := await events.get(), TurnComplete):
                match event:
                    case OutputText(text=text):
                        self._said += text
                        yield text
                    case ToolCalls(calls=calls):
                        theirs = [call for call in calls if call.name in self._request.tools]
                        if theirs:
                            # The server's calls of the same message are dropped: once the model has the results of the
                            # client's, it asks again. Their results could not be part of the client's history.
                            yield ClientCalls(tuple(map(self._name_call, theirs)))
                            return
                        chat.send_tool_results(TURN, await self._run_tools(calls))
                    case Usage(input_tokens=input_tokens, output_tokens=output_tokens):
                        self._count(input_tokens, output_tokens)
                    case GenerationComplete(is_local=False):
                        self._deps.health.note_success()
                    case TurnFailed():
                        if event.kind is not None:
                            self._deps.health.note_failure(self._deps.model.profile.name, event.kind, event.status)
                        raise model_failed(event, may_retry=not self.has_run_tools)
        finally:
            await chat.close()
        for question in self._messaging.questions:
            # The person must see what a yes would run, and a model may have put it in other words.
            if question not in self._said:
                yield f"\n\n{question}"

    async def _hear_consent(self) -> Sequence[ToolAnswer]:
        """Carries out the user's yes or no to a question of the turn before."""
        text, before = self._request.text, self._request.previous_turn_key
        if text is None or before is None:
            return ()
        session = self._session
        # With the same ledger, so that a call that was declined is refused if the model repeats it.
        asking = ToolSession(
            id=f"chat-{before}",
            user=session.user,
            snapshot=session.snapshot,
            authenticated=session.authenticated,
            turn=session.turn,
            zone=session.zone,
            messaging=self._messaging,
            ledger=session.ledger,
        )
        decision = await self._deps.executor.hear_any(text, asking)
        if decision is None:
            return ()
        self.has_run_tools = True
        result = await self._deps.executor.carry_out(decision, asking)
        return [answer_of(decision.call, result)]

    async def _describe_context(self, decided: Sequence[ToolAnswer]) -> LiveContext:
        deps, request, snapshot = self._deps, self._request, self._session.snapshot
        system = deps.composer.compose(
            Mode.TEXT,
            tools_version=snapshot.version,
            summaries=snapshot.summaries(),
            client_instructions=request.instructions,
            notes=await notes_about(self._session.user, deps.blocks, deps.clock.now_ms()),
        )
        messages = [*request.messages, *(messages_of("", decided, key="decided") if decided else ())]
        transcript = Transcript(Entry(TURN, message) for message in messages)
        return LiveContext(
            system=system.text,
            transcript=transcript,
            history=(),
            tools=self._offered_tools(),
            mode=Mode.TEXT,
            allows_local=not request.instructions.strip(),
        )

    def _offered_tools(self) -> Sequence[Mapping[str, Any]]:
        if not self._request.calls_tools:
            return ()
        return [*self._session.snapshot.provider_schemas(SCHEMAS, Mode.TEXT), *self._request.tools.values()]

    async def _run_tools(self, calls: Sequence[ToolCall]) -> list[ToolAnswer]:
        self.has_run_tools = True
        runs = [asyncio.create_task(self._run_tool(call)) for call in calls]
        try:
            return [await run for run in runs]
        finally:
            for run in runs:
                run.cancel()
            for run in runs:
                with suppress(asyncio.CancelledError):
                    await run

    async def _run_tool(self, call: ToolCall) -> ToolAnswer:
        # The gate knows it by its content and turn alone: some models number their calls anew in every conversation.
        unnamed = msgspec.structs.replace(call, id=None)
        return answer_of(call, await run_charged(self._deps.executor, unnamed, self._session, self._charge))

    def _name_call(self, call: ToolCall) -> ToolCall:
        """Gives a call of the client an id that leads back to this turn."""
        return msgspec.structs.replace(call, id=f"call_{self._session.turn:08x}_{secrets.token_hex(8)}")

    def _count(self, input_tokens: int, output_tokens: int) -> None:
        before = self.usage or Tokens(0, 0)
        self._deps.health.note_usage(input_tokens, output_tokens)
        self.usage = Tokens(before.input_tokens + input_tokens, before.output_tokens + output_tokens)


def _turn_of(call_id: str | None) -> int:
    """Returns the number of the turn that a call of the client's tools belongs to. A new turn gets a random one: two
    conversations with the same words are two conversations, and what one has run is not recalled in the other."""
    found = None if call_id is None else _CALL_ID.fullmatch(call_id)
    return secrets.randbelow(MAX_TURN_NUMBER) if found is None else int(found["turn"], 16)

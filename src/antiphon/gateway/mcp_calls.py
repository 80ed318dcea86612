"""The calls of MCP clients: each passes the gate, and a person at the client approves what needs approval.

In the newer generation of the protocol (2026-07-28) a call that needs approval is answered with `input_required`, and
the client makes it again with the person's answer. In the older ones the server asks in the middle of the call
(elicitation). A client that can do neither is told what it would have to ask.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.gateway.deps import GatewayDeps
from antiphon.gateway.mcp_session_tools import session_tools
from antiphon.security.admission import Caller
from antiphon.security.quota import Account
from antiphon.session.nodes import Nodes
from antiphon.session.tool_runner import charge_to
from antiphon.tools.call import ToolCall, UnusableArguments, canonical
from antiphon.tools.errors import ErrorType
from antiphon.tools.executor import Executor
from antiphon.tools.registry import Snapshot
from antiphon.tools.result import ConfirmationRequest, ToolResult, fail
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams, CallToolResult, ElicitResult, InputRequiredResult, Tool

    Context = ServerRequestContext[Any, Any]

ADMITTED: Final = "antiphon.admitted"
"""The key of the ASGI scope under which the handlers find who calls."""
OF_CONVERSATIONS: Final = frozenset({"ignore_user", "start_voice_session", "end_voice_session"})
"""Tools that change the conversation they are called in, which an MCP client has not."""
CONFIRM: Final = "confirm"
APPROVE: Final = "approve"
FORM: Final = {
    "type": "object",
    "properties": {APPROVE: {"type": "boolean", "title": "Approve", "description": "Whether this may be done."}},
    "required": [APPROVE],
}
MAX_TURN: Final = 2**31 - 1
CHANGED: Final = "The call is not the one that was approved, so nothing was done."


@dataclass(frozen=True, slots=True)
class McpCaller:
    caller: Caller
    account: Account


class McpCalls:
    def __init__(self, deps: GatewayDeps, executor: Executor, nodes: Nodes) -> None:
        self._deps = deps
        self._executor = executor
        self._session_tools = session_tools(nodes, deps.adapters["mcp"])
        self._listed: tuple[str, Sequence[Tool]] = ("", ())

    def input_schema(self, name: str) -> dict[str, Any] | None:
        tool = self._snapshot().tools.get(name)
        return None if tool is None else tool.spec.parameters

    def list_tools(self) -> "Sequence[Tool]":
        from mcp_types import Tool

        snapshot = self._snapshot()
        if self._listed[0] != snapshot.version:
            offered = [tool for tool in snapshot.allowed(Mode.TEXT) if tool.id not in OF_CONVERSATIONS]
            listed = [Tool.model_validate(tool.provider_schemas["mcp"]) for tool in offered]
            self._listed = (snapshot.version, listed)
        return self._listed[1]

    async def call(self, ctx: "Context", params: "CallToolRequestParams") -> "CallToolResult | InputRequiredResult":
        from mcp import MCPError
        from mcp_types import INVALID_PARAMS

        snapshot = self._snapshot()
        if params.name not in snapshot.tools or params.name in OF_CONVERSATIONS:
            raise MCPError(INVALID_PARAMS, f"There is no tool called {params.name[:64]!r}.")
        if params.request_state is not None:
            return await self._call_again(ctx, params, snapshot)
        admitted: McpCaller = _request_of(ctx).scope[ADMITTED]
        charge = charge_to(self._deps.quota, admitted.account, self._deps.clock)
        wait_s = charge()
        if wait_s > 0:
            message = "You have made too many calls. Wait before the next one."
            return answer(fail(ErrorType.RATE_LIMIT, message, retryable=True, retry_after_s=round(wait_s, 1)))
        session, call_id = self._begin(ctx, admitted.caller, snapshot)
        call = ToolCall(call_id, params.name, params.arguments or {})
        result = await self._executor.execute(call, session)
        request = result.error.confirmation_request if result.error is not None else None
        if request is None or not _can_ask(ctx):
            return answer(result)
        if _is_modern(ctx):
            return _input_required(request, session)
        person = await ctx.session.elicit_form(request.preview, FORM, ctx.request_id)
        return answer(await self._executor.resolve(request.confirmation_token, _approves(person), session))

    async def _call_again(
        self, ctx: "Context", params: "CallToolRequestParams", snapshot: Snapshot
    ) -> "CallToolResult":
        """Takes the person's answer to a call that was answered with `input_required`."""
        from mcp import MCPError
        from mcp_types import INVALID_PARAMS, ElicitResult

        admitted: McpCaller = _request_of(ctx).scope[ADMITTED]
        parts = (params.request_state or "").split(".")
        person = (params.input_responses or {}).get(CONFIRM)
        if len(parts) != 3 or not parts[1].isdecimal() or len(parts[1]) > 10 or not isinstance(person, ElicitResult):
            raise MCPError(INVALID_PARAMS, f"The request state is not valid, or the answer to {CONFIRM!r} is missing.")
        session_id, turn, token = parts
        session = self._session(session_id, int(turn), admitted.caller, snapshot)
        decision = await self._executor.decide(token, _approves(person), session)
        if decision is None:
            return answer(await self._executor.resolve(token, False, session))
        try:
            same = canonical(params.arguments or {}) == canonical(decision.call.args)
        except UnusableArguments:
            same = False
        if decision.call.name != params.name or not same:
            return answer(fail(ErrorType.VALIDATION, CHANGED, suggestion="Make the call again from the start."))
        return answer(await self._executor.carry_out(decision, session))

    def _snapshot(self) -> Snapshot:
        return self._executor.registry.snapshot().with_tools(self._session_tools)

    def _begin(self, ctx: "Context", caller: Caller, snapshot: Snapshot) -> tuple[ToolSession, str | None]:
        """Makes the session of a call, and the id by which a second delivery of it is recognised.

        Each request is a turn of its own. In the older generation it is known by the client's session and its number.
        In the newer one there are no sessions, and clients count from 1: only an id that is a long text identifies a
        request.
        """
        session_id = _request_of(ctx).headers.get("mcp-session-id")
        if session_id is not None and not _is_modern(ctx):
            call_id: str | None = f"{session_id}:{ctx.request_id}"
            name = f"mcp-{session_id}"
        else:
            call_id = ctx.request_id if isinstance(ctx.request_id, str) else None
            owner = caller.user if call_id is not None else secrets.token_hex(16)
            name = f"mcp-{hashlib.sha256(owner.encode()).hexdigest()[:32]}"
        turn = int.from_bytes(hashlib.sha256((call_id or secrets.token_hex(8)).encode()).digest()[:4]) & MAX_TURN
        return self._session(name, turn, caller, snapshot), call_id

    def _session(self, id: str, turn: int, caller: Caller, snapshot: Snapshot) -> ToolSession:
        return ToolSession(
            id=id,
            user=caller.user,
            snapshot=snapshot,
            authenticated=caller.authenticated,
            turn=turn,
            zone=self._deps.hub.zone,
        )


def answer(result: ToolResult) -> "CallToolResult":
    """Makes the answer to a call: the data for programs, and the same as text for models that read only that."""
    from mcp_types import CallToolResult, ContentBlock, TextContent

    data = result.for_model()
    texts = [result.spoken] if result.spoken and result.ok else []
    texts.append(msgspec.json.encode(data).decode())
    structured = data if isinstance(data, dict) else {"result": data}
    # Through JSON, since a handler's data may have types that pydantic writes in another way.
    structured = msgspec.json.decode(msgspec.json.encode(structured))
    content: list[ContentBlock] = [TextContent(text=text) for text in texts]
    return CallToolResult(content=content, structured_content=structured, is_error=not result.ok)


def _input_required(request: ConfirmationRequest, session: ToolSession) -> "InputRequiredResult":
    from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

    form = ElicitRequestFormParams(message=request.preview, requested_schema=FORM)
    # It needs no seal: the token is random, and bound to the user, the session and the call in the store.
    state = f"{session.id}.{session.turn}.{request.confirmation_token}"
    return InputRequiredResult(input_requests={CONFIRM: ElicitRequest(params=form)}, request_state=state)


def _approves(person: "ElicitResult") -> bool:
    return person.action == "accept" and (person.content or {}).get(APPROVE) is True


def _can_ask(ctx: "Context") -> bool:
    """Whether the client can show a form to a person. An empty capability means a form, as before there were others."""
    capabilities = ctx.session.client_capabilities
    able = None if capabilities is None else capabilities.elicitation
    if able is None or (able.form is None and able.url is not None):
        return False
    return _is_modern(ctx) or ctx.session.can_send_request


def _is_modern(ctx: "Context") -> bool:
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def _request_of(ctx: "Context") -> Any:
    assert ctx.request is not None
    return ctx.request

"""The request and the answer of `POST /api/chat`, and how the messages of a turn become one answer."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from antiphon.protocol import client_messages as c
from antiphon.protocol import codec, limits
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import Close
from antiphon.server.refusals import Block, Refusal, RefusalCode, unavailable
from antiphon.tools.result import Citation, ConfirmationRequest

SWITCHING: Final = "Let's switch to voice mode."


class Capabilities(Struct, frozen=True, forbid_unknown_fields=True):
    """What the caller supports."""

    voice: bool = False
    """The caller is in voice mode, so tools for text only are refused."""
    messaging: bool = True
    """The caller can show what tools send. Without it they cannot send anything, so voice cannot be started."""


class Confirm(Struct, frozen=True, forbid_unknown_fields=True):
    """The user's answer to a `confirmationRequest`."""

    confirmation_token: c.Secret
    approved: bool


class ChatRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A message, an answer to a confirmation request, or both."""

    message: Annotated[str, Meta(max_length=limits.MAX_TEXT)] = ""
    """May be blank only beside `confirm`, which is handled first."""
    conversation_id: c.Id | None = None
    """The conversation to continue. Absent: a new one."""
    confirm: Confirm | None = None
    capabilities: Capabilities = Capabilities()


REQUEST_ALIASES: Final = {"conversationId": "conversation_id"}
"""Names that answers use, so that a client can send them back unchanged."""


class ToolRun(Struct, frozen=True):
    """A tool call of this turn."""

    name: str
    args: Any
    """The arguments as the model gave them."""
    result: Any
    """The tool's data, or {"error": …}."""
    ok: bool
    duration_ms: float | None
    id: str | None = None
    """A call that waits for confirmation keeps its id when it runs. The `confirmationRequest` has the same id."""


class ChatAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    message: str
    conversation_id: str
    tool_calls: tuple[ToolRun, ...]
    citations: tuple[Citation, ...]
    start_voice_session: bool | UnsetType = UNSET
    """Present and true if the client should continue in voice."""
    pending_request: str | UnsetType | None = UNSET
    """What to answer first, with `startVoiceSession`."""
    confirmation_request: ConfirmationRequest | UnsetType = UNSET
    """What the user is asked to approve."""
    timeout: Block | UnsetType = UNSET
    """The user is blocked from now on, until this ends."""


class AnswerCollector:
    """The link of a session whose client waits for the whole answer. `listener` is called with each frame."""

    def __init__(self) -> None:
        self.told: list[s.ServerMessage] = []
        self.closed: Close | None = None
        self.listener: Callable[[str], None] = lambda frame: None

    def send(self, frame: str | bytes, *, is_replay: bool = False) -> None:
        if isinstance(frame, str):
            self.told.append(codec.decode_server(frame))
            self.listener(frame)

    def close(self, close: Close) -> None:
        self.closed = close

    def answer(
        self, conversation_id: str, citations: tuple[Citation, ...], approved: Mapping[str, Any] | None = None
    ) -> ChatAnswer:
        """Makes the answer. `approved` has the arguments of calls that earlier answers have shown, by their ids."""
        calls: dict[str | None, Any] = {}
        calls.update(approved or {})
        runs: list[ToolRun] = []
        texts: list[str] = []
        found: dict[str, Any] = {}
        for message in self.told:
            match message:
                case s.ToolCall(id=id, args=args):
                    calls[id] = args
                case s.ToolResult(name=name, result=result, id=id, ok=ok, duration_ms=duration_ms):
                    runs.append(
                        ToolRun(name=name, args=calls.get(id), result=result, ok=ok, duration_ms=duration_ms, id=id)
                    )
                case s.Response(text=text):
                    texts.append(text)
                case s.VoiceSessionStart(pending_request=pending_request):
                    found |= {"start_voice_session": True, "pending_request": pending_request}
                case s.ConfirmationRequest():
                    request = msgspec.convert(message, ConfirmationRequest, from_attributes=True)
                    found.setdefault("confirmation_request", request)
                case s.Timeout(until=until, duration_seconds=duration_s, message=why):
                    found["timeout"] = Block(until, duration_s, why)
        said = "\n\n".join(text.strip() for text in texts if text.strip())
        if not said and "start_voice_session" in found:
            said = SWITCHING
        return ChatAnswer(
            message=said, conversation_id=conversation_id, tool_calls=tuple(runs), citations=citations, **found
        )

    def refusal(self) -> Refusal | None:
        """Returns what went wrong, if anything did."""
        for message in self.told:
            match message:
                case s.Error(message=why, code=RefusalCode.UNAVAILABLE):
                    return unavailable(why)
                case s.Error(message=why, code=code):
                    known = code in tuple(RefusalCode)
                    return Refusal(RefusalCode(code) if known else RefusalCode.INTERNAL, why)
                case s.ConfirmationResolved(outcome=s.Outcome.EXPIRED):
                    why = (
                        "That confirmation is unknown, used or expired, so nothing was done. Ask for the action again."
                    )
                    return Refusal(RefusalCode.CONFIRMATION_GONE, why)
        return None

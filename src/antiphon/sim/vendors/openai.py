"""OpenAI and Azure Realtime: their rules, and the messages of faults in their format."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.types import Scope

from antiphon.sim.actions import (
    OPENAI_ACTIONS,
    Action,
    Alteration,
    CancelToolCall,
    DuplicateToolCall,
    Expire,
    Greet,
    Quota,
    Replay,
    SpeechAndToolCall,
    ToolCallWithoutId,
    TwoResponses,
)
from antiphon.sim.script import SOCKET_OCCASIONS, Vocabulary
from antiphon.sim.vendors.base import (
    CloseWith,
    HttpRefusal,
    Limits,
    Message,
    Options,
    Outgoing,
    Upgrade,
    Verdict,
    without,
)
from antiphon.sim.vendors.openai_messages import Writer

MAX_ANSWER: Final = 1_000
"""How many events of a response are kept."""
SESSION_S: Final = 3_600.0
MODELS: Final = frozenset(
    {
        "gpt-realtime-2.1",
        "gpt-realtime-2.1-mini",
        "gpt-realtime-2",
        "gpt-realtime-1.5",
        "gpt-realtime",
        "gpt-realtime-mini",
    }
)
BETA_FIELDS: Final = frozenset({"modalities", "voice", "input_audio_format", "output_audio_format", "turn_detection"})
"""What a session had at its top level before the API's general availability."""
AZURE: Final = "/openai/"
ENDPOINT: Final = "/v1/realtime"

_SECRET_HEADERS: Final = frozenset({b"authorization", b"api-key"})
_CALL: Final = "function_call"


@dataclass(slots=True)
class SentCall:
    item: Message
    is_settled: bool = False
    """Whether it was answered or cancelled."""


class OpenAIRealtime:
    vocabulary = Vocabulary("OpenAI Realtime", OPENAI_ACTIONS, SOCKET_OCCASIONS)

    def __init__(self, options: Options, now_s: Callable[[], float]) -> None:
        self.options = options
        self._open: dict[int, OpenAIConversation] = {}

    def open(self, number: int, upgrade: Upgrade) -> "OpenAIConversation":
        self._open[number] = OpenAIConversation(self, number, upgrade)
        return self._open[number]

    def forget(self, number: int) -> None:
        self._open.pop(number, None)

    def rewrite(self, scope: Scope) -> Scope:
        path = ENDPOINT if scope["path"].startswith(AZURE) else scope["path"]
        return without(scope, _SECRET_HEADERS, path)

    def refusal(self, status: int) -> str:
        kind, code, text = _STATUS_ERRORS.get(status, ("api_error", None, "The request was refused."))
        return json.dumps({"error": {"message": text, "type": kind, "param": None, "code": code}})

    def describe(self) -> list[Message]:
        return [each.describe() for each in self._open.values()]


_QUOTA_TEXT: Final = "You exceeded your current quota, please check your plan and billing details."
_STATUS_ERRORS: Final = {
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: ("invalid_request_error", "forbidden", "You do not have access to this resource."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached. Please try again later."),
    500: ("server_error", None, "The server had an error while processing your request."),
    503: ("server_error", None, "The server is currently overloaded. Please try again later."),
}


class OpenAIConversation:
    sends_binary = False
    is_resumed = False

    def __init__(self, vendor: OpenAIRealtime, number: int, upgrade: Upgrade) -> None:
        self._vendor = vendor
        self._number = number
        self._upgrade = upgrade
        self._model = upgrade.query.get("model") or upgrade.query.get("deployment") or ""
        self._write = Writer(number)
        self._calls: dict[str, SentCall] = {}
        self._aliases: dict[str, str] = {}
        self._last_ids: list[str] = []
        self._unnamed: list[str] = []
        self._cancelled: list[str] = []
        self._hides_response = False
        self._forwards: list[Message] = []
        self._delayed: list[Message] = []
        """What the client sent while a response is hidden from it: two cannot be under way."""
        self._spoken: dict[str, Message] = {}
        """The items that were added to responses, by the response."""
        self._injected: set[str] = set()
        """The items that the endpoint does not know."""
        self._answer: list[Message] = []
        """The events of the latest response that is done and has no calls."""
        self._answering: list[Message] = []
        """The events of the response under way."""
        seconds = vendor.options.connection_s
        self.limits: Limits | None = Limits(SESSION_S / vendor.options.time_scale if seconds is None else seconds)

    def describe(self) -> Message:
        return {
            "connection": self._number,
            "model": self._model,
            "open_calls": [call_id for call_id, sent in self._calls.items() if not sent.is_settled],
        }

    def refuse(self) -> HttpRefusal | Sequence[Outgoing]:
        options, headers, query = self._vendor.options, self._upgrade.headers, self._upgrade.query
        is_azure = self._upgrade.path.startswith(AZURE)
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        given = headers.get("api-key") or query.get("api-key") or bearer
        if is_azure and "/v1/" in self._upgrade.path and "api-version" in query:
            return HttpRefusal(401, self._vendor.refusal(401))
        if options.key is not None and given != options.key:
            if not given or is_azure:
                return HttpRefusal(401, self._vendor.refusal(401))
            return self._fail("invalid_request_error", "invalid_api_key", "Incorrect API key provided.", 3000)
        if "openai-beta" in headers:
            return self._refuse_beta()
        if not is_azure and self._model not in MODELS | options.extra_models:
            text = f"The model `{self._model}` does not exist or you do not have access to it."
            return self._fail("invalid_request_error", "model_not_found", text, 4004)
        return ()

    def _refuse_beta(self) -> Sequence[Outgoing]:
        text = "The Realtime Beta API is no longer supported. Please use /v1/realtime for the GA API."
        return self._fail("invalid_request_error", "beta_api_shape_disabled", text, 4000)

    def _fail(self, kind: str, code: str, text: str, close_code: int) -> Sequence[Outgoing]:
        return self._write.error(kind, code, text), CloseWith(close_code, f"{kind}.{code}")

    def client_types(self, message: Message) -> tuple[str, ...]:
        is_result = _item(message).get("type") == "function_call_output"
        return (str(message.get("type")), *(("tool_result",) if is_result else ()))

    def server_types(self, message: Message) -> tuple[str, ...]:
        kind = str(message.get("type"))
        names = [kind]
        if kind == "response.output_audio.delta":
            names.append("audio")
        if kind == "response.output_item.done" and _item(message).get("type") == _CALL:
            names.append("tool_call")
        if kind == "response.done":
            names.append("answer_end")
        return tuple(names)

    def asks_to_resume(self, message: Message) -> bool:
        return False

    def on_client(self, message: Message) -> Verdict:
        kind, session = message.get("type"), message.get("session")
        if kind == "session.update" and isinstance(session, dict):
            if "type" not in session and session.keys() & BETA_FIELDS:
                return Verdict(replies=tuple(self._refuse_beta()))
            if "type" not in session:
                text = "Missing required parameter: 'session.type'."
                error = self._write.error(
                    "invalid_request_error", "missing_required_parameter", text, message.get("event_id")
                )
                return Verdict(replies=(error,))
        if kind == "conversation.item.truncate" and message.get("item_id") in self._injected:
            fields = {name: message.get(name) for name in ("item_id", "content_index", "audio_end_ms")}
            return Verdict(replies=(self._write.event("conversation.item.truncated", **fields),))
        verdict = Verdict(forward=(message,))
        if _item(message).get("type") == "function_call_output":
            verdict = self._settle(message)
        if self._hides_response:
            self._delayed += verdict.forward
            return Verdict(replies=verdict.replies)
        return verdict

    def _settle(self, message: Message) -> Verdict:
        item = _item(message)
        given = str(item.get("call_id") or "")
        call_id = self._aliases.get(given, given)
        if call_id not in self._calls and self._unnamed:
            call_id = self._unnamed.pop(0)
        sent = self._calls.get(call_id)
        if sent is not None and sent.is_settled:
            # The endpoint has its answer; the client still gets the acknowledgement that it may wait for.
            echoed = {"id": self._write.new_id("item"), "object": "realtime.item", "status": "completed", **item}
            events = ("conversation.item.added", "conversation.item.done")
            return Verdict(
                replies=tuple(self._write.event(each, previous_item_id=None, item=echoed) for each in events)
            )
        if sent is not None:
            sent.is_settled = True
        return Verdict(forward=({**message, "item": {**item, "call_id": call_id}},))

    def on_server(self, message: Message) -> Sequence[Message]:
        if self._hides_response:
            return self._hide(message)
        self._note_answer(message)
        if message.get("type") == "response.done":
            calls = [item for item in message["response"].get("output") or () if item.get("type") == _CALL]
            if calls:
                self._last_ids = [str(call["call_id"]) for call in calls]
                for call in calls:
                    self._calls.setdefault(str(call["call_id"]), SentCall(call))
        return (message,)

    def _note_answer(self, message: Message) -> None:
        if message.get("type") == "response.created":
            self._answering = []
        if len(self._answering) < MAX_ANSWER:
            self._answering.append(message)
        if message.get("type") == "response.done" and not _concerns_call(message):
            self._answer = self._answering

    def alter(self, action: Alteration, message: Message) -> Sequence[Outgoing] | None:
        if not _concerns_call(message):
            return None
        match action:
            case ToolCallWithoutId():
                return (self._strip_ids(message),)
            case CancelToolCall():
                return (self._cancel(message),)
            case SpeechAndToolCall(text=text):
                return self._speak_before(message, text)
        return None

    def is_finished(self, action: Alteration, message: Message) -> bool:
        return message.get("type") == "response.done"

    def _strip_ids(self, message: Message) -> Message:
        if message["type"] == "response.done":
            outputs = message["response"]["output"]
            self._unnamed += [str(item["call_id"]) for item in outputs if item.get("type") == _CALL]
            bare = [_without_call_id(item) for item in outputs]
            return {**message, "response": {**message["response"], "output": bare}}
        if "item" in message:
            return {**message, "item": _without_call_id(message["item"])}
        return _without_call_id(message)

    def _cancel(self, message: Message) -> Message:
        if message["type"] == "response.done":
            response = message["response"]
            self._cancelled = [str(item["call_id"]) for item in response["output"] if item.get("type") == _CALL]
            output = [{**item, "status": "incomplete"} for item in response["output"]]
            details = {"type": "cancelled", "reason": "turn_detected"}
            return {
                **message,
                "response": {**response, "status": "cancelled", "status_details": details, "output": output},
            }
        if _item(message).get("status") == "completed":
            return {**message, "item": {**message["item"], "status": "incomplete"}}
        return message

    def take_forwards(self) -> Sequence[Message]:
        cancelled, self._cancelled = self._cancelled, []
        for call_id in cancelled:
            self._calls[call_id].is_settled = True
            item = {"type": "function_call_output", "call_id": call_id, "output": '{"error":"The call was cancelled."}'}
            self._forwards.append({"type": "conversation.item.create", "item": item})
        if cancelled:
            self._hides_response = True
            self._forwards.append({"type": "response.create"})
        forwards, self._forwards = self._forwards, []
        return forwards

    def _hide(self, message: Message) -> Sequence[Message]:
        """Keeps from the client the response in which the endpoint settles a cancelled call."""
        match message.get("type"):
            case "response.created":
                self._forwards.append({"type": "response.cancel"})
            case "response.done":
                self._hides_response = False
                self._forwards, self._delayed = [*self._forwards, *self._delayed], []
        return ()

    def _speak_before(self, message: Message, text: str) -> Sequence[Outgoing]:
        response = message.get("response") or {}
        response_id = str(message.get("response_id") or response.get("id") or "")
        before: list[Message] = []
        if response_id and response_id not in self._spoken and message["type"] != "response.done":
            before, item = self._write.speech_item(response_id, text, 0)
            self._spoken[response_id] = item
            self._injected.add(item["id"])
        if message["type"] == "response.done":
            added = [self._spoken.pop(response_id)] if response_id in self._spoken else []
            return ({**message, "response": {**response, "output": [*added, *response["output"]]}},)
        if "output_index" in message and response_id in self._spoken:
            message = {**message, "output_index": message["output_index"] + 1}
        return (*before, message)

    def inject(self, action: Action) -> Sequence[Outgoing]:
        match action:
            case Expire():
                return self.expire()
            case Quota():
                return self._fail("insufficient_quota", "insufficient_quota", _QUOTA_TEXT, 1013)
            case DuplicateToolCall(new_id=is_new):
                return self._repeat_calls(is_new)
            case Replay():
                return tuple(self._answer)
            case Greet(text=text) | TwoResponses(text=text):
                events = self._write.spoken_response(text)
                self._injected |= {str(_item(event)["id"]) for event in events if _item(event)}
                return events
        return ()

    def _repeat_calls(self, is_new: bool) -> Sequence[Outgoing]:
        calls = [self._calls[call_id].item for call_id in self._last_ids if call_id in self._calls]
        if not calls:
            return ()
        if is_new:
            renamed = [{**call, "call_id": self._write.new_id("call")} for call in calls]
            self._aliases |= {new["call_id"]: old["call_id"] for new, old in zip(renamed, calls, strict=True)}
            calls = renamed
        return self._write.call_response(calls)

    def warn(self, seconds_left: float) -> Sequence[Outgoing]:
        return ()

    def expire(self) -> Sequence[Outgoing]:
        seconds = self.limits.connection_s if self.limits else SESSION_S
        minutes = max(1, round(seconds * self._vendor.options.time_scale / 60))
        text = f"Your session hit the maximum duration of {minutes} minutes."
        return self._write.error("invalid_request_error", "session_expired", text), CloseWith(1001, text)

    def close(self) -> None:
        self._vendor.forget(self._number)


def _item(message: Message) -> Message:
    item = message.get("item")
    return item if isinstance(item, dict) else {}


def _without_call_id(value: dict[str, Any]) -> Message:
    return {name: each for name, each in value.items() if name != "call_id"}


def _concerns_call(message: Message) -> bool:
    kind = str(message.get("type"))
    if kind == "response.done":
        return any(item.get("type") == _CALL for item in message["response"].get("output") or ())
    return kind.startswith("response.function_call_arguments.") or _item(message).get("type") == _CALL

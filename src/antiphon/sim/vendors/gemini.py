"""Gemini Live: its rules, its sessions with their handles, and the messages of faults in its format."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from starlette.types import Scope

from antiphon.sim.actions import (
    GEMINI_ACTIONS,
    Action,
    Alteration,
    CancelToolCall,
    DuplicateToolCall,
    Expire,
    GoAway,
    Greet,
    HandleProblem,
    Quota,
    RejectHandle,
    Replay,
    SpeechAndToolCall,
    ToolCallWithoutId,
    TwoResponses,
)
from antiphon.sim.script import RESUMABLE_OCCASIONS, Vocabulary
from antiphon.sim.vendors.base import (
    CloseWith,
    HttpRefusal,
    Limits,
    Message,
    Options,
    Outgoing,
    Upgrade,
    Verdict,
    tone,
    without,
)
from antiphon.sim.vendors.gemini_fields import refuse_unknown, to_camel
from antiphon.sim.vendors.gemini_models import INVALID_ARGUMENT, GeminiModel, find_model
from antiphon.sim.vendors.gemini_sessions import DEAD_HANDLE, FOREIGN_HANDLE, SentCall, Session, Sessions

CONNECTION_S: Final = 600.0
WARNING_S: Final = 50.0
HANDLE_S: Final = 7_200.0
"""How long a handle works after the end of its session."""
GREETING_S: Final = 0.3

WRONG_KEY: Final = CloseWith(1007, "API key not valid. Please pass a valid API key.")
NO_KEY: Final = CloseWith(
    1008, "Method doesn't allow unregistered callers (callers without established identity). Please use API Key."
)
OVERSTAYED: Final = CloseWith(
    1008,
    "Connection aborted because the client failed to close the connection after receiving a GoAway signal once the "
    "session duration expired",
)
QUOTA: Final = CloseWith(1011, "You exceeded your current quota, please check your plan and billing details.")

_SECRET_HEADERS: Final = frozenset({b"x-goog-api-key", b"authorization"})


class GeminiLive:
    """The provider: its handles live as long as the simulator."""

    vocabulary = Vocabulary("Gemini Live", GEMINI_ACTIONS, RESUMABLE_OCCASIONS)

    def __init__(self, options: Options, now_s: Callable[[], float]) -> None:
        self.options = options
        self.sessions = Sessions(now_s, HANDLE_S / options.time_scale)

    def open(self, number: int, upgrade: Upgrade) -> "GeminiConversation":
        return GeminiConversation(self, number, upgrade)

    def rewrite(self, scope: Scope) -> Scope:
        return without(scope, _SECRET_HEADERS, "/" + scope["path"].lstrip("/"))

    def refusal(self, status: int) -> str:
        return f'{{"error":{{"code":{status},"message":"{_STATUS_TEXTS.get(status, "Refused.")}"}}}}'

    def describe(self) -> list[Message]:
        return self.sessions.describe()


_STATUS_TEXTS: Final = {
    400: "Request contains an invalid argument.",
    401: "Request had invalid authentication credentials.",
    403: "The caller does not have permission.",
    404: "Requested entity was not found.",
    429: "You exceeded your current quota, please check your plan and billing details.",
    500: "Internal error encountered.",
    503: "The service is currently unavailable.",
}


class GeminiConversation:
    sends_binary = True

    def __init__(self, vendor: GeminiLive, number: int, upgrade: Upgrade) -> None:
        self._vendor = vendor
        self._number = number
        self._upgrade = upgrade
        self._model: GeminiModel | None = None
        self._session: Session | None = None
        self._history_is_open = False
        self._cancelled: list[str] = []
        self._unnamed: dict[str, str] = {}
        """The ids of calls that were sent without one, by the tool's name."""
        self._swallows_answer = False
        self._is_resumable = False
        """Whether the newest that the client was told is a handle."""
        self.is_resumed = False
        scale, given_s = vendor.options.time_scale, vendor.options.connection_s
        self.limits: Limits | None = Limits(CONNECTION_S / scale, WARNING_S / scale)
        if given_s is not None:
            self.limits = Limits(given_s, min(WARNING_S, given_s / 2))

    def refuse(self) -> HttpRefusal | Sequence[Outgoing]:
        return ()

    def _refuse_key(self) -> CloseWith | None:
        """Refuses a wrong key. The upgrade itself succeeds: the provider closes when the setup has come."""
        key, query, headers = self._vendor.options.key, self._upgrade.query, self._upgrade.headers
        token = headers.get("authorization", "").removeprefix("Token ").removeprefix("Bearer ")
        given = headers.get("x-goog-api-key") or query.get("key") or query.get("access_token") or token
        if key is None or given == key:
            return None
        return WRONG_KEY if given else NO_KEY

    def client_types(self, message: Message) -> tuple[str, ...]:
        names: list[str] = []
        for name, value in to_camel(message).items():
            names.append(name)
            if name == "realtimeInput" and isinstance(value, dict):
                names += value
        if "toolResponse" in names:
            names.append("tool_result")
        return tuple(names)

    def server_types(self, message: Message) -> tuple[str, ...]:
        content = message.get("serverContent")
        names = [*message, *(content if isinstance(content, dict) else ())]
        if _audio_parts(message):
            names.append("audio")
        if "toolCall" in names:
            names.append("tool_call")
        if "turnComplete" in names:
            names.append("answer_end")
        return tuple(names)

    def asks_to_resume(self, message: Message) -> bool:
        return _handle(to_camel(message)) is not None

    def on_client(self, message: Message) -> Verdict:
        said = to_camel(message)
        if self._model is None and (refused := self._refuse_key()) is not None:
            return Verdict(replies=(refused,))
        if (unknown := refuse_unknown(said)) is not None:
            return Verdict(replies=(unknown,))
        if (self._model is None) is not ("setup" in said) or len(said) != 1:
            return Verdict(replies=(INVALID_ARGUMENT,))
        refused = self._check(said)
        if refused is not None:
            return Verdict(replies=(refused,))
        if "toolResponse" in said:
            kept = self._settle(said["toolResponse"].get("functionResponses") or [])
            return Verdict(forward=({"toolResponse": {"functionResponses": kept}},) if kept else ())
        return Verdict(forward=(message,))

    def _check(self, said: Message) -> CloseWith | None:
        if "setup" in said:
            return self._set_up(said["setup"], _handle(said))
        model = self._model
        assert model is not None
        if "clientContent" in said:
            if not (model.content_at_any_time or self._history_is_open):
                return INVALID_ARGUMENT
            if said["clientContent"].get("turnComplete"):
                self._history_is_open = False
        for response in (said.get("toolResponse") or {}).get("functionResponses") or ():
            if not response.get("id") and response.get("name") not in self._unnamed:
                return INVALID_ARGUMENT
            if (refused := model.refuse_response(response)) is not None:
                return refused
        return None

    def _set_up(self, setup: Message, handle: str | None) -> CloseWith | None:
        name = str(setup.get("model", ""))
        model = find_model(name, self._vendor.options.extra_models)
        if model is None:
            return CloseWith(
                1008,
                f"{name} is not found for API version v1beta, or is not supported for bidiGenerateContent.",
            )
        if (refused := model.refuse_setup(setup)) is not None:
            return refused
        found = (
            self._vendor.sessions.begin(model.family, self._number)
            if handle is None
            else self._vendor.sessions.find(handle, model)
        )
        if isinstance(found, CloseWith):
            return found
        self._model, self._session = model, found
        found.connection, found.ended_s = self._number, None
        self.is_resumed = handle is not None
        self._history_is_open = bool((setup.get("historyConfig") or {}).get("initialHistoryInClientContent"))
        return None

    def _settle(self, responses: Sequence[Message]) -> list[Message]:
        """Returns the responses that the endpoint waits for, with the ids that it knows."""
        session = self._session
        assert session is not None
        kept: list[Message] = []
        for response in responses:
            given = str(response.get("id") or "")
            call_id = session.aliases.get(given, given)
            if call_id not in session.calls:
                call_id = self._unnamed.pop(str(response.get("name")), call_id)
            sent = session.calls.get(call_id)
            if sent is not None and sent.is_settled:
                continue
            if sent is not None and not response.get("willContinue"):
                sent.is_settled = True
            kept.append({**response, "id": call_id})
        return kept

    def on_server(self, message: Message) -> Sequence[Message]:
        session = self._session
        update = message.get("sessionResumptionUpdate") or {}
        if session is not None:
            if update.get("newHandle"):
                self._vendor.sessions.issue(update["newHandle"], session)
            calls = (message.get("toolCall") or {}).get("functionCalls") or []
            if calls:
                session.last_ids = [str(call.get("id")) for call in calls]
                for call in calls:
                    session.calls[str(call.get("id"))] = SentCall(call)
            for call_id in (message.get("toolCallCancellation") or {}).get("ids") or ():
                if call_id in session.calls:
                    session.calls[call_id].is_settled = True
            if "serverContent" in message and not self._swallows_answer:
                session.note_content(message)
        if not self._swallows_answer:
            return self._with_resumability(message)
        # The model's answer to the result that the cancelled call was given: the client must not hear it.
        content = message.get("serverContent")
        if content is None:
            return (message,)
        if not content.get("turnComplete"):
            return ()
        self._swallows_answer = False
        return ({"serverContent": {"interrupted": True}}, message)

    def _with_resumability(self, message: Message) -> Sequence[Message]:
        """Announces, as the provider does, that the session cannot be resumed while an answer is under way."""
        update = message.get("sessionResumptionUpdate")
        if update is not None:
            self._is_resumable = bool(update.get("newHandle"))
        elif self._is_resumable and _is_answer(message):
            self._is_resumable = False
            return ({"sessionResumptionUpdate": {}}, message)
        return (message,)

    def alter(self, action: Alteration, message: Message) -> Sequence[Outgoing] | None:
        calls = (message.get("toolCall") or {}).get("functionCalls")
        if not calls:
            return None
        match action:
            case ToolCallWithoutId():
                self._unnamed |= {str(call["name"]): str(call.get("id")) for call in calls}
                bare = [{name: value for name, value in call.items() if name != "id"} for call in calls]
                return ({**message, "toolCall": {"functionCalls": bare}},)
            case SpeechAndToolCall(text=text):
                return ({**_speech(text), **message},)
            case CancelToolCall() if all(call.get("id") for call in calls):
                self._cancelled = [str(call["id"]) for call in calls]
                return (message, {"toolCallCancellation": {"ids": self._cancelled}})
        return None

    def is_finished(self, action: Alteration, message: Message) -> bool:
        return True

    def take_forwards(self) -> Sequence[Message]:
        cancelled, self._cancelled = self._cancelled, []
        session = self._session
        if not cancelled or session is None:
            return ()
        self._swallows_answer = True
        responses = []
        for call_id in cancelled:
            session.calls[call_id].is_settled = True
            name = session.calls[call_id].call["name"]
            responses.append({"id": call_id, "name": name, "response": {"error": "The call was cancelled."}})
        return ({"toolResponse": {"functionResponses": responses}},)

    def inject(self, action: Action) -> Sequence[Outgoing]:
        match action:
            case GoAway(seconds_left=seconds_left):
                return self.warn(seconds_left)
            case Expire():
                return self.expire()
            case Quota():
                return (QUOTA,)
            case RejectHandle(problem=problem):
                return (DEAD_HANDLE if problem is HandleProblem.EXPIRED else FOREIGN_HANDLE,)
            case DuplicateToolCall(new_id=is_new):
                return self._repeat_calls(is_new)
            case Replay():
                return tuple(self._session.answer) if self._session is not None else ()
            case Greet(text=text):
                return _whole_answer(text)
            case TwoResponses(text=text):
                # Nothing names the answer that a part belongs to: the second one only shows by its own end.
                return _whole_answer(text)
        return ()

    def _repeat_calls(self, is_new: bool) -> Sequence[Outgoing]:
        session = self._session
        calls = [session.calls[call_id].call for call_id in session.last_ids] if session is not None else []
        if not calls or session is None:
            return ()
        if is_new:
            renamed = [{**call, "id": f"{call['id']}-again{len(session.aliases)}"} for call in calls]
            session.aliases |= {new["id"]: old["id"] for new, old in zip(renamed, calls, strict=True)}
            calls = renamed
        return ({"toolCall": {"functionCalls": calls}},)

    def warn(self, seconds_left: float) -> Sequence[Outgoing]:
        return ({"goAway": {"timeLeft": f"{seconds_left:.9g}s"}},)

    def expire(self) -> Sequence[Outgoing]:
        return (OVERSTAYED,)

    def close(self) -> None:
        session = self._session
        if session is not None and session.connection == self._number:
            self._vendor.sessions.end(session)


def _handle(said: Message) -> str | None:
    setup = said.get("setup")
    resumption = setup.get("sessionResumption") if isinstance(setup, dict) else None
    return (resumption.get("handle") or None) if isinstance(resumption, dict) else None


def _is_answer(message: Message) -> bool:
    return "toolCall" in message or "modelTurn" in (message.get("serverContent") or {})


def _audio_parts(message: Message) -> list[Any]:
    turn = (message.get("serverContent") or {}).get("modelTurn") or {}
    return [part for part in turn.get("parts") or () if "inlineData" in part]


def _speech(text: str) -> Message:
    audio = {"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": tone(GREETING_S)}}
    return {"serverContent": {"modelTurn": {"parts": [audio]}, "outputTranscription": {"text": text}}}


def _whole_answer(text: str) -> tuple[Message, ...]:
    return (
        _speech(text),
        {"serverContent": {"generationComplete": True}},
        {"serverContent": {"turnComplete": True}},
    )

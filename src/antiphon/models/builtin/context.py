"""What a conversation is about, as far as its messages tell: the last requests, their results, and what they named."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from antiphon.models.builtin import lookup
from antiphon.models.builtin.replies import is_question
from antiphon.tools.result import Outcome
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from antiphon.words.readers import Reader

EXCHANGES_READ: Final = 8
"""How far back a place, a list or a number is looked for."""
REQUEST_STAYS: Final = 3
"""After how many exchanges "and in London?" no longer refers to a request: thanks and a joke may come in between."""

TIMES: Final = (Reader.WHEN, Reader.DATE, Reader.TIME, Reader.PERIOD)

_LOOK_UPS: Final = frozenset({"quick_answer", "web_search", "linkedin_lookup", "kb_search"})
_ABOUT: Final = re.compile(
    r"(?:(?:please )?(?:tell me |do you know )?(?:who|what|where)(?:['’]s| is| was| are| were) (?:an? |the )?|"
    r"(?:tell me |what do you know )?about (?:an? |the )?|"
    r"(?:what|when|how|where)\b.* (?:about|was|is|did) )?(?P<subject>[A-Z]\w+(?: (?:[A-Z]\w+|of|the|de|van|von|"
    r"da))*(?: [A-Z]\w+)?)"
    r"(?: (?:born|die|live|from))?",
)
"""A question about something that has a name."""
_WHO: Final = re.compile(
    r"(?:who|what)(?:['’]s| is| was) (?:an? |the )?(?P<subject>[a-z]\w+(?: \w+){0,3})", re.IGNORECASE
)

KindOf = Callable[[str, str], Reader | None]
"""Tells of which kind a parameter of a tool is."""


@dataclass(frozen=True, slots=True)
class DoneCall:
    """A call of a tool, and what came of it."""

    tool_id: str
    args: Mapping[str, Any]
    result: ToolMessage | None
    extra: Any = None
    """`CallMade.extra`."""

    @property
    def succeeded(self) -> bool:
        return self.result is not None and self.result.ok

    @property
    def failed(self) -> bool:
        return self.result is not None and not self.result.ok

    @property
    def may_have_acted(self) -> bool:
        """Whether it has done something, as far as is known."""
        match self.result:
            case ToolMessage(ok=False, content={"error": {"outcome": outcome}}):
                return bool(outcome == Outcome.UNKNOWN)
        return self.succeeded

    @property
    def waits(self) -> bool:
        """Whether it waits for the user's approval."""
        return self.result is not None and is_question(self.result)

    @property
    def data(self) -> Mapping[str, Any]:
        """The data of a successful result; empty if there is none."""
        content = self.result.content if self.result is not None and self.result.ok else None
        return content if isinstance(content, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the user said, what was done, and what the assistant answered."""

    text: str
    calls: tuple[DoneCall, ...]
    answer: str


class Context:
    """The conversation before the user's last message."""

    def __init__(self, exchanges: Sequence[Exchange], kind_of: KindOf) -> None:
        self.exchanges: Final = exchanges
        self._kind_of = kind_of

    @property
    def last(self) -> Exchange | None:
        return self.exchanges[-1] if self.exchanges else None

    @property
    def request(self) -> Exchange | None:
        """The last request that tools were called for, if it was made a short while ago."""
        return next((each for each in reversed(self.exchanges[-REQUEST_STAYS:]) if each.calls), None)

    @property
    def calls(self) -> Iterator[DoneCall]:
        """The calls so far, the last one first."""
        for exchange in reversed(self.exchanges):
            yield from reversed(exchange.calls)

    @property
    def place(self) -> str | None:
        return self._last_named(Reader.PLACE)

    @property
    def when(self) -> str | None:
        return self._last_named(*TIMES)

    @property
    def list_name(self) -> str | None:
        done = (call.data.get("list") or call.args.get("list") for call in self.calls if not call.failed)
        return next((name for name in done if isinstance(name, str) and name), None)

    @property
    def number(self) -> str | None:
        """The number that the last request gave, in digits."""
        amount = self.amount
        return None if amount is None else amount[0]

    @property
    def amount(self) -> tuple[str, str] | None:
        """The number that the last request gave, and its unit, which may be empty."""
        request = self.request
        for call in reversed(request.calls if request is not None else ()):
            for key, unit in (("result", str(call.data.get("to_unit", ""))), ("total", ""), ("days", "days")):
                number = _digits(call.data.get(key))
                if number is not None:
                    return number, unit
        return None

    @property
    def reminder(self) -> DoneCall | None:
        """The call that set the last reminder, timer or alarm."""
        return next((call for call in self.calls if call.data.get("kind") and call.data.get("id")), None)

    @property
    def listed_reminder(self) -> str | None:
        """The id of the only reminder, timer or alarm that the last request listed."""
        for call in self.request.calls if self.request is not None else ():
            match call.data:
                case {"reminders": [{"id": str(id)}]}:
                    return id
        return None

    @property
    def reminder_kind(self) -> str | None:
        """Whether the last request about one was about a timer, an alarm or a reminder."""
        for call in self.calls:
            named = f"{call.data.get('kind', '')} {call.args.get('reminder', '')} {call.tool_id.removeprefix('set_')}"
            for kind in ("timer", "alarm", "reminder"):
                if call.tool_id in (f"set_{kind}", "cancel_reminder") and kind in named.split():
                    return kind
        return None

    @property
    def event(self) -> str | None:
        """The id of the last event: one that was made, or the only one that was listed."""
        for call in self.calls:
            match call.data:
                case {"events": [{"id": str(event)}]}:
                    return event
                case {"event": {"id": str(event)}} | {"event_id": str(event)}:
                    return event
                case {"id": str(event), "title": str()}:
                    return event
                case {"events": _}:
                    return None
        return None

    @property
    def task(self) -> str | None:
        """What the last request was to remind of, or put on a list or into the calendar."""
        for call in self.request.calls if self.request is not None else ():
            match call.tool_id, call.args, call.data:
                case _, _, {"events": [{"title": str(title)}]} | {"event": {"title": str(title)}}:
                    return title
                case "set_reminder", {"message": str(message)}, _ if message:
                    return message.removeprefix("to ")
                case "list_add" | "list_remove", {"item": str(item)}, _ if item:
                    return item
                case "calendar_create_event", {"title": str(title)}, _ if title:
                    return title
        return None

    @property
    def subject(self) -> str | None:
        """Whom or what the last request asked about: "Marie Curie" of "who was Marie Curie"."""
        for call in self.request.calls if self.request is not None else ():
            asked = call.args.get("query") if call.tool_id in _LOOK_UPS else None
            if isinstance(asked, str):
                said = asked.strip(" ?.!")
                match = _ABOUT.fullmatch(said) or _WHO.fullmatch(said)
                return None if match is None else match["subject"]
        return None

    @property
    def device(self) -> tuple[str | None, str | None]:
        """The device and the room of the last request about the home."""
        for call in self.calls:
            if self._kind_of(call.tool_id, "entity") is Reader.DEVICE:
                return call.args.get("entity"), call.args.get("area")
        return None, None

    def _last_named(self, *kinds: Reader) -> str | None:
        for call in self.calls:
            for name, value in call.args.items():
                if isinstance(value, str) and value and self._kind_of(call.tool_id, name) in kinds:
                    return value
        return None


def _digits(value: object) -> str | None:
    match value:
        case bool():
            return None
        case int():
            return str(value)
        case float():
            return f"{value:.12g}"
        case str() if value.lstrip("-").replace(".", "", 1).isdigit():
            return value
    return None


def read_exchanges(messages: Sequence[Message]) -> list[Exchange]:
    """Returns the last exchanges of a conversation."""
    return list(_exchanges(messages))[-EXCHANGES_READ:]


def _exchanges(messages: Sequence[Message]) -> Iterator[Exchange]:
    text: str | None = None
    made: dict[str, CallMade] = {}
    results: dict[str, ToolMessage] = {}
    answer: list[str] = []
    for message in [*messages, UserMessage("")]:
        match message:
            case UserMessage(text=said):
                if text is not None:
                    yield Exchange(text, tuple(_done(made, results)), " ".join(answer))
                text, made, results, answer = said, {}, {}, []
            case AssistantMessage(text=words, calls=calls):
                made |= {call.id: call for call in calls}
                answer += [words.strip()] if words.strip() else []
            case ToolMessage(call_id=call_id):
                results[call_id] = message


def read_batches(since: Sequence[Message]) -> list[list[DoneCall]]:
    """Returns the calls of each message of an answer that has no words yet; nothing if it has."""
    batches: list[tuple[dict[str, CallMade], dict[str, ToolMessage]]] = []
    for message in since:
        match message:
            case AssistantMessage(calls=(_, *_) as calls):
                batches.append(({call.id: call for call in calls}, {}))
            case ToolMessage(call_id=call_id) if batches:
                # Ids repeat from message to message.
                batches[-1][1][call_id] = message
            case _:
                return []
    return [done for made, results in batches if (done := list(_done(made, results)))]


def _done(made: Mapping[str, CallMade], results: Mapping[str, ToolMessage]) -> Iterator[DoneCall]:
    """A look-up for what no tool was for is not a request for that tool."""
    for call_id, call in made.items():
        if call.name != lookup.TOOL and isinstance(call.args, Mapping):
            yield DoneCall(call.name, call.args, results.get(call_id), call.extra)

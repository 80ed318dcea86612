"""What may run: budgets, clamps and confirmation rules. `gate.py` has the order of the checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from antiphon.tools.errors import ErrorType
from antiphon.tools.result import Failure
from antiphon.tools.spec import Category, Mode
from antiphon.tools.tool import Tool


class TurnBudget(Struct, frozen=True):
    """What the tools of one user turn may cost."""

    retrieval_calls: int
    calls: int
    tool_ms: float | None
    """Once this is spent, further retrieval is refused, because speech cannot wait."""


VOICE_BUDGET: Final = TurnBudget(retrieval_calls=2, calls=3, tool_ms=1_500)
TEXT_BUDGET: Final = TurnBudget(retrieval_calls=5, calls=12, tool_ms=None)

NEVER_REFUSED: Final = frozenset({"ignore_user", "end_voice_session", "describe_tool"})
"""Tools that end a conversation or explain a tool. They are never refused for budget."""

SAME_CALL_LIMIT: Final = 3
EMPTY_RESULT_LIMIT: Final = 3
MAX_DEPTH: Final = 3
"""How deep tools may call tools."""

VOICE_TOP_K: Final = 3
FULL_TEXT: Final = "full_text"
_LISTS: Final = (list, tuple)

BUDGET_GRACE_TEXT: Final = 2
"""In text mode a tool may take this many times its latency budget before it is cancelled."""


@dataclass(slots=True)
class Ledger:
    """What the tools of the current user turn have used up."""

    calls: int = 0
    retrieval_calls: int = 0
    refused: int = 0
    tool_ms: float = 0.0
    same: dict[str, int] = field(default_factory=dict)
    empty: dict[str, int] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    available: dict[str, bool] = field(default_factory=dict)
    untrusted: bool = False
    """Whether untrusted content has come into this turn."""

    def spend(self, tool: Tool, budget: TurnBudget) -> Failure | None:
        """Counts a call, unless the budget refuses it."""
        if tool.id in NEVER_REFUSED:
            return None
        retrieval = tool.spec.category is Category.RETRIEVAL
        refusal: Failure | None = None
        if self.calls >= budget.calls:
            refusal = _over_budget(
                f"This turn's {budget.calls} tool calls are used up.",
                "Answer with what you have, or ask the user how to go on.",
            )
        elif retrieval and self.retrieval_calls >= budget.retrieval_calls:
            refusal = _over_budget(
                f"This turn's {budget.retrieval_calls} look-ups are used up.",
                "Answer with what you have found. In the next turn, fetch known ids instead of searching again.",
            )
        elif retrieval and budget.tool_ms is not None and self.tool_ms > budget.tool_ms:
            refusal = _over_budget(
                f"This turn's {budget.tool_ms:.0f} ms for tools are used up.",
                "Answer with what you have; speech cannot wait longer.",
            )
        if refusal is not None:
            self.refused += 1
            return refusal
        self.calls += 1
        self.retrieval_calls += retrieval
        return None

    def renew(self) -> None:
        """Gives the turn its calls again: the user has said more, and what was done for the first words may have to be
        undone."""
        self.calls = self.retrieval_calls = 0
        self.tool_ms = 0.0

    def repeat(self, fingerprint: str) -> Failure | None:
        """Counts a call with the same arguments; the third in a turn is refused."""
        self.same[fingerprint] = times = self.same.get(fingerprint, 0) + 1
        if times < SAME_CALL_LIMIT:
            return None
        self.refused += 1
        return _over_budget(
            "This call was already made twice in this turn.",
            "Its result will not change: use the one you have, change the arguments, or ask the user.",
        )

    def note_empty(self, tool: Tool) -> Failure | None:
        """Counts an empty result; the third of a tool in a turn is replaced by advice."""
        self.empty[tool.id] = times = self.empty.get(tool.id, 0) + 1
        if times < EMPTY_RESULT_LIMIT:
            return None
        return _over_budget(
            f"{tool.id} has found nothing for the third time in this turn.",
            "Say that nothing was found, or ask the user for other words.",
        )


def _over_budget(message: str, suggestion: str) -> Failure:
    return Failure(ErrorType.RATE_LIMIT, message, suggestion=suggestion)


def clamp_for_voice(args: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the arguments limited to what speech can use, and the values that were asked for."""
    clamped: dict[str, Any] = {}
    top_k, fields = args.get("top_k"), args.get("return_fields")
    if isinstance(top_k, int) and top_k > VOICE_TOP_K:
        clamped["top_k"] = VOICE_TOP_K
    if isinstance(fields, list) and FULL_TEXT in fields:
        clamped["return_fields"] = [name for name in fields if name != FULL_TEXT]
    if args.get(FULL_TEXT) is True:
        clamped[FULL_TEXT] = False
    return ({**args, **clamped}, {name: args[name] for name in clamped}) if clamped else (args, clamped)


def is_empty(data: Any) -> bool:
    """Whether a look-up found nothing: no data, or only empty lists."""
    if not isinstance(data, dict):
        return not data
    lists = False
    for value in data.values():
        if isinstance(value, _LISTS):
            if value:
                return False
            lists = True
    return lists or not data


def must_confirm(tool: Tool, args: Mapping[str, Any], untrusted: bool, heard: Sequence[str] = ()) -> bool:
    """Whether a person must approve this call. `heard` are the user's latest messages, if there are any.

    If untrusted content is in the turn, every action that writes needs approval, since its arguments may come from it.
    """
    spec = tool.spec
    if spec.requires_confirmation:
        return True
    if tool.is_asked_for is not None and heard and not tool.is_asked_for(args, heard):
        return True
    if tool.needs_confirmation is not None:
        return tool.needs_confirmation(args, untrusted)
    return untrusted and spec.writes and spec.category is Category.ACTION and tool.id not in NEVER_REFUSED


def deadline_ms(tool: Tool, mode: Mode) -> int:
    """How long the handler may take before it is stopped."""
    spec = tool.spec
    return spec.timeout_ms if tool.runs_to_the_end else latency_limit_ms(tool, mode)


def latency_limit_ms(tool: Tool, mode: Mode) -> int:
    """How long a person waits for what can be stopped at any time."""
    return tool.spec.latency_budget_ms * (1 if mode is Mode.VOICE else BUDGET_GRACE_TEXT)

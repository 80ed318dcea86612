"""Sorts objects by one of their properties."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, Final, NamedTuple

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok

MAX_PROPERTIES_TOLD: Final = 20
_NUMERAL: Final = re.compile(r"[+-]?\d{1,300}(?:\.\d{1,300})?", re.ASCII)


class Kind(IntEnum):
    """The kind of a value, in the order in which mixed kinds are ranked."""

    NUMBER = 0
    DATE = 1
    TEXT = 2
    MISSING = 3


class Value(NamedTuple):
    kind: Kind
    value: Any
    """Comparable with the other values of its kind."""


SPOKEN_ORDERS: Final = {
    (Kind.NUMBER, "desc"): "highest first",
    (Kind.NUMBER, "asc"): "lowest first",
    (Kind.DATE, "desc"): "newest first",
    (Kind.DATE, "asc"): "oldest first",
    (Kind.TEXT, "desc"): "from Z to A",
    (Kind.TEXT, "asc"): "from A to Z",
}


async def execute(args: Args, context: Context) -> ToolResult:
    items: Sequence[Mapping[str, Any]] = args["items"]
    by: str = args["by"]
    order: str = args["order"]
    values = [read_value(find(item, by)) for item in items]
    kinds = {value.kind for value in values} - {Kind.MISSING}
    if not kinds:
        known = ", ".join(properties(items))
        return fail(
            ErrorType.VALIDATION,
            f'None of the items has a value for "{by}".',
            suggestion=f"They have: {known}." if known else None,
        )
    ranked: list[Mapping[str, Any]] = []
    for kind in Kind:
        group = [(value.value, item) for value, item in zip(values, items, strict=True) if value.kind is kind]
        # `reverse` keeps equal values in the order in which they came.
        group.sort(key=lambda pair: pair[0], reverse=order == "desc")
        ranked += [item for _, item in group]
    missing = sum(value.kind is Kind.MISSING for value in values)
    spoken = _speak(len(items), by, SPOKEN_ORDERS[min(kinds), order], ranked[0])
    return ok({"results": ranked, "by": by, "order": order, "missing": missing}, spoken=spoken)


def find(item: Mapping[str, Any], path: str) -> Any:
    """Returns the value at the path; None if there is none. A name that contains a dot is tried as a whole first."""
    if path in item:
        return item[path]
    name, _, rest = path.partition(".")
    inner = item.get(name)
    return find(inner, rest) if rest and isinstance(inner, Mapping) else None


def read_value(raw: Any) -> Value:
    match raw:
        case int() | float():
            return Value(Kind.NUMBER, raw)
        case str() if raw.strip():
            return _read_text(raw.strip())
        case _:
            return Value(Kind.MISSING, 0)


def _read_text(text: str) -> Value:
    if _NUMERAL.fullmatch(text):
        return Value(Kind.NUMBER, float(text) if "." in text else int(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        # Texts that differ only in case are ordered by the text itself, so that the order is always the same.
        return Value(Kind.TEXT, (text.casefold(), text))
    return Value(Kind.DATE, moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def properties(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lists the properties to rank by, nested ones with their paths."""
    found: dict[str, None] = {}
    for item in items:
        for name, value in item.items():
            if isinstance(value, Mapping):
                found.update(dict.fromkeys(f"{name}.{inner}" for inner in value))
            else:
                found[name] = None
    return list(found)[:MAX_PROPERTIES_TOLD]


def _speak(count: int, by: str, order: str, first: Mapping[str, Any]) -> str:
    words = by.rpartition(".")[2].replace("_", " ")
    title = next((first[key] for key in ("title", "name") if isinstance(first.get(key), str) and first[key]), None)
    ranked = f"I sorted {count} {'item' if count == 1 else 'items'} by {words}, {order}."
    return f"{ranked} The first is {title}." if title else ranked

"""Compares two registries: what changed, and what breaks callers of tools or readers of their results."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import jsonschema_rs
import msgspec
from jsonschema_rs import canonical
from msgspec import Struct

from antiphon.tools.arguments import compile_schema
from antiphon.tools.errors import RegistryError
from antiphon.tools.spec import Category, RateLimit, ToolSpec

MAX_SHOWN_CHARS: Final = 160

Schema = dict[str, Any]


class Kind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Change(Struct, frozen=True):
    field: str
    """The name of the changed field in schema.json, or `tool` or `files` for other changes."""
    breaking: bool
    sentence: str


class ToolComparison(Struct, frozen=True):
    tool_id: str
    kind: Kind
    changes: tuple[Change, ...]

    @property
    def breaking(self) -> bool:
        return any(change.breaking for change in self.changes)


class Comparison(Struct, frozen=True):
    old_version: str
    new_version: str
    tools: tuple[ToolComparison, ...]
    """The tools that differ, by id."""

    @property
    def breaking(self) -> bool:
        return any(tool.breaking for tool in self.tools)


class _Entry(Struct):
    spec: ToolSpec
    digest: str


class _Registry(Struct):
    version: str
    tools: list[_Entry]


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Comparison:
    """Compares two decoded tool_registry.json. Raises `RegistryError` if either is not one."""
    before, after = _decode(old, "old"), _decode(new, "new")
    was = {entry.spec.tool_id: entry for entry in before.tools}
    now = {entry.spec.tool_id: entry for entry in after.tools}
    compared = (_compare_entries(tool_id, was.get(tool_id), now.get(tool_id)) for tool_id in sorted({*was, *now}))
    return Comparison(before.version, after.version, tuple(tool for tool in compared if tool.changes))


def _decode(registry: Mapping[str, Any], which: str) -> _Registry:
    try:
        decoded = msgspec.convert(registry, _Registry)
        for entry in decoded.tools:
            for schema in (entry.spec.parameters, entry.spec.outputs or {}):
                compile_schema(schema)
    except ValueError as error:
        problem = str(error).splitlines()[0]
        raise RegistryError(
            f"The {which} registry cannot be compared: {problem}. Build it with this version of Antiphon."
        ) from None
    return decoded


def _compare_entries(tool_id: str, old: _Entry | None, new: _Entry | None) -> ToolComparison:
    if old is None:
        return ToolComparison(tool_id, Kind.ADDED, (Change("tool", False, "The tool is new."),))
    if new is None:
        return ToolComparison(tool_id, Kind.REMOVED, (Change("tool", True, "The tool is gone."),))
    parts = (_compare_parameters, _compare_defaults, _compare_outputs, _compare_fields)
    changes = tuple(change for compare_part in parts for change in compare_part(old.spec, new.spec))
    if not changes and old.digest != new.digest:
        changes = (Change("files", False, "The contract is the same; other files or words of the tool changed."),)
    return ToolComparison(tool_id, Kind.CHANGED, changes)


def _compare_parameters(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    """Finds changes that break callers: a call that was accepted is now refused."""
    was, now = _without_filled(old.parameters), _without_filled(new.parameters)
    yield from _compare_schemas("parameters", was, now, _has_more)


def _compare_outputs(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    """Finds changes that break readers of results: a result is now possible that was not possible before."""
    if old.outputs is None or new.outputs is None:
        if old.outputs != new.outputs:
            promised = "now" if old.outputs is None else "no longer"
            yield Change("outputs", new.outputs is None, f"The shape of the results is {promised} promised.")
        return
    yield from _compare_schemas("outputs", old.outputs, new.outputs, lambda was, now: _has_more(now, was))


def _compare_schemas(
    field: str, old: Schema, new: Schema, breaks: Callable[[Schema, Schema], bool | None]
) -> Iterator[Change]:
    """Yields one change for each property that differs, or one for the whole schema if no property does."""
    if old == new:
        return
    told = False
    for path, was, now in _changed_properties(old, new):
        breaking = breaks(was, now)
        if breaking is not False or _has_more(was, now) is not False or _has_more(now, was) is not False:
            told = told or breaking is not False
            doubtful = breaking is None and was["properties"] and now["properties"]
            doubt = " It is not known whether this breaks anything." if doubtful else ""
            yield Change(field, breaking is not False, f"{_describe(path, was, now)}{doubt}")
    if not told and (breaking := breaks(old, new)) is not False:
        doubt = "may" if breaking is None else "do"
        yield Change(field, True, f"As a whole they {doubt} not fit those who relied on the old ones.")


def _changed_properties(old: Schema, new: Schema, prefix: str = "") -> Iterator[tuple[str, Schema, Schema]]:
    """Yields the path of each property that differs, and two object schemas with only that property."""
    was, now = old.get("properties", {}), new.get("properties", {})
    for name in dict.fromkeys([*was, *now]):
        before, after = was.get(name), now.get(name)
        if before is not None and after is not None and _differ_inside(before, after):
            before = before | {"$defs": old.get("$defs", {})}
            after = after | {"$defs": new.get("$defs", {})}
            yield from _changed_properties(before, after, f"{prefix}{name}.")
        elif before != after or (name in old.get("required", ())) != (name in new.get("required", ())):
            yield prefix + name, _only(old, name), _only(new, name)


def _differ_inside(old: Any, new: Any) -> bool:
    """Whether two objects differ in their properties alone, so that the properties can be compared one by one."""

    def frame(schema: Schema) -> Schema:
        return {name: value for name, value in schema.items() if name not in ("properties", "required", "description")}

    nested = all(
        isinstance(each, dict) and "properties" in each and each.get("type") == "object" for each in (old, new)
    )
    return nested and frame(old) == frame(new)


def _only(schema: Schema, name: str) -> Schema:
    """Returns the object schema without its other properties."""
    properties = {name: schema["properties"][name]} if name in schema.get("properties", {}) else {}
    required = [name] if name in schema.get("required", ()) else []
    kept: Schema = {keyword: schema[keyword] for keyword in ("$defs", "additionalProperties") if keyword in schema}
    return {"type": "object", "properties": properties, "required": required, **kept}


def _has_more(one: Schema, other: Schema) -> bool | None:
    """Whether the first schema accepts something that the other refuses; None if that is undecidable."""
    try:
        rest = _canonicalize(one).subtract(_canonicalize(other)).satisfiability()
    except ValueError:
        return None
    return {canonical.Satisfiability.NO: False, canonical.Satisfiability.YES: True}.get(rest)


def _canonicalize(schema: Schema) -> jsonschema_rs.CanonicalSchema:
    return jsonschema_rs.canonicalize(schema, draft=jsonschema_rs.Draft202012, validate_formats=True, offline=True)


def _describe(path: str, was: Schema, now: Schema) -> str:
    before, after = list(was["properties"].values()), list(now["properties"].values())
    required = bool(now["required"])
    if not before:
        return f"{path} is new{' and required' if required else ''}."
    if not after:
        return f"{path} is gone."
    if before == after:
        return f"{path} is {'required' if required else 'optional'} now."
    return f"{path} is {_show(after[0])}; it was {_show(before[0])}."


def _without_filled(schema: Schema) -> Schema:
    """Makes properties with a default optional, because the gate fills in defaults before it validates."""
    properties = schema.get("properties", {})
    relaxed = schema.copy()
    if "required" in schema:
        filled = {name for name, inner in properties.items() if isinstance(inner, dict) and "default" in inner}
        relaxed["required"] = [name for name in schema["required"] if name not in filled]
    if properties:
        relaxed["properties"] = {
            name: _without_filled(inner) if _is_filled(inner) else inner for name, inner in properties.items()
        }
    return relaxed


def _is_filled(schema: Any) -> bool:
    """Whether the gate fills in defaults inside: only in nested objects, not behind a reference or a choice."""
    return isinstance(schema, dict) and schema.get("type") == "object"


def _compare_defaults(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    was, now = dict(_find_defaults(old.parameters)), dict(_find_defaults(new.parameters))
    # A property that only one of the two has is a difference of the parameters.
    for path in was:
        if path in now and was[path] != now[path]:
            sentence = f"The default of {path} is {now[path] or 'gone'}; it was {was[path] or 'not there'}."
            yield Change("parameters", True, sentence)


def _find_defaults(schema: Schema, prefix: str = "") -> Iterator[tuple[str, str | None]]:
    for name, inner in schema.get("properties", {}).items():
        if isinstance(inner, dict):
            yield prefix + name, canonical.json.to_string(inner["default"]) if "default" in inner else None
            if _is_filled(inner):
                yield from _find_defaults(inner, f"{prefix}{name}.")


def _show(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _compare_fields(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    """Compares the fields of schema.json other than the schemas."""
    was, now = msgspec.to_builtins(old), msgspec.to_builtins(new)
    for field in dict.fromkeys([*was, *now]):
        if field not in ("parameters", "outputs") and was.get(field) != now.get(field):
            breaking = field in _BREAKS and _BREAKS[field](old, new)
            yield Change(field, breaking, f"It is {_show(now.get(field))}; it was {_show(was.get(field))}.")


def _is_tighter(old: RateLimit | None, new: RateLimit | None) -> bool:
    return new is not None and (old is None or new.calls < old.calls or new.window_s > old.window_s)


_BREAKS: Final[Mapping[str, Callable[[ToolSpec, ToolSpec], bool]]] = {
    "allowedModes": lambda old, new: not {*old.allowed_modes} <= {*new.allowed_modes},
    # Retrieval has a budget per turn, and only actions may exceed their latency budget.
    "category": lambda old, new: new.category is Category.RETRIEVAL or old.category is Category.ACTION,
    "sideEffects": lambda old, new: new.writes,
    "idempotent": lambda old, new: not new.idempotent,
    "requiresConfirmation": lambda old, new: new.requires_confirmation,
    "requiresAuth": lambda old, new: new.requires_auth,
    "availability": lambda old, new: new.availability is not None,
    "rateLimit": lambda old, new: _is_tighter(old.rate_limit, new.rate_limit),
    # An action that exceeds its budget is logged, and stopped at its timeout; any other tool is stopped at its budget.
    "latencyBudgetMs": lambda old, new: (
        new.category is not Category.ACTION and new.latency_budget_ms < old.latency_budget_ms
    ),
    "timeoutMs": lambda old, new: new.category is Category.ACTION and new.timeout_ms < old.timeout_ms,
}
"""Fields whose change can make calls fail that succeeded before. Changes of all other fields are safe."""

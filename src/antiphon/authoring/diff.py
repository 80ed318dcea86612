"""Which changes between two registries break those who call the tools or read their results."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec
from jsonschema_rs import canonical
from msgspec import Struct

from antiphon.tools.arguments import Arguments, compile_schema
from antiphon.tools.errors import RegistryError
from antiphon.tools.spec import Category, RateLimit, ToolSpec
from antiphon.tools.witness import Difference, subtract

MAX_SHOWN_CHARACTERS: Final = 160


class Kind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Change(Struct, frozen=True):
    field: str
    """What changed, by its name in schema.json; `tool` and `files` for what is not in it."""
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
    """By id, without those that are the same in both."""

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
    """Compares two decoded tool_registry.json. Raises `RegistryError` for what is none."""
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
    changes = tuple(change for compare_part in _PARTS for change in compare_part(old.spec, new.spec))
    if not changes and old.digest != new.digest:
        changes = (Change("files", False, "The contract is the same; other files or words of the tool changed."),)
    return ToolComparison(tool_id, Kind.CHANGED, changes)


def _compare_parameters(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    if old.parameters == new.parameters:
        return
    was, now = Arguments(old.parameters), Arguments(new.parameters)
    before, after = _without_filled(old.parameters), _without_filled(new.parameters)

    def explain(args: Any) -> str:
        problem = now.problems(now.complete(args)[0])[0]
        return f" ({problem['path']}: {problem['message']})"

    refused = subtract(before, after, lambda args: _takes(was, args) and not _takes(now, args))
    yield from _tell("parameters", True, "calls that it accepted are refused", refused, explain)
    accepted = subtract(after, before, lambda args: _takes(now, args) and not _takes(was, args))
    yield from _tell("parameters", False, "calls that it refused are accepted", accepted)


def _takes(arguments: Arguments, args: Any) -> bool:
    return arguments.accepts(arguments.complete(args)[0])


def _without_filled(schema: dict[str, Any]) -> dict[str, Any]:
    """The gate fills in defaults before it validates, so a required property that has one may be left out."""
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
    """Whether the gate looks for defaults below: nested objects, and nothing behind a reference or a choice."""
    return isinstance(schema, dict) and schema.get("type") == "object"


def _compare_defaults(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    was, now = dict(_find_defaults(old.parameters)), dict(_find_defaults(new.parameters))
    # A property that only one of the two has is a difference of the parameters.
    for path in was:
        if path in now and was[path] != now[path]:
            sentence = f"The default of {path} is {now[path] or 'gone'}; it was {was[path] or 'not there'}."
            yield Change("parameters", True, sentence)


def _find_defaults(schema: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str | None]]:
    for name, inner in schema.get("properties", {}).items():
        if isinstance(inner, dict):
            yield prefix + name, canonical.json.to_string(inner["default"]) if "default" in inner else None
            if _is_filled(inner):
                yield from _find_defaults(inner, f"{prefix}{name}.")


def _compare_outputs(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    """For those who read results it is the other way round: what they did not have to expect breaks them."""
    if old.outputs == new.outputs:
        return
    if old.outputs is None:
        yield Change("outputs", False, "The shape of the results is promised now.")
    elif new.outputs is None:
        yield Change("outputs", True, "The shape of the results is no longer promised.")
    else:
        was, now = compile_schema(old.outputs).is_valid, compile_schema(new.outputs).is_valid
        more = subtract(new.outputs, old.outputs, lambda data: now(data) and not was(data))
        yield from _tell("outputs", True, "results that it never gave may come", more)
        less = subtract(old.outputs, new.outputs, lambda data: was(data) and not now(data))
        yield from _tell("outputs", False, "results that it gave no longer come", less)


def _tell(
    field: str, breaking: bool, clause: str, difference: Difference, explain: Callable[[Any], str] = lambda _: ""
) -> Iterator[Change]:
    if difference.found is None:
        sentence = f"It cannot be told whether {clause}: {difference.reason}."
        yield Change(field, breaking, sentence)
    for witness in difference.witnesses:
        yield Change(field, breaking, f"{clause.capitalize()}, such as {_show(witness)}{explain(witness)}.")
    if difference.found and not difference.witnesses:
        yield Change(field, breaking, f"{clause.capitalize()}.")


def _show(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"


def _compare_modes(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    for mode in old.allowed_modes:
        if mode not in new.allowed_modes:
            yield Change("allowedModes", True, f"It is no longer allowed in {mode} mode.")
    for mode in new.allowed_modes:
        if mode not in old.allowed_modes:
            yield Change("allowedModes", False, f"It is allowed in {mode} mode now.")


def _compare_conduct(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    """What callers may rely on beside the schemas."""
    if old.category is not new.category:
        # Retrieval is rationed a turn, and only actions are never cut off at their latency budget.
        breaking = new.category is Category.RETRIEVAL or old.category is Category.ACTION
        yield Change("category", breaking, f"Its category is {new.category}; it was {old.category}.")
    if old.side_effects is not new.side_effects:
        yield Change(
            "sideEffects", new.writes, f"Its side effects are {new.side_effects}; they were {old.side_effects}."
        )
    if old.idempotent is not new.idempotent:
        sentence = "Calling it twice is the same as once now." if new.idempotent else "Calling it twice acts twice now."
        yield Change("idempotent", old.idempotent, sentence)
    if old.untrusted is not new.untrusted:
        sentence = f"Its results {'count as' if new.untrusted else 'are no longer'} the words of strangers."
        yield Change("tags", False, sentence)
    if old.description != new.description:
        yield Change("description", False, "It describes itself in other words: models may choose it differently.")


def _compare_admission(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    """What stands between a valid call and its run."""
    if old.requires_confirmation is not new.requires_confirmation:
        sentence = f"It {'asks for' if new.requires_confirmation else 'no longer asks for'} confirmation."
        yield Change("requiresConfirmation", new.requires_confirmation, sentence)
    if old.requires_auth is not new.requires_auth:
        sentence = f"It {'needs' if new.requires_auth else 'no longer needs'} a signed-in user."
        yield Change("requiresAuth", new.requires_auth, sentence)
    if old.availability != new.availability:
        sentence = f"It is available {f'if {new.availability}' if new.availability else 'always'} now."
        yield Change("availability", new.availability is not None, sentence)
    if old.rate_limit != new.rate_limit:
        sentence = f"Its rate limit is {_show_limit(new.rate_limit)}; it was {_show_limit(old.rate_limit)}."
        yield Change("rateLimit", _is_tighter(old.rate_limit, new.rate_limit), sentence)


def _is_tighter(old: RateLimit | None, new: RateLimit | None) -> bool:
    return new is not None and (old is None or new.calls < old.calls or new.window_s > old.window_s)


def _show_limit(limit: RateLimit | None) -> str:
    return "none" if limit is None else f"{limit.calls} calls in {limit.window_s:g} s"


def _compare_deadlines(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    # An action is warned at its budget and stopped at its timeout; every other tool is cut off at its budget.
    is_action = new.category is Category.ACTION
    for field, was, now, cuts in (
        ("latencyBudgetMs", old.latency_budget_ms, new.latency_budget_ms, not is_action),
        ("timeoutMs", old.timeout_ms, new.timeout_ms, is_action),
    ):
        if was != now:
            yield Change(field, cuts and now < was, f"It has {now} ms; it had {was}.")


_PARTS: Final = (
    _compare_parameters,
    _compare_defaults,
    _compare_outputs,
    _compare_modes,
    _compare_conduct,
    _compare_admission,
    _compare_deadlines,
)

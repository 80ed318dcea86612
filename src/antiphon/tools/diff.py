"""Which changes between two registries break those who call the tools or read their results."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import jsonschema_rs
import msgspec
from jsonschema_rs import CanonicalSchema, canonical
from msgspec import Struct

from antiphon.tools.arguments import Arguments, compile_schema
from antiphon.tools.errors import RegistryError
from antiphon.tools.spec import Category, SideEffects, ToolSpec
from antiphon.tools.witness import find_witnesses

MAX_EXAMPLES: Final = 5
MAX_SHOWN_CHARACTERS: Final = 160

Schema = dict[str, Any]


class Kind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Change(Struct, frozen=True):
    field: str
    """What changed, by its name in schema.json; `tool` and `files` for what is not in it."""
    breaking: bool
    sentence: str
    """Of the tool, which is its subject: "Refuses calls that …"."""


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
    """By id, without the tools that are the same in both."""

    @property
    def breaking(self) -> bool:
        return any(tool.breaking for tool in self.tools)


class _Entry(Struct):
    spec: ToolSpec
    digest: str = ""


class _Registry(Struct):
    version: str
    tools: list[_Entry]


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Comparison:
    """Two decoded tool_registry.json. Raises `RegistryError` for what is none."""
    before, after = _decode(old, "old"), _decode(new, "new")
    was = {entry.spec.tool_id: entry for entry in before.tools}
    now = {entry.spec.tool_id: entry for entry in after.tools}
    compared = (_compare_entries(tool_id, was.get(tool_id), now.get(tool_id)) for tool_id in sorted({*was, *now}))
    return Comparison(before.version, after.version, tuple(tool for tool in compared if tool.changes))


def _decode(registry: Mapping[str, Any], which: str) -> _Registry:
    try:
        return msgspec.convert(registry, _Registry)
    except msgspec.ValidationError as error:
        raise RegistryError(
            f"The {which} file is not a tool registry of this version: {error}. Build it with `antiphon tools build`."
        ) from None


def _compare_entries(tool_id: str, old: _Entry | None, new: _Entry | None) -> ToolComparison:
    if old is None:
        return ToolComparison(tool_id, Kind.ADDED, (Change("tool", False, "Is new."),))
    if new is None:
        return ToolComparison(tool_id, Kind.REMOVED, (Change("tool", True, "Is gone: every call to it fails."),))
    changes = tuple(change for compare_one in _COMPARISONS for change in compare_one(old.spec, new.spec))
    if not changes and old.digest != new.digest:
        changes = (Change("files", False, "Has the same contract, but its handler or its words changed."),)
    return ToolComparison(tool_id, Kind.CHANGED, changes)


# Schemas: what one accepts and the other does not -------------------------------------------------------------------


class _Difference(Struct, frozen=True):
    found: bool | None
    """None: it cannot be told, and `reason` says why."""
    examples: tuple[Any, ...] = ()
    reason: str = ""


def _subtract(minuend: Schema, subtrahend: Schema, is_example: Callable[[Any], bool]) -> _Difference:
    try:
        lost = _canonicalize(minuend).subtract(_canonicalize(subtrahend))
        certain = lost.satisfiability()
        if certain is canonical.Satisfiability.NO:
            return _Difference(False)
        view = lost.view()
        # Each branch is one way to differ.
        branches = view.branches if isinstance(view, canonical.AnyOfView) else [lost]
        firsts = (next(filter(is_example, find_witnesses(branch)), None) for branch in branches[:MAX_EXAMPLES])
        examples = tuple(example for example in firsts if example is not None)
    except ValueError as error:  # of canonicalisation, of the schema itself, of a reference
        return _Difference(None, reason=str(error).splitlines()[0])
    if examples or certain is canonical.Satisfiability.YES:
        return _Difference(True, examples)
    return _Difference(None, reason="the schemas are too intricate")


def _canonicalize(schema: Schema) -> CanonicalSchema:
    return jsonschema_rs.canonicalize(schema, draft=jsonschema_rs.Draft202012, validate_formats=True, offline=True)


def _show(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"


def _such_as(example: object) -> str:
    return f", such as {_show(example)}"


# Parameters ---------------------------------------------------------------------------------------------------------


def _compare_parameters(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    if old.parameters == new.parameters:
        return
    was, now = Arguments(old.parameters), Arguments(new.parameters)
    before, after = _without_filled(old.parameters), _without_filled(new.parameters)

    refused = _subtract(before, after, lambda args: _takes(was, args) and not _takes(now, args))
    if refused.found is None:
        yield Change("parameters", True, f"May refuse calls that it accepted; it cannot be told: {refused.reason}.")
    for example in refused.examples:
        problem = now.problems(now.complete(example)[0])[0]
        sentence = f"Refuses calls that it accepted{_such_as(example)}: {problem['path']}: {problem['message']}."
        yield Change("parameters", True, sentence)
    if refused.found and not refused.examples:
        yield Change("parameters", True, "Refuses some calls that it accepted.")

    accepted = _subtract(after, before, lambda args: _takes(now, args) and not _takes(was, args))
    for example in accepted.examples:
        yield Change("parameters", False, f"Accepts calls that it refused{_such_as(example)}.")
    if accepted.found and not accepted.examples:
        yield Change("parameters", False, "Accepts some calls that it refused.")


def _takes(arguments: Arguments, args: Any) -> bool:
    return arguments.accepts(arguments.complete(args)[0])


def _without_filled(schema: Schema) -> Schema:
    """The gate fills in defaults before it validates, so a required property that has one may be left out."""
    properties = schema.get("properties", {})
    relaxed = dict(schema)
    if "required" in schema:
        relaxed["required"] = [name for name in schema["required"] if "default" not in properties.get(name, {})]
    if properties:
        relaxed["properties"] = {
            name: _without_filled(inner) if _is_filled(inner) else inner for name, inner in properties.items()
        }
    return relaxed


def _is_filled(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "object"


def _compare_defaults(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    was, now = dict(_find_defaults(old.parameters)), dict(_find_defaults(new.parameters))
    # Where only one of the two has the property, the parameters differ, which is said there.
    for path in (path for path in was if path in now and was[path] != now[path]):
        before, after = was[path] or "none", now[path] or "none"
        yield Change("parameters", True, f"Takes another default for {path}: {after} instead of {before}.")


def _find_defaults(schema: Schema, prefix: str = "") -> Iterator[tuple[str, str | None]]:
    """The properties that the gate looks at when it fills in defaults, with theirs as canonical JSON."""
    for name, inner in schema.get("properties", {}).items():
        if isinstance(inner, dict):
            yield f"{prefix}{name}", canonical.json.to_string(inner["default"]) if "default" in inner else None
            if _is_filled(inner):
                yield from _find_defaults(inner, f"{prefix}{name}.")


# Outputs: what readers must expect ----------------------------------------------------------------------------------


def _compare_outputs(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    if old.outputs == new.outputs:
        return
    if old.outputs is None or new.outputs is None:
        gone = new.outputs is None
        yield Change("outputs", gone, f"{'No longer says' if gone else 'Says now'} what its results look like.")
        return
    try:
        was, now = compile_schema(old.outputs).is_valid, compile_schema(new.outputs).is_valid
    except ValueError as error:
        yield Change("outputs", True, f"May give results that it did not give; it cannot be told: {error}.")
        return
    more = _subtract(new.outputs, old.outputs, lambda data: now(data) and not was(data))
    if more.found is None:
        yield Change("outputs", True, f"May give results that it did not give; it cannot be told: {more.reason}.")
    for example in more.examples:
        yield Change("outputs", True, f"Gives results that it did not give{_such_as(example)}.")
    if more.found and not more.examples:
        yield Change("outputs", True, "Gives some results that it did not give.")
    less = _subtract(old.outputs, new.outputs, lambda data: was(data) and not now(data))
    if less.found:
        yield Change("outputs", False, "No longer gives some results that it gave.")

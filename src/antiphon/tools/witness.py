"""What one JSON Schema accepts and another does not, shown by examples."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, cast

import jsonschema_rs
from jsonschema_rs import CanonicalSchema, canonical

from antiphon.tools.arguments import compile_schema

MAX_WITNESSES: Final = 5
MAX_DEPTH: Final = 12
REFERENCE_DEPTH: Final = 4
"""A reference counts as so many steps down, since it may lead back to itself by many ways."""
MAX_PER_PLACE: Final = 8
MAX_PER_BRANCH: Final = 2

_STRINGS: Final = ("a", "", "A", "1", "-", "word", "2026-01-31", "2026-01-31T12:00:00Z", "12:00:00Z")
_MORE_STRINGS: Final = ("ada@example.org", "https://example.org/", "192.0.2.1", "123e4567-e89b-12d3-a456-426614174000")

_BY_TYPE: Final[Mapping[str, tuple[Any, ...]]] = {
    "null": (None,),
    "boolean": (True, False),
    "integer": tuple(range(1, 9)),
    "number": (0.5, *range(1, 9)),
    "string": _STRINGS,
    "array": ([], ["a"]),
    "object": ({}, {"a": "a"}),
}


@dataclass(frozen=True, slots=True)
class Difference:
    found: bool | None
    """None: it cannot be told, for the reason."""
    witnesses: tuple[Any, ...] = ()
    """Values that show it, each in another way. It may be there without one."""
    reason: str = ""


def subtract(minuend: dict[str, Any], subtrahend: dict[str, Any], is_witness: Callable[[Any], bool]) -> Difference:
    """Whether some values that the first schema accepts are refused by the second.

    `is_witness` has the last word about an example: the gate does more than a validator does.
    """
    try:
        rest = _canonicalize(minuend).subtract(_canonicalize(subtrahend))
        satisfiable = rest.satisfiability()
        if satisfiable is canonical.Satisfiability.NO:
            return Difference(False)
        view = rest.view()
        branches = view.branches if isinstance(view, canonical.AnyOfView) else [rest]
        found = [list(islice(filter(is_witness, find_witnesses(branch)), 1)) for branch in branches[:MAX_WITNESSES]]
    except ValueError as error:
        return Difference(None, reason=str(error).splitlines()[0].rstrip("."))
    witnesses = tuple(witness for each in found for witness in each)
    if witnesses or satisfiable is canonical.Satisfiability.YES:
        return Difference(True, witnesses)
    return Difference(None, reason="the comparison of the two schemas gave no answer")


def _canonicalize(schema: dict[str, Any]) -> CanonicalSchema:
    return jsonschema_rs.canonicalize(schema, draft=jsonschema_rs.Draft202012, validate_formats=True, offline=True)


def find_witnesses(schema: CanonicalSchema, depth: int = 0) -> Iterator[Any]:
    """Some values that the schema accepts, simple ones first; none if guessing finds none."""
    if depth > MAX_DEPTH:
        return
    is_valid = compile_schema(cast(dict[str, Any], schema.to_json_schema())).is_valid
    different = {canonical.json.to_string(value): value for value in _guess(schema, depth) if is_valid(value)}
    yield from islice(different.values(), MAX_PER_PLACE)


def _guess(schema: CanonicalSchema, depth: int) -> Iterator[Any]:
    match schema.view():
        case canonical.ConstView(value):
            yield value
        case canonical.EnumView(values):
            yield from values
        case canonical.MultiTypeView(types):
            yield from _BY_TYPE[types[0]] if len(types) == 1 else (_BY_TYPE[type_][0] for type_ in types)
        case canonical.TypedGroupView(_, body):
            yield from _guess(body, depth)
        case canonical.AnyOfView(branches) | canonical.OneOfView(branches) | canonical.AllOfView(branches):
            for branch in branches:
                yield from islice(find_witnesses(branch, depth + 1), MAX_PER_BRANCH)
        case canonical.ReferenceView(uri):
            if (target := schema.definition(uri)) is not None:
                yield from find_witnesses(target, depth + REFERENCE_DEPTH)
        case canonical.IntegerView() | canonical.NumberView() as view:
            yield from _guess_numbers(view)
        case canonical.StringView() as view:
            longer = (text.ljust(view.min_length or 0, "a")[: view.max_length] for text in _STRINGS)
            yield from (*longer, *_MORE_STRINGS, "a" * min(view.max_length or 0, 1000))
        case canonical.ArrayView() as view:
            yield from _guess_arrays(view, depth)
        case canonical.ObjectView() as view:
            yield from _guess_objects(view, depth)
        case _:
            yield from (values[0] for values in _BY_TYPE.values())


def _guess_numbers(view: canonical.IntegerView | canonical.NumberView) -> Iterator[float]:
    ends = [float(end) for end in (view.minimum, view.maximum) if end is not None]
    steps = [float(step) for step in view.multiple_of]
    starts = [*ends, 1.0, 0.0, *steps, *(math.ceil(end / step) * step for end in ends for step in steps)]
    for start in starts:
        for value in (start, start + 1, start - 1, start + 0.5, *(start + step for step in steps)):
            yield int(value) if value.is_integer() else value


def _guess_arrays(view: canonical.ArrayView, depth: int) -> Iterator[list[Any]]:
    least = view.min_items or 0
    prefix = [next(find_witnesses(place, depth + 1), None) for place in view.prefix_items]
    items = list(find_witnesses(view.items, depth + 1)) if view.items is not None else ["a", "b", 1, 2]
    contained = [value for wanted in view.contains for value in find_witnesses(wanted.schema, depth + 1)]
    for first in (*([value] for value in contained), []):
        # A short supply of different items is repeated, and refused later where they must differ.
        different = [*prefix, *first, *items, *items[-1:] * least]
        repeated = [*prefix, *first, *items[:1] * (least + 1)]
        for length in (least, least + 1, len(prefix) + len(first)):
            yield from (different[:length], repeated[:length])


def _guess_objects(view: canonical.ObjectView, depth: int) -> Iterator[dict[str, Any]]:
    def values(name: str) -> list[Any]:
        schema = view.properties.get(name, view.additional_properties)
        return ["a"] if schema is None else list(find_witnesses(schema, depth + 1))

    choices = {name: values(name) for name in view.required}
    if not all(choices.values()):
        return
    base = {name: choices[name][0] for name in view.required}
    yield base
    yield from ({**base, name: value} for name in choices for value in choices[name][1:])
    yield from ({**base, name: value} for name in view.properties if name not in base for value in values(name)[:1])
    yield {**base, "other": "a"}

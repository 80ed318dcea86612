"""Expands a JSON Schema into plain alternatives: references, `allOf`, `anyOf`, `oneOf` and lists of types are resolved.

The result is for providers that support only a part of JSON Schema. Where two constraints cannot be merged, the schema
gets wider, never narrower, because a valid call must not look invalid. Constraints that are lost become sentences in
`notes`.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from jsonschema_rs import canonical

from antiphon.authoring.problems import BuildError

Schema = Mapping[str, Any] | bool

MAX_ALTERNATIVES: Final = 32
"""Nested choices multiply. Beyond this, the inner ones are described in words."""

_ONE: Final = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
_MANY: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})

_MERGED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
    "uniqueItems": operator.or_,
    "required": lambda a, b: list(dict.fromkeys([*a, *b])),
    "enum": lambda a, b: [value for value in a if identify(value) in set(map(identify, b))],
}
_FIRST_WINS: Final = frozenset({"pattern", "format", "multipleOf"})
_SHAPES: Final = frozenset({"properties", "patternProperties", "additionalProperties", "items", "prefixItems"})
_KEPT: Final = (_MERGED.keys() | _FIRST_WINS | _SHAPES) - {"enum"}

_PYTHON: Final[Mapping[str, type | tuple[type, ...]]] = {
    "null": type(None),
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "string": str,
    "array": list,
    "object": dict,
}

_TOLD: Final = (
    *("not", "if", "then", "else", "contains", "minContains", "maxContains", "dependentRequired", "dependentSchemas"),
    *("patternProperties", "propertyNames", "contentEncoding", "contentMediaType", "contentSchema"),
)
"""Constraints that an alternative cannot express. A model that reads them in the description can still respect them."""


@dataclass(frozen=True, slots=True)
class Alternative:
    type: str | None = None
    """One JSON type, or None for any."""
    keywords: Mapping[str, Any] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    """The descriptions that apply to it."""
    notes: tuple[str, ...] = ()

    def noting(self, *sentences: str) -> "Alternative":
        return replace(self, notes=(*self.notes, *sentences))


def show(value: object) -> str:
    return msgspec.json.encode(value).decode()


def identify(value: object) -> str:
    """Returns the same text for values that are equal in JSON, where 1 is 1.0 but not true."""
    return canonical.json.to_string(value)


def note_schema(schema: Schema) -> str:
    return f"Must also match the JSON Schema {show(schema)}."


def inline(schema: Mapping[str, Any], tool_id: str) -> Mapping[str, Any]:
    """Returns a copy without references. Raises `BuildError` for a reference to itself, or out of the document."""

    def follow(node: Any, active: tuple[str, ...]) -> Any:
        if not isinstance(node, Mapping):
            return node
        copy: dict[str, Any] = {}
        for keyword, value in node.items():
            if keyword in _ONE:
                copy[keyword] = follow(value, active)
            elif keyword in _MANY:
                copy[keyword] = [follow(part, active) for part in value]
            elif keyword in _NAMED:
                copy[keyword] = {name: follow(part, active) for name, part in value.items()}
            elif keyword == "$dynamicRef":
                raise BuildError(f"{tool_id}: Gemini does not support $dynamicRef ({value}). Use $ref instead.")
            elif keyword not in ("$ref", "$defs", "definitions"):
                copy[keyword] = value
        if "$ref" in node:
            target = _target(schema, node["$ref"], active, tool_id)
            copy["allOf"] = [follow(target, (*active, node["$ref"])), *copy.get("allOf", ())]
        return copy

    inlined: Mapping[str, Any] = follow(schema, ("#",))
    return inlined


def _target(root: Mapping[str, Any], ref: str, active: tuple[str, ...], tool_id: str) -> Any:
    if ref in active:
        raise BuildError(
            f"{tool_id}: the reference {ref} refers to itself, and Gemini does not support recursive parameters. "
            "Write the nesting out to the depth that the tool needs."
        )
    try:
        return _follow_pointer(root, ref) if ref.startswith("#/") else _find_anchor(root, ref.removeprefix("#"))[0]
    except (KeyError, IndexError, ValueError, TypeError):
        raise BuildError(
            f"{tool_id}: the reference {ref} leads to nothing. Point it at this file, such as #/$defs/name."
        ) from None


def _follow_pointer(root: Mapping[str, Any], ref: str) -> Any:
    node: Any = root
    for part in unquote(ref[2:]).split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        node = node[int(name)] if isinstance(node, list) else node[name]
    return node


def _find_anchor(node: Any, name: str) -> list[Mapping[str, Any]]:
    if isinstance(node, Mapping):
        here = [node] if node.get("$anchor") == name else []
        return here + [found for inner in node.values() for found in _find_anchor(inner, name)]
    return [found for inner in node for found in _find_anchor(inner, name)] if isinstance(node, list) else []


def spread(schema: Schema) -> list[Alternative]:
    """Returns the alternatives of a schema without references. None of them means that it accepts nothing."""
    if isinstance(schema, bool):
        return [Alternative()] if schema else []
    found = _own(schema)
    for part in schema.get("allOf", ()):
        found = _narrow(found, spread(part), part)
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            branches = [alternative for branch in schema[choice] for alternative in spread(branch)]
            found = _narrow(found, branches, {choice: schema[choice]})
    return found


def _conjoin(a: Schema, b: Schema) -> Schema:
    if a is False or b is False:
        return False
    if a is True or identify(a) == identify(b):
        return b
    return a if b is True else {"allOf": [a, b]}


def _own(schema: Mapping[str, Any]) -> list[Alternative]:
    """Returns the alternatives of the keywords beside `allOf`, `anyOf` and `oneOf`."""
    keywords = {keyword: value for keyword, value in schema.items() if keyword in _KEPT}
    text = str(schema.get("description", "")).strip()
    plain = Alternative(None, keywords, (text,) if text else (), tuple(_notes(schema)))
    types = schema.get("type")
    declared = [types] if isinstance(types, str) else types
    values = schema.get("enum")
    if "const" in schema:
        values = [schema["const"]] if values is None else _MERGED["enum"]([schema["const"]], values)
    if values is None:
        return [replace(plain, type=type_) for type_ in declared or (None,)]
    return [
        replace(plain, type=type_, keywords={**keywords, "enum": members})
        for type_, members in _by_type(values, declared).items()
    ]


def _notes(schema: Mapping[str, Any]) -> Iterable[str]:
    if "default" in schema:
        yield f"Default: {show(schema['default'])}."
    if schema.get("examples"):
        yield f"Examples: {', '.join(map(show, schema['examples']))}."
    told = {keyword: schema[keyword] for keyword in _TOLD if keyword in schema}
    for keyword in ("additionalProperties", "unevaluatedProperties", "unevaluatedItems"):
        if isinstance(schema.get(keyword), Mapping):
            told[keyword] = schema[keyword]
    if told:
        yield note_schema(told)


def _by_type(values: list[Any], declared: list[str] | None) -> dict[str, list[Any]]:
    """Groups the values of an enum by their types, if the schema declares those types."""
    if declared is None:
        numeric = "number" if any(isinstance(value, float) for value in values) else "integer"
        declared = ["null", "boolean", numeric, "string", "array", "object"]
    grouped = {type_: [value for value in values if _is(value, type_)] for type_ in declared}
    return {type_: members for type_, members in grouped.items() if members}


def _is(value: object, type_: str) -> bool:
    if isinstance(value, bool):
        return type_ == "boolean"
    if isinstance(value, float) and type_ == "integer":
        return value.is_integer()
    return isinstance(value, _PYTHON[type_])


def _narrow(found: list[Alternative], others: list[Alternative], told: Schema) -> list[Alternative]:
    if len(found) * len(others) > max(MAX_ALTERNATIVES, len(found), len(others)):
        return [alternative.noting(note_schema(told)) for alternative in found]
    merged = (_merge(a, b) for a in found for b in others)
    return [alternative for alternative in merged if alternative is not None]


def _merge(a: Alternative, b: Alternative) -> Alternative | None:
    """Returns what both accept; None if they have nothing in common."""
    types = {a.type, b.type} - {None}
    if types == {"integer", "number"}:
        types = {"integer"}
    if len(types) > 1:
        return None
    keywords = {**b.keywords, **a.keywords}
    lost = []
    for keyword in a.keywords.keys() & b.keywords.keys():
        mine, theirs = a.keywords[keyword], b.keywords[keyword]
        if keyword in _MERGED:
            keywords[keyword] = _MERGED[keyword](mine, theirs)
        elif keyword in _FIRST_WINS and mine != theirs:
            lost.append(note_schema({keyword: theirs}))
    if keywords.get("enum") == []:
        return None
    keywords |= _merge_properties(a.keywords, b.keywords) | _merge_items(a.keywords, b.keywords)
    return Alternative(
        next(iter(types), None),
        keywords,
        tuple(dict.fromkeys([*a.texts, *b.texts])),
        tuple(dict.fromkeys([*a.notes, *b.notes, *sorted(lost)])),
    )


def find_property(keywords: Mapping[str, Any], name: str) -> Schema:
    """Returns the schema of a property of an object, whether or not it is declared."""
    # A pattern may allow the name; which ones match is not worth a second regular expression dialect.
    beyond: Schema = True if "patternProperties" in keywords else keywords.get("additionalProperties", True)
    schema: Schema = keywords.get("properties", {}).get(name, beyond)
    return schema


def _merge_properties(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    names = dict.fromkeys([*a.get("properties", ()), *b.get("properties", ())])
    if names:
        merged["properties"] = {name: _conjoin(find_property(a, name), find_property(b, name)) for name in names}
    if "additionalProperties" in a and "additionalProperties" in b:
        merged["additionalProperties"] = _conjoin(a["additionalProperties"], b["additionalProperties"])
    return merged


def _merge_items(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    def at(side: Mapping[str, Any], index: int) -> Schema:
        prefix = side.get("prefixItems", ())
        schema: Schema = prefix[index] if index < len(prefix) else side.get("items", True)
        return schema

    merged: dict[str, Any] = {}
    length = max(len(side.get("prefixItems", ())) for side in (a, b))
    if length:
        merged["prefixItems"] = [_conjoin(at(a, index), at(b, index)) for index in range(length)]
    if "items" in a or "items" in b:
        merged["items"] = _conjoin(a.get("items", True), b.get("items", True))
    return merged

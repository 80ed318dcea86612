"""Makes Gemini's function declarations, with `parameters` in the part of OpenAPI that the Live API accepts.

`parametersJsonSchema` would accept any schema, but Live has ignored it for some models. Constraints that Google's
server refuses are written into the description instead, so that the model still knows them: the gate will check them.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from antiphon.authoring.alternatives import (
    Alternative,
    Schema,
    find_property,
    identify,
    inline,
    note_schema,
    show,
    spread,
)
from antiphon.tools.spec import ToolSpec

_FORMATS: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"date-time", "enum"}),
    "number": frozenset({"float", "double"}),
    "integer": frozenset({"int32", "int64"}),
}

_KEPT: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}

_TYPED: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}),
    "object": frozenset({"properties", "required", "minProperties", "maxProperties"}),
}

# Google's expressions are RE2, which has neither lookaround nor references to groups.
_BEYOND_RE2: Final = re.compile(r"\(\?<?[=!]|\\[1-9]|\\k<")


def adapt(spec: ToolSpec) -> dict[str, Any]:
    """Raises `BuildError` for recursive parameters, which cannot be written out."""
    declaration: dict[str, Any] = {"name": spec.tool_id, "description": spec.description}
    parameters = _root(inline(spec.parameters, spec.tool_id))
    # An OBJECT without properties is refused.
    if parameters is not None and "properties" in parameters:
        declaration["parameters"] = parameters
    return declaration


def _root(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Merges the alternatives into one that accepts whatever one of them does, since the root must be one OBJECT."""
    choices = [choice for choice in spread(schema) if choice.type in ("object", None)]
    if len(choices) < 2:
        return _object(replace(choices[0], type="object")) if choices else None
    names = dict.fromkeys(name for choice in choices for name in choice.keywords.get("properties", ()))
    required = [set(choice.keywords.get("required", ())) for choice in choices]
    joined = _common(choice.keywords for choice in choices) | {
        "properties": {name: _any_of(find_property(choice.keywords, name) for choice in choices) for name in names},
        "required": [name for name in names if all(name in each for each in required)],
    }
    told = {keyword: schema[keyword] for keyword in ("allOf", "anyOf", "oneOf") if keyword in schema}
    texts = dict.fromkeys(text for choice in choices for text in choice.texts)
    return _object(Alternative("object", joined, tuple(texts), (note_schema(told),)))


def _common(mappings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    first, *others = mappings
    return {key: value for key, value in first.items() if all(key in each and each[key] == value for each in others)}


def _any_of(schemas: Iterable[Schema]) -> Schema:
    distinct = list({identify(schema): schema for schema in schemas}.values())
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _convert(schema: Schema) -> dict[str, Any] | None:
    """Converts one schema to Gemini's format; None if it accepts nothing."""
    alternatives = [typed for alternative in spread(schema) for typed in _with_type(alternative)]
    null = _joined_null([alternative for alternative in alternatives if alternative.type == "null"])
    converted: list[dict[str, Any]] = []
    for alternative in alternatives:
        if alternative.type != "null":
            one = _convert_one(alternative if null is None else _explaining(null, alternative))
            if one is not None and one not in converted:
                converted.append(one)
    if null is not None:
        if not converted:
            return _described({"type": "NULL"}, null)
        converted = [{**one, "nullable": True} for one in converted]
    if len(converted) < 2:
        return converted[0] if converted else None
    # Vertex refuses any field beside anyOf, so each branch has the description and is nullable by itself.
    return {"anyOf": converted}


def _joined_null(nulls: list[Alternative]) -> Alternative | None:
    if not nulls:
        return None
    texts = dict.fromkeys(text for null in nulls for text in null.texts)
    notes = dict.fromkeys(note for null in nulls for note in null.notes)
    return Alternative("null", {}, tuple(texts), tuple(notes))


def _explaining(null: Alternative, alternative: Alternative) -> Alternative:
    meanings = [f"If null: {text}" for text in null.texts if text not in alternative.texts]
    return alternative.noting(*meanings, *null.notes)


def _with_type(alternative: Alternative) -> list[Alternative]:
    """Adds the types that a keyword applies to, because Gemini accepts a keyword only beside its type."""
    if alternative.type is not None or not any(alternative.keywords.keys() & typed for typed in _TYPED.values()):
        return [alternative]
    types = (*_TYPED, "boolean", "null")
    return [replace(alternative, type=type_) for type_ in types]


def _convert_one(alternative: Alternative) -> dict[str, Any] | None:
    match alternative.type:
        case None:
            return _described({}, alternative)
        case "string":
            return _string(alternative)
        case "integer" | "number":
            return _number(alternative)
        case "array":
            return _array(alternative)
        case "object":
            return _object(alternative)
        case _:
            converted, notes = _outline(alternative)
            return _described(converted, alternative, notes)


def _described(converted: dict[str, Any], alternative: Alternative, notes: Iterable[str] = ()) -> dict[str, Any]:
    sentences = list(dict.fromkeys([*alternative.texts, *notes, *alternative.notes]))
    if sentences:
        ended = [text if text.endswith((".", "!", "?", ":")) else f"{text}." for text in sentences[:-1]]
        converted["description"] = " ".join([*ended, sentences[-1]])
    return converted


def _outline(alternative: Alternative) -> tuple[dict[str, Any], list[str]]:
    """Returns the type and the simple keywords, and notes about the rest."""
    type_, keywords = str(alternative.type), alternative.keywords
    converted: dict[str, Any] = {"type": type_.upper()}
    converted |= {keyword: keywords[keyword] for keyword in _KEPT.get(type_, ()) if keyword in keywords}
    notes: list[str] = []
    if values := keywords.get("enum"):
        # An enum must be of strings, none of them empty. Numbers written as strings would make the model send strings,
        # and an enum without its empty string would forbid a valid value.
        if type_ == "string" and "" not in values:
            converted["enum"] = list(values)
        else:
            notes.append(f"One of: {', '.join(map(show, values))}.")
    if "format" in keywords:
        if keywords["format"] in _FORMATS.get(type_, ()):
            converted["format"] = keywords["format"]
        elif type_ == "string":
            notes.append(f"Format: {keywords['format']}.")
    return converted, notes


def _string(alternative: Alternative) -> dict[str, Any]:
    converted, notes = _outline(alternative)
    pattern = alternative.keywords.get("pattern")
    if pattern is not None:
        if _BEYOND_RE2.search(pattern):
            notes.append(f"Pattern: `{pattern}`.")
        else:
            converted["pattern"] = pattern
    return _described(converted, alternative, notes)


def _number(alternative: Alternative) -> dict[str, Any]:
    converted, notes = _outline(alternative)
    keywords = alternative.keywords
    low, above = keywords.get("minimum", -math.inf), keywords.get("exclusiveMinimum")
    high, below = keywords.get("maximum", math.inf), keywords.get("exclusiveMaximum")
    whole = alternative.type == "integer"
    if above is not None and above >= low:
        low = math.floor(above) + 1 if whole else above
        notes += [] if whole else [f"Must be greater than {show(above)}."]
    if below is not None and below <= high:
        high = math.ceil(below) - 1 if whole else below
        notes += [] if whole else [f"Must be less than {show(below)}."]
    if low > -math.inf:
        converted["minimum"] = low
    if high < math.inf:
        converted["maximum"] = high
    if "multipleOf" in keywords:
        notes.append(f"Must be a multiple of {show(keywords['multipleOf'])}.")
    return _described(converted, alternative, notes)


def _array(alternative: Alternative) -> dict[str, Any]:
    converted, notes = _outline(alternative)
    keywords = alternative.keywords
    prefix, rest = keywords.get("prefixItems", []), keywords.get("items", True)
    if prefix:
        notes.append(note_schema({name: keywords[name] for name in ("prefixItems", "items") if name in keywords}))
    if keywords.get("maxItems", math.inf) <= len(prefix):
        rest = False
    items = _convert(_any_of([*prefix, rest]))
    if rest is False:
        converted["maxItems"] = min(converted.get("maxItems", math.inf), len(prefix))
    # An ARRAY without items is refused.
    converted["items"] = items or {}
    if keywords.get("uniqueItems"):
        notes.append("Items must be unique.")
    return _described(converted, alternative, notes)


def _object(alternative: Alternative) -> dict[str, Any] | None:
    converted, notes = _outline(alternative)
    keywords = alternative.keywords
    properties = {name: _convert(schema) for name, schema in keywords.get("properties", {}).items()}
    required = keywords.get("required", [])
    if any(properties.get(name, {}) is None for name in required):
        return None
    possible = {name: schema for name, schema in properties.items() if schema is not None}
    if possible:
        converted["properties"] = possible
    if declared := [name for name in required if name in possible]:
        converted["required"] = declared
    # A name in `required` that is not a property is refused.
    if undeclared := [name for name in required if name not in properties]:
        notes.append(note_schema({"required": undeclared}))
    return _described(converted, alternative, notes)

"""Contracts for tests: one as authors write it, and Hypothesis strategies for parameters and arguments."""

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from jsonschema_rs import canonical

from antiphon.tools.arguments import compile_schema
from antiphon.tools.spec import Category, Mode, SideEffects, ToolSpec

Schema = dict[str, Any]

KB_SEARCH_PARAMETERS: Final[Schema] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 500, "description": "What to look for"},
        "namespace": {"type": "string", "enum": ["studio", "personal", "public"], "default": "studio"},
        "filters": {
            "type": "object",
            "description": "Leaves out what does not match.",
            "properties": {
                "type": {"type": ["string", "null"], "description": "Kind of record, or null for all"},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5, "uniqueItems": True},
                "date_range": {
                    "type": "object",
                    "properties": {
                        "start": {"$ref": "#/$defs/moment", "description": "From then on"},
                        "end": {"$ref": "#/$defs/moment"},
                    },
                    "required": ["start"],
                    "additionalProperties": False,
                },
            },
            "additionalProperties": False,
        },
        "top_k": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
    },
    "required": ["query"],
    "additionalProperties": False,
    "$defs": {"moment": {"title": "Moment", "type": "string", "format": "date-time"}},
}


def make_spec(parameters: Schema | None = None, **changes: Any) -> ToolSpec:
    """The contract of a reading tool, except for what is said otherwise."""
    fields: dict[str, Any] = {
        "tool_id": "kb_search",
        "version": "1.0.0",
        "description": "Searches the knowledge base.",
        "category": Category.RETRIEVAL,
        "side_effects": SideEffects.READ_ONLY,
        "idempotent": True,
        "requires_confirmation": False,
        "allowed_modes": (Mode.VOICE, Mode.TEXT),
        "latency_budget_ms": 800,
        "parameters": KB_SEARCH_PARAMETERS if parameters is None else parameters,
    }
    return ToolSpec(**(fields | changes))


PATTERNS: Final = ("^[a-z]+$", "^[A-Z]{2}-[0-9]{1,4}$", "^(?!x)[a-y]{1,5}$", r"^(a|b)\1$")
"""The last two are beyond RE2."""

FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "date-time": ("2026-01-31T12:00:00Z", "1999-12-31T23:59:59+01:00"),
    "date": ("2026-01-31", "2024-02-29"),
    "time": ("12:00:00Z",),
    "email": ("ada@example.org",),
    "uri": ("https://example.org/a?b=c",),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000",),
    "ipv4": ("192.0.2.1",),
}

# Names that are keywords too: a property called "title" is not a title.
_NAMES: Final = ("query", "top_k", "filters", "from", "to", "title", "default", "type", "items", "enum", "required")
_WORDS: Final = st.text("abz é.?", max_size=12)
_QUARTERS: Final = st.integers(-80, 80).map(lambda n: n / 4)


def any_json() -> SearchStrategy[Any]:
    scalars = st.none() | st.booleans() | st.integers(-1000, 1000) | _QUARTERS | _WORDS
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=3),
        max_leaves=6,
    )


@st.composite
def tool_parameters(draw: DrawFn) -> Schema:
    """The `parameters` of a tool: a closed object of draft 2020-12, that accepts some arguments."""
    definitions: Schema = {}
    for name in draw(st.lists(st.sampled_from(("place", "span", "a/b")), unique=True, max_size=2)):
        definitions[name] = draw(_schemas(1, definitions.copy()))
    schema = draw(_objects(2, definitions, draw(st.integers(0, 3)), 5)) | {"additionalProperties": False}
    if draw(st.booleans()):
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    if definitions:
        schema["$defs"] = definitions
    return schema


def arguments_for(schema: Mapping[str, Any]) -> SearchStrategy[Any]:
    """Values that a schema accepts. It must be one that `tool_parameters` could have made."""
    return _values(schema, schema.get("$defs", {})).filter(compile_schema(dict(schema)).is_valid)


# Schemas ------------------------------------------------------------------------------------------------------------


@st.composite
def _schemas(draw: DrawFn, depth: int, definitions: Schema) -> Schema:
    shapes = [_strings(), _numbers(), _fixed(), _loose(), st.just({"type": "boolean"})]
    if depth:
        deeper = _schemas(depth - 1, definitions)
        shapes += 2 * [_arrays(deeper), _objects(depth - 1, definitions), _choices(deeper), _conjunctions(deeper)]
    if definitions:
        names = st.sampled_from(sorted(definitions))
        shapes.append(names.map(lambda name: {"$ref": "#/$defs/" + name.replace("/", "~1")}))
    return _annotate(draw, draw(st.one_of(shapes)), definitions)


def _annotate(draw: DrawFn, schema: Schema, definitions: Schema) -> Schema:
    kind = draw(st.integers(0, 5))
    if kind in (1, 2):
        schema = schema | {"description": draw(st.sampled_from(("How many", "A day, or null.", "Which one?")) | _WORDS)}
    if kind in (2, 3):
        schema = schema | {"default": draw(arguments_for(schema | {"$defs": definitions}))}
    if kind == 4:
        schema = schema | {"title": "T", "examples": [1, "a"], "x-order": 3, "deprecated": True, "$comment": "no"}
    return schema


@st.composite
def _strings(draw: DrawFn) -> Schema:
    schema: Schema = {"type": draw(st.sampled_from(("string", ["string", "null"])))}
    match draw(st.integers(0, 3)):
        case 0:
            bounds = {"minLength": st.integers(0, 4), "maxLength": st.integers(4, 9)}
            return schema | draw(st.fixed_dictionaries({}, optional=bounds))
        case 1:
            return schema | {"pattern": draw(st.sampled_from(PATTERNS))}
        case 2:
            return schema | {"format": draw(st.sampled_from(sorted(FORMATS)))}
        case _:
            return schema | {"enum": draw(st.lists(_WORDS, min_size=1, max_size=3, unique=True))}


@st.composite
def _numbers(draw: DrawFn) -> Schema:
    type_ = draw(st.sampled_from(("integer", "number", ["integer", "null"], ["number", "string"])))
    numbers: SearchStrategy[Any] = st.integers(-20, 20) if "integer" in type_ else _QUARTERS
    low, width = draw(numbers), draw(st.integers(12, 40))
    bounds = {
        "minimum": low,
        "maximum": low + width,
        "exclusiveMinimum": low + 1,
        "exclusiveMaximum": low + width - 1,
        "multipleOf": draw(st.sampled_from((1, 2, 5, 0.5))),
    }
    kept = draw(st.lists(st.sampled_from(sorted(bounds)), unique=True))
    return {"type": type_} | {name: bounds[name] for name in kept}


@st.composite
def _fixed(draw: DrawFn) -> Schema:
    scalars = st.none() | st.booleans() | st.integers(-9, 9) | _QUARTERS | _WORDS
    unique = canonical.json.to_string
    return draw(
        st.one_of(
            st.builds(lambda value: {"const": value}, scalars | st.just({"a": [1, None]})),
            st.builds(lambda values: {"enum": values}, st.lists(scalars, min_size=1, max_size=4, unique_by=unique)),
            st.builds(
                lambda values: {"type": "integer", "enum": values},
                st.lists(st.integers(-9, 9), min_size=1, max_size=4, unique=True),
            ),
        )
    )


def _loose() -> SearchStrategy[Schema]:
    """What says little: without a type, a keyword binds only the values that it is about."""
    return st.sampled_from(
        (
            {},
            {"minLength": 2},
            {"maximum": 3},
            {"not": {"const": 3}},
            {"type": "array"},
            {"type": "object"},
            {"type": ["string", "integer", "null"], "minLength": 1, "minimum": 0},
            {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
        )
    )


@st.composite
def _arrays(draw: DrawFn, inner: SearchStrategy[Schema]) -> Schema:
    bounds = {"minItems": st.integers(0, 1), "maxItems": st.integers(2, 4)}
    schema = {"type": "array"} | draw(st.fixed_dictionaries({}, optional=bounds))
    match draw(st.integers(0, 3)):
        case 0:
            return schema | {"items": {"type": "integer"}, "uniqueItems": True}
        case 1:
            prefix = draw(st.lists(inner, min_size=1, max_size=2))
            return schema | {"prefixItems": prefix} | draw(st.sampled_from(({}, {"items": False})))
        case _:
            return schema | {"items": draw(inner)}


@st.composite
def _objects(draw: DrawFn, depth: int, definitions: Schema, least: int = 0, most: int = 3) -> Schema:
    inner = _schemas(depth, definitions)
    properties = draw(st.dictionaries(st.sampled_from(_NAMES), inner, min_size=least, max_size=most))
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    names = sorted(properties)
    required = draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    if required:
        schema["required"] = required
    match draw(st.integers(0, 7)):
        case 0 if len(names) > 1:
            schema[draw(st.sampled_from(("anyOf", "oneOf")))] = [{"required": [name]} for name in names]
        case 1:
            schema |= draw(st.sampled_from(({"maxProperties": 3}, {"minProperties": min(1, len(names))})))
        case 2:
            schema["additionalProperties"] = draw(st.sampled_from((True, {"type": "integer"})))
    return schema


@st.composite
def _choices(draw: DrawFn, inner: SearchStrategy[Schema]) -> Schema:
    if draw(st.booleans()):
        return {"anyOf": draw(st.lists(inner, min_size=1, max_size=3))}
    disjoint: tuple[Schema, ...] = (
        {"type": "string", "minLength": 1, "description": "By name"},
        {"type": "integer", "exclusiveMinimum": 0},
        {"type": "null", "description": "For all of them"},
        {"type": "object", "properties": {"id": {"const": "x"}}, "required": ["id"], "additionalProperties": False},
        {"type": "array", "items": {"type": "number"}, "maxItems": 3},
    )
    return {"oneOf": draw(st.lists(st.sampled_from(disjoint), min_size=1, max_size=3, unique_by=lambda s: s["type"]))}


@st.composite
def _conjunctions(draw: DrawFn, inner: SearchStrategy[Schema]) -> Schema:
    match draw(st.integers(0, 2)):
        case 0:
            return {"type": "string", "allOf": [{"minLength": draw(st.integers(0, 3))}, {"maxLength": 6}]}
        case 1:
            low = draw(st.integers(-5, 5))
            return {"allOf": [{"type": "number", "minimum": low}, {"type": "integer", "minimum": 0, "maximum": 9}]}
        case _:
            parts: list[Schema] = [
                {"type": "object", "properties": {"kind": draw(inner)}, "required": ["kind"]},
                {"type": "object", "properties": {"size": draw(inner)}, "description": "One of two parts"},
            ]
            return {"allOf": parts}


# Values -------------------------------------------------------------------------------------------------------------


def _values(schema: Any, definitions: Mapping[str, Any]) -> SearchStrategy[Any]:
    """Likely values; what a keyword not looked at here forbids is left to the filter of `arguments_for`."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].removeprefix("#/$defs/").replace("~1", "/")]
        return _values(_both(_without(schema, "$ref"), target), definitions)
    if "const" in schema:
        return st.just(schema["const"])
    if "allOf" in schema:
        merged = _without(schema, "allOf")
        for part in schema["allOf"]:
            merged = _both(merged, part)
        return _values(merged, definitions)
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            base = _without(schema, choice)
            return st.one_of([_values(_both(base, branch), definitions) for branch in schema[choice]])
    if "enum" in schema:
        types = schema.get("type", "any")
        return st.sampled_from([value for value in schema["enum"] if types == "any" or value is not None] or [None])
    types = schema.get("type", ())
    if not isinstance(types, str):
        return st.one_of([_values(schema | {"type": type_}, definitions) for type_ in types] or [any_json()])
    return _values_of_type(types, schema, definitions)


def _values_of_type(type_: str, schema: Schema, definitions: Mapping[str, Any]) -> SearchStrategy[Any]:
    match type_:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "string":
            return _strings_for(schema)
        case "integer" | "number":
            return _numbers_for(type_, schema)
        case "array":
            return _arrays_for(schema, definitions)
        case _:
            return _objects_for(schema, definitions)


def _strings_for(schema: Schema) -> SearchStrategy[str]:
    if "pattern" in schema:
        pattern: str = schema["pattern"]
        return st.from_regex(pattern, fullmatch=True)
    if "format" in schema:
        return st.sampled_from(FORMATS[schema["format"]])
    return st.text("abz é", min_size=schema.get("minLength", 0), max_size=schema.get("maxLength", 9))


def _numbers_for(type_: str, schema: Schema) -> SearchStrategy[Any]:
    low = max(schema.get("minimum", -1000), schema.get("exclusiveMinimum", -1000))
    high = min(schema.get("maximum", low + 2000), schema.get("exclusiveMaximum", low + 2000))
    step = schema.get("multipleOf", 0.25)
    if type_ == "integer":
        step = max(1, int(step))
    first, last = int(low // step), int(high // step) + 1
    # Beside the bounds is where an adapter goes wrong.
    steps = st.sampled_from((first, first + 1, first + 2, last - 2, last - 1, last)) | st.integers(first, last)
    return steps.map(lambda n: n * step)


@st.composite
def _arrays_for(draw: DrawFn, schema: Schema, definitions: Mapping[str, Any]) -> list[Any]:
    prefix = schema.get("prefixItems", [])
    rest = schema.get("items", {})
    most = min(schema.get("maxItems", 3), len(prefix) if rest is False else 3)
    length = draw(st.integers(min(schema.get("minItems", 0), most), most))
    unique = canonical.json.to_string if schema.get("uniqueItems") else None
    if unique:
        return draw(st.lists(_values(rest, definitions), min_size=length, max_size=length, unique_by=unique))
    return [draw(_values(prefix[i] if i < len(prefix) else rest, definitions)) for i in range(length)]


@st.composite
def _objects_for(draw: DrawFn, schema: Schema, definitions: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    made = {
        name: draw(_values(inner, definitions))
        for name, inner in properties.items()
        if name in required or draw(st.booleans())
    }
    beyond = schema.get("additionalProperties", True)
    if beyond is not False and draw(st.booleans()):
        made["extra"] = draw(any_json() if beyond is True else _values(beyond, definitions))
    return made


def _without(schema: Mapping[str, Any], keyword: str) -> Schema:
    return {name: value for name, value in schema.items() if name != keyword}


def _both(a: Mapping[str, Any], b: Mapping[str, Any]) -> Schema:
    merged = {**a, **b}
    for name in a.keys() & b.keys():
        if name.startswith("min"):
            merged[name] = max(a[name], b[name])
        elif name == "properties":
            merged[name] = {**a[name], **b[name]}
        elif name == "required":
            merged[name] = [*a[name], *b[name]]
    return merged

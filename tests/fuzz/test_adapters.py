"""No adapter loses what its provider takes, and none tells the model that a valid call is invalid."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from google.genai import types as genai
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.authoring.adapters import ADAPTERS
from antiphon.tools.arguments import compile_schema
from tests.fakes.schemas import PATTERNS, arguments_for, make_spec, tool_parameters

# A busy machine is no reason to fail.
fuzz = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

ACCEPTED: Final = (
    {"type", "format", "description", "nullable", "enum", "anyOf", "items", "minItems", "maxItems"}
    | {"properties", "required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern"}
    | {"minimum", "maximum"}
)

Path = tuple[str, ...]
Nodes = dict[Path, list[Mapping[str, Any]]]


def adapt_for_gemini(parameters: dict[str, Any]) -> dict[str, Any]:
    adapted: dict[str, Any] = ADAPTERS["gemini"](make_spec(parameters)).get("parameters", {})
    return adapted


@fuzz
@given(tool_parameters())
def test_realtime_and_mcp_get_the_parameters_unchanged(parameters: dict[str, Any]) -> None:
    before = copy.deepcopy(parameters)
    spec = make_spec(parameters)
    assert ADAPTERS["openai_realtime"](spec)["parameters"] == before
    assert ADAPTERS["mcp"](spec)["inputSchema"] == before


@fuzz
@given(st.data())
def test_chat_gets_every_property_and_allows_every_valid_call(data: st.DataObject) -> None:
    parameters = data.draw(tool_parameters())
    short = ADAPTERS["openai_chat"](make_spec(parameters))["function"]["parameters"]
    assert collect_source(short).keys() == collect_source(parameters).keys()
    validator = compile_schema(short)
    for _ in range(4):
        assert validator.is_valid(data.draw(arguments_for(parameters)))


@fuzz
@given(tool_parameters())
def test_adapting_is_deterministic_and_does_not_change_its_input(parameters: dict[str, Any]) -> None:
    before = msgspec.json.encode(parameters)
    first = {name: msgspec.json.encode(adapt(make_spec(parameters))) for name, adapt in ADAPTERS.items()}
    second = {name: msgspec.json.encode(adapt(make_spec(parameters))) for name, adapt in ADAPTERS.items()}
    assert msgspec.json.encode(parameters) == before
    assert first == second


@fuzz
@given(tool_parameters())
def test_googles_sdk_accepts_every_gemini_declaration(parameters: dict[str, Any]) -> None:
    declaration = ADAPTERS["gemini"](make_spec(parameters))
    assert genai.FunctionDeclaration(**declaration).model_dump(exclude_none=True, by_alias=True) == declaration


@fuzz
@given(tool_parameters())
def test_gemini_gets_only_what_its_server_accepts(parameters: dict[str, Any]) -> None:
    adapted = adapt_for_gemini(parameters)
    assert not adapted or (adapted["type"] == "OBJECT" and adapted["properties"])
    for nodes in collect_adapted(adapted).values():
        for node in nodes:
            assert node.keys() <= ACCEPTED
            assert "anyOf" not in node or node.keys() == {"anyOf"}
            assert "enum" not in node or (node["type"] == "STRING" and all(node["enum"]))
            assert set(node.get("required", ())) <= node.get("properties", {}).keys()
            assert node.get("type") != "ARRAY" or "items" in node


@fuzz
@given(st.data())
def test_every_valid_call_is_valid_for_gemini_too(data: st.DataObject) -> None:
    parameters = data.draw(tool_parameters())
    validator = compile_schema(read_as_json_schema(adapt_for_gemini(parameters)))
    for _ in range(4):
        assert validator.is_valid(data.draw(arguments_for(parameters)))


@fuzz
@given(tool_parameters())
def test_gemini_loses_no_property_and_no_constraint(parameters: dict[str, Any]) -> None:
    adapted = collect_adapted(adapt_for_gemini(parameters))
    # A tool without properties has no parameters for Gemini, whatever else they say.
    for path, nodes in collect_source(parameters).items() if parameters["properties"] else ():
        for node in nodes:
            check_kept(node, adapted[path])


def check_kept(source: Mapping[str, Any], adapted: list[Mapping[str, Any]]) -> None:
    """Each keyword of a source schema is found in one of the adapted ones at its place, or told in words."""
    told = " ".join(node.get("description", "") for node in adapted)

    def found(keyword: str) -> list[Any]:
        return [node[keyword] for node in adapted if keyword in node]

    if "type" in source:
        declared = [source["type"]] if isinstance(source["type"], str) else source["type"]
        fixed = source.get("enum")
        for type_ in declared:
            if type_ == "null":
                assert any(found("nullable")) or "NULL" in found("type") or (fixed and None not in fixed)
            else:
                # A whole number is a number: a conjunction of both types is the narrower one.
                names = {"NUMBER", "INTEGER"} if type_ == "number" else {type_.upper()}
                assert names & set(found("type"))
    assert source.get("description", "").strip() in told
    if "default" in source:
        assert f"Default: {show(source['default'])}." in told or found("type") == ["NULL"]
    check_values(source, adapted, told)
    check_bounds(source, found, told)
    if "pattern" in source:
        beyond_re2 = source["pattern"] in PATTERNS[2:]
        assert source["pattern"] in (told if beyond_re2 else found("pattern"))
    if "format" in source:
        assert "date-time" in found("format") if source["format"] == "date-time" else "Format: " in told
    if required := source.get("required"):
        assert any(set(required) <= set(names) for names in found("required")) or all(name in told for name in required)
    if "uniqueItems" in source:
        assert "Items must be unique." in told


def check_values(source: Mapping[str, Any], adapted: list[Mapping[str, Any]], told: str) -> None:
    values = source.get("enum", [source["const"]] if "const" in source else [])
    in_words = "" in values
    for value in values:
        if value is None:
            assert any(node.get("nullable") or node.get("type") == "NULL" for node in adapted)
        elif isinstance(value, str) and not in_words:
            assert any(value in node.get("enum", ()) for node in adapted)
        else:
            assert show(value) in told


def check_bounds(source: Mapping[str, Any], found: Any, told: str) -> None:
    for keyword in ("minLength", "minItems", "minProperties", "minimum", "exclusiveMinimum"):
        if keyword in source:
            assert max(found(keyword.replace("exclusiveM", "m")), default=-1e9) >= source[keyword]
    for keyword in ("maxLength", "maxItems", "maxProperties", "maximum", "exclusiveMaximum"):
        if keyword in source:
            assert min(found(keyword.replace("exclusiveM", "m")), default=1e9) <= source[keyword]
    if "multipleOf" in source:
        assert f"Must be a multiple of {show(source['multipleOf'])}." in told


def show(value: object) -> str:
    return msgspec.json.encode(value).decode()


def collect_source(parameters: Mapping[str, Any]) -> Nodes:
    """All schemas that speak of the value at a path, through references and combinations."""
    nodes: Nodes = {}

    def same_place(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        yield schema
        if "$ref" in schema:
            yield from same_place(parameters["$defs"][schema["$ref"].removeprefix("#/$defs/").replace("~1", "/")])
        for keyword in ("allOf", "anyOf", "oneOf"):
            for part in schema.get(keyword, ()):
                yield from same_place(part)

    def visit(schema: Any, path: Path) -> None:
        if isinstance(schema, bool):
            return
        for node in same_place(schema):
            nodes.setdefault(path, []).append(node)
            for name, inner in node.get("properties", {}).items():
                visit(inner, (*path, name))
            for inner in (*node.get("prefixItems", ()), node.get("items", True)):
                visit(inner, (*path, "[]"))

    visit(parameters, ())
    return nodes


def collect_adapted(adapted: Mapping[str, Any]) -> Nodes:
    nodes: Nodes = {}

    def visit(node: Mapping[str, Any], path: Path) -> None:
        nodes.setdefault(path, []).append(node)
        for name, inner in node.get("properties", {}).items():
            visit(inner, (*path, name))
        if "items" in node:
            visit(node["items"], (*path, "[]"))
        for branch in node.get("anyOf", ()):
            visit(branch, path)

    visit(adapted, ())
    return nodes


def read_as_json_schema(adapted: Mapping[str, Any]) -> dict[str, Any]:
    schema = {key: value for key, value in adapted.items() if key not in ("nullable", "description")}
    if "type" in schema:
        schema["type"] = schema["type"].lower()
    if "items" in schema:
        schema["items"] = read_as_json_schema(schema["items"])
    if "properties" in schema:
        schema["properties"] = {name: read_as_json_schema(inner) for name, inner in schema["properties"].items()}
    if "anyOf" in schema:
        schema["anyOf"] = [read_as_json_schema(branch) for branch in schema["anyOf"]]
    return {"anyOf": [schema, {"type": "null"}]} if adapted.get("nullable") else schema

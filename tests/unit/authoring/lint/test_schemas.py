from collections.abc import Callable
from typing import Any

import pytest

from antiphon.authoring.problems import Problem, Severity

Lint = Callable[..., tuple[Problem, ...]]


def parameters(properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    named = {"name": {"type": "string"}, **(properties or {})}
    return {"type": "object", "additionalProperties": False, "properties": named, **more}


def fields(problems: tuple[Problem, ...], severity: Severity = Severity.ERROR) -> list[str]:
    """In schema.json alone: a wrong schema may refuse the example in doc.md as well."""
    found = [problem for problem in problems if problem.file == "schema.json"]
    return [problem.field for problem in found if problem.severity is severity]


def test_parameters_are_an_object(lint: Lint) -> None:
    assert fields(lint(parameters={**parameters(), "type": "string"})) == ["parameters.type"]


@pytest.mark.parametrize("value", [None, True, {}])
def test_parameters_must_refuse_unknown_properties(lint: Lint, value: Any) -> None:
    schema = parameters()
    del schema["additionalProperties"]
    if value is not None:
        schema["additionalProperties"] = value
    assert fields(lint(parameters=schema)) == ["parameters.additionalProperties"]


@pytest.mark.parametrize("nesting", [lambda inner: inner, lambda inner: {"type": "array", "items": inner}])
def test_an_open_object_inside_is_a_warning(lint: Lint, nesting: Callable[[Any], Any]) -> None:
    inner = {"type": "object", "properties": {"x": {"type": "string"}}}
    found = lint(parameters=parameters({"inner": nesting(inner)}))
    assert [field.rpartition(".")[2] for field in fields(found, Severity.WARNING)] == ["additionalProperties"]
    assert fields(found) == []


def test_an_object_of_any_shape_may_be_open(lint: Lint) -> None:
    assert lint(parameters=parameters({"anything": {"type": "object"}})) == ()


def test_every_mistake_in_a_schema_is_reported(lint: Lint) -> None:
    schema = parameters(
        {
            "a": {"type": "strin"},
            "b": {"type": "string", "format": "colour"},
            "c": {"type": "string", "pattern": "("},
            "d": {"type": "integer", "minimum": "1"},
        }
    )
    assert sorted(fields(lint(parameters=schema))) == [
        "parameters.properties.a.type",
        "parameters.properties.b.format",
        "parameters.properties.c.pattern",
        "parameters.properties.d.minimum",
    ]


@pytest.mark.parametrize("name", ["two words", "1st", "ünder", "a-b", "n" * 65])
def test_property_names_must_be_valid_for_every_provider(lint: Lint, name: str) -> None:
    assert fields(lint(parameters=parameters({name: {"type": "string"}}))) == [f"parameters.properties.{name}"]


def test_a_property_needs_more_than_true(lint: Lint) -> None:
    assert fields(lint(parameters=parameters({"anything": True}))) == ["parameters.properties.anything"]


def test_required_names_must_be_properties(lint: Lint) -> None:
    problem, _ = lint(parameters=parameters(required=["nme"]))
    assert problem.field == "parameters.required"
    assert problem.message == '"nme" is required, but not among the properties. Did you mean "name"?'


@pytest.mark.parametrize("reference", ["#/$defs/nothing", "#/properties/name/nothing", "#nothing", "#/required/7"])
def test_a_dangling_reference_is_reported(lint: Lint, reference: str) -> None:
    schema = parameters({"other": {"$ref": reference}}, required=["name"])
    assert fields(lint(parameters=schema)) == ["parameters.properties.other.$ref"]


@pytest.mark.parametrize("reference", ["https://example.com/schema.json", "other.json#/x", "file:///etc/passwd"])
def test_a_reference_to_another_file_is_reported(lint: Lint, reference: str) -> None:
    schema = parameters({"other": {"$ref": reference}})
    assert fields(lint(parameters=schema)) == ["parameters.properties.other.$ref"]


@pytest.mark.parametrize(
    "reference", ["#/$defs/size", "#/$defs/a~1b", "#/$defs/per%20cent", "#sized", "#/properties/name"]
)
def test_a_reference_within_the_file_resolves(lint: Lint, reference: str) -> None:
    definitions = {
        "size": {"type": "integer"},
        "a/b": {"type": "integer"},
        "per cent": {"type": "integer"},
        "anchored": {"$anchor": "sized", "type": "integer"},
    }
    assert lint(parameters=parameters({"other": {"$ref": reference}}, **{"$defs": definitions})) == ()


def test_a_reference_in_an_unused_definition_is_checked_too(lint: Lint) -> None:
    schema = parameters(**{"$defs": {"unused": {"$ref": "#/$defs/nothing"}}})
    assert fields(lint(parameters=schema)) == ["parameters.$defs.unused.$ref"]


def test_a_value_that_looks_like_a_reference_is_not_one(lint: Lint) -> None:
    assert lint(parameters=parameters({"link": {"type": "object", "default": {"$ref": "#/nothing"}}})) == ()


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "string", "default": 3}, "default"),
        ({"type": "integer", "maximum": 5, "default": 6}, "default"),
        ({"type": "string", "format": "date", "default": "tomorrow"}, "default"),
        ({"type": "array", "items": {"type": "integer"}, "default": [1, "2"]}, "default.1"),
        ({"type": "array", "items": {"type": "integer", "default": "1"}}, "items.default"),
        ({"$ref": "#/$defs/size", "default": 6}, "default"),
        (
            {"type": "object", "additionalProperties": False, "properties": {"x": {"type": "null", "default": 0}}},
            "properties.x.default",
        ),
    ],
)
def test_a_default_satisfies_its_own_schema(lint: Lint, schema: dict[str, Any], place: str) -> None:
    found = lint(parameters=parameters({"other": schema}, **{"$defs": {"size": {"maximum": 5}}}))
    assert fields(found) == [f"parameters.properties.other.{place}"]


def test_outputs_are_a_schema(lint: Lint) -> None:
    outputs = {"type": "object", "properties": {"a": {"type": "nothing"}, "b": {"$ref": "#/$defs/c"}}}
    assert fields(lint(outputs=outputs)) == ["outputs.properties.a.type", "outputs.properties.b.$ref"]


def test_outputs_may_be_open_and_need_not_be_an_object(lint: Lint) -> None:
    assert lint(outputs={"type": "array", "items": {"type": "object", "properties": {"a": {}}}}) == ()

from typing import Any

import msgspec
import pytest

from antiphon.authoring.diff import Change, Comparison, Kind, compare
from antiphon.tools.errors import RegistryError
from tests.fakes.schemas import KB_SEARCH_PARAMETERS, make_spec

STRING = {"type": "string"}


def make_registry(*specs: dict[str, Any], digest: str = "d1", version: str = "1.0.0000") -> dict[str, Any]:
    return {"version": version, "tools": [{"spec": spec, "digest": digest} for spec in specs]}


def make_schema(**changes: Any) -> dict[str, Any]:
    """A schema.json, with some of its fields changed."""
    schema: dict[str, Any] = msgspec.to_builtins(make_spec())
    return schema | changes


def closed(properties: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **rest}


def changes_of(old: dict[str, Any], new: dict[str, Any]) -> list[Change]:
    comparison = compare(make_registry(make_schema(**old)), make_registry(make_schema(**new)))
    return [change for tool in comparison.tools for change in tool.changes]


def change_parameter(old: Any, new: Any) -> list[Change]:
    return changes_of({"parameters": closed({"p": old})}, {"parameters": closed({"p": new})})


def test_the_same_registry_has_no_changes() -> None:
    registry = make_registry(make_schema())
    assert compare(registry, registry) == Comparison("1.0.0000", "1.0.0000", ())


def test_no_change_breaks_nothing() -> None:
    assert not compare(make_registry(make_schema()), make_registry(make_schema())).breaking


def test_a_new_tool_breaks_nothing() -> None:
    (tool,) = compare(make_registry(), make_registry(make_schema())).tools
    assert (tool.tool_id, tool.kind, tool.breaking) == ("kb_search", Kind.ADDED, False)


def test_a_removed_tool_breaks_its_callers() -> None:
    (tool,) = compare(make_registry(make_schema()), make_registry()).tools
    assert (tool.tool_id, tool.kind, tool.breaking) == ("kb_search", Kind.REMOVED, True)


def test_one_broken_tool_breaks_the_registry() -> None:
    old = make_registry(make_schema(), make_schema(toolId="kb_get"))
    new = make_registry(make_schema(), make_schema(toolId="kb_add"))
    assert compare(old, new).breaking


def test_changes_are_listed_by_tool_id() -> None:
    names = ["b", "c", "a"]
    comparison = compare(make_registry(), make_registry(*(make_schema(toolId=name) for name in names)))
    assert [tool.tool_id for tool in comparison.tools] == ["a", "b", "c"]


def test_the_versions_are_reported() -> None:
    comparison = compare(make_registry(version="1.0.aaaa"), make_registry(version="1.0.bbbb"))
    assert (comparison.old_version, comparison.new_version) == ("1.0.aaaa", "1.0.bbbb")


def test_a_changed_handler_is_reported_and_breaks_nothing() -> None:
    comparison = compare(make_registry(make_schema()), make_registry(make_schema(), digest="d2"))
    assert [(change.field, change.breaking) for change in comparison.tools[0].changes] == [("files", False)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "integer", "maximum": 10}, {"type": "integer", "maximum": 8}),
        ({"type": "integer"}, {"type": "integer", "multipleOf": 2}),
        ({"type": "number", "minimum": 0}, {"type": "number", "exclusiveMinimum": 0}),
        ({"type": "string"}, {"type": "string", "minLength": 1}),
        ({"type": "string"}, {"type": "string", "format": "date"}),
        ({"type": "string"}, {"type": "string", "pattern": "^[a-z]+$"}),
        ({"type": "string"}, {"enum": ["a", "b"]}),
        ({"enum": ["a", "b", "c"]}, {"enum": ["a", "b"]}),
        ({"type": ["string", "null"]}, {"type": "string"}),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "string"}),
        ({}, {"type": "string"}),
        ({"type": "array", "items": STRING}, {"type": "array", "items": STRING, "maxItems": 1}),
        ({"type": "array", "items": STRING}, {"type": "array", "items": {"enum": ["a"]}}),
        ({"type": "array", "items": STRING}, {"type": "array", "items": STRING, "minItems": 1}),
        ({"type": "array", "items": STRING}, {"type": "array", "items": STRING, "uniqueItems": True}),
        (closed({"a": STRING, "b": STRING}), closed({"a": STRING})),
        (closed({"a": STRING}), closed({"a": STRING}, required=["a"])),
        ({"type": "object"}, closed({})),
    ],
)
def test_a_narrower_parameter_breaks(old: Any, new: Any) -> None:
    told = change_parameter(old, new)
    assert [(change.field, change.breaking) for change in told] == [("parameters", True)]
    assert told[0].sentence.startswith("p")


def test_a_changed_parameter_is_shown_before_and_after() -> None:
    told = change_parameter({"type": "integer", "maximum": 10}, {"type": "integer", "maximum": 8})
    sentence = 'p is {"type":"integer","maximum":8}; it was {"type":"integer","maximum":10}.'
    assert told == [Change("parameters", True, sentence)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "integer", "maximum": 8}, {"type": "integer", "maximum": 10}),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}),
        ({"type": "string", "format": "email"}, {"type": "string"}),
        (closed({"a": STRING}, required=["a"]), closed({"a": STRING})),
    ],
)
def test_a_wider_parameter_breaks_nothing(old: Any, new: Any) -> None:
    assert [(change.field, change.breaking) for change in change_parameter(old, new)] == [("parameters", False)]


def test_a_shifted_range_breaks() -> None:
    told = change_parameter({"type": "integer", "minimum": 1}, {"type": "integer", "maximum": 9})
    assert [change.breaking for change in told] == [True]


def test_every_broken_parameter_of_a_tool_is_reported() -> None:
    old = closed({"a": {"type": "integer"}, "b": STRING, "c": STRING})
    new = closed({"a": {"type": "integer", "minimum": 1}, "b": {"enum": ["x"]}, "c": STRING})
    told = [change.sentence for change in changes_of({"parameters": old}, {"parameters": new})]
    assert len(told) == 2
    assert told[0].startswith("a is ")
    assert told[1].startswith("b is ")


def test_a_new_optional_parameter_breaks_nothing() -> None:
    new = closed({"p": STRING, "q": {"type": "string", "default": "x"}})
    told = changes_of({"parameters": closed({"p": STRING})}, {"parameters": new})
    assert [change.breaking for change in told] == [False]


def test_a_new_required_parameter_breaks() -> None:
    new = closed({"p": STRING, "q": STRING}, required=["q"])
    told = changes_of({"parameters": closed({"p": STRING})}, {"parameters": new})
    assert told == [Change("parameters", True, "q is new and required.")]


@pytest.mark.parametrize("nest", [lambda schema: schema, lambda schema: closed({"inner": schema})])
def test_a_new_required_parameter_with_a_default_breaks_nothing(nest: Any) -> None:
    old, new = closed({}), closed({"q": {"type": "string", "default": "x"}}, required=["q"])
    told = changes_of({"parameters": nest(old)}, {"parameters": nest(new)})
    assert [change.breaking for change in told] == [False]


def test_an_equivalent_schema_is_not_a_change() -> None:
    old = {"type": "object", "properties": {"p": {"enum": ["a", "b"]}}, "additionalProperties": False}
    new = {
        "$defs": {"letter": {"anyOf": [{"const": "b"}, {"const": "a"}]}},
        **closed({"p": {"$ref": "#/$defs/letter", "description": "A letter", "title": "P"}}),
    }
    assert changes_of({"parameters": old}, {"parameters": new}) == []


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ({"default": 5}, {"default": 3}, "The default of p is 3; it was 5."),
        ({}, {"default": 3}, "The default of p is 3; it was not there."),
        ({"default": 5}, {}, "The default of p is gone; it was 5."),
        ({"default": None}, {"default": 0}, "The default of p is 0; it was null."),
        ({"default": True}, {"default": 1}, "The default of p is 1; it was true."),
    ],
)
def test_another_default_breaks_those_who_rely_on_it(old: Any, new: Any, sentence: str) -> None:
    assert change_parameter(old, new) == [Change("parameters", True, sentence)]


def test_a_default_of_a_nested_object_is_compared() -> None:
    told = change_parameter(closed({"n": {"default": 1}}), closed({"n": {"default": 2}}))
    assert told == [Change("parameters", True, "The default of p.n is 2; it was 1.")]


def test_a_numerically_equal_default_is_not_a_change() -> None:
    assert change_parameter({"default": 1}, {"default": 1.0}) == []


def test_an_undecidable_change_counts_as_breaking() -> None:
    told = change_parameter({"type": "array"}, {"type": "array", "contains": STRING, "maxContains": 3})
    assert told[0].breaking
    assert told[0].sentence.endswith(" It is not known whether this breaks anything.")


def test_a_rule_for_several_parameters_together_breaks_too() -> None:
    both = {"p": STRING, "q": STRING}
    told = changes_of({"parameters": closed(both)}, {"parameters": closed(both, anyOf=[{"required": ["p"]}])})
    sentence = "As a whole they do not fit those who relied on the old ones."
    assert told == [Change("parameters", True, sentence)]


def test_a_long_schema_is_truncated() -> None:
    told = change_parameter({"enum": ["a" * 900]}, {"enum": ["b"]})
    assert told[0].sentence.endswith("aaa….")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, {"type": "object"}, [False]),
        ({"type": "object"}, None, [True]),
        (closed({"a": STRING}), closed({"a": STRING, "b": STRING}), [True]),
        (closed({"a": STRING, "b": STRING}), closed({"a": STRING}), [False]),
        (closed({"a": STRING}, required=["a"]), closed({"a": STRING}), [True]),
        (closed({"a": STRING}), closed({"a": {"type": "integer"}}), [True]),
        (closed({"a": STRING}), closed({"a": STRING | {"description": "A"}}), []),
    ],
)
def test_results_that_readers_need_not_expect_break_them(old: Any, new: Any, expected: list[bool]) -> None:
    told = changes_of({"outputs": old}, {"outputs": new})
    assert [(change.field, change.breaking) for change in told] == [("outputs", breaking) for breaking in expected]


@pytest.mark.parametrize(
    ("field", "old", "new", "breaking"),
    [
        ("allowedModes", ["text", "voice"], ["text"], True),
        ("allowedModes", ["text"], ["text", "voice"], False),
        ("requiresConfirmation", False, True, True),
        ("requiresConfirmation", True, False, False),
        ("requiresAuth", False, True, True),
        ("requiresAuth", True, False, False),
        ("availability", None, "user != 'guest'", True),
        ("availability", "user != 'guest'", None, False),
        ("rateLimit", None, {"calls": 5, "window_s": 60}, True),
        ("rateLimit", {"calls": 5, "window_s": 60}, {"calls": 4, "window_s": 60}, True),
        ("rateLimit", {"calls": 5, "window_s": 60}, {"calls": 5, "window_s": 90}, True),
        ("rateLimit", {"calls": 5, "window_s": 60}, {"calls": 6, "window_s": 60}, False),
        ("rateLimit", {"calls": 5, "window_s": 60}, None, False),
        ("category", "utility", "retrieval", True),
        ("category", "action", "utility", True),
        ("category", "retrieval", "utility", False),
        ("category", "retrieval", "action", False),
        ("sideEffects", "read_only", "writes", True),
        ("sideEffects", "none", "read_only", False),
        ("sideEffects", "writes", "none", False),
        ("idempotent", True, False, True),
        ("idempotent", False, True, False),
        ("latencyBudgetMs", 800, 500, True),
        ("latencyBudgetMs", 500, 800, False),
        ("timeoutMs", 30_000, 10_000, False),
        ("tags", [], ["untrusted"], False),
        ("description", "Searches.", "Looks for it.", False),
    ],
)
def test_a_field_breaks_where_calls_that_went_well_may_fail(field: str, old: Any, new: Any, breaking: bool) -> None:
    told = changes_of({field: old}, {field: new})
    assert [(change.field, change.breaking) for change in told] == [(field, breaking)]


@pytest.mark.parametrize(("field", "breaking"), [("latencyBudgetMs", False), ("timeoutMs", True)])
def test_an_action_is_stopped_at_its_timeout_and_not_at_its_budget(field: str, breaking: bool) -> None:
    action = {"category": "action"}
    assert [change.breaking for change in changes_of({**action, field: 900}, {**action, field: 100})] == [breaking]


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"version": "1", "tools": [{"digest": "d"}]},
        make_registry(make_schema(colour="red")),
        make_registry(make_schema(parameters={"type": "no such type"})),
        make_registry(make_schema(outputs={"$ref": "#/$defs/nothing"})),
    ],
)
def test_a_file_that_is_not_a_registry_is_refused(damaged: dict[str, Any]) -> None:
    with pytest.raises(RegistryError, match=r"^The new registry cannot be compared: .+\. Build it"):
        compare(make_registry(), damaged)


def test_comparing_leaves_the_registries_as_they_were() -> None:
    old, new = make_registry(make_schema()), make_registry(make_schema(parameters=closed({"query": STRING})))
    before = msgspec.json.encode((old, new))
    compare(old, new)
    assert msgspec.json.encode((old, new)) == before


def test_a_search_that_loses_a_filter_is_broken() -> None:
    filters = KB_SEARCH_PARAMETERS["properties"]["filters"]
    fewer = {name: schema for name, schema in filters["properties"].items() if name != "tags"}
    properties = KB_SEARCH_PARAMETERS["properties"] | {"filters": filters | {"properties": fewer}}
    told = changes_of({}, {"parameters": KB_SEARCH_PARAMETERS | {"properties": properties}})
    assert [change.breaking for change in told] == [True]
    assert told[0].sentence == "filters.tags is gone."

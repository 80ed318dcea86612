from typing import Any

import pytest
from google.genai import types

from antiphon.authoring.gemini import adapt
from antiphon.authoring.problems import BuildError
from tests.fakes.schemas import make_spec

MOMENT = {"type": "STRING", "format": "date-time"}


def adapt_property(schema: dict[str, Any] | bool, **root: Any) -> Any:
    """What becomes of one property; None if it is left out."""
    parameters = {"type": "object", "properties": {"p": schema, "other": {"type": "boolean"}}, **root}
    return adapt(make_spec(parameters))["parameters"]["properties"].get("p")


def test_a_search_keeps_its_nested_filters() -> None:
    assert adapt(make_spec()) == {
        "name": "kb_search",
        "description": "Searches the knowledge base.",
        "parameters": {
            "type": "OBJECT",
            "properties": {
                "query": {"type": "STRING", "minLength": 1, "maxLength": 500, "description": "What to look for"},
                "namespace": {
                    "type": "STRING",
                    "enum": ["studio", "personal", "public"],
                    "description": 'Default: "studio".',
                },
                "filters": {
                    "type": "OBJECT",
                    "description": "Leaves out what does not match.",
                    "properties": {
                        "type": {
                            "type": "STRING",
                            "nullable": True,
                            "description": "Kind of record, or null for all",
                        },
                        "tags": {
                            "type": "ARRAY",
                            "items": {"type": "STRING"},
                            "maxItems": 5,
                            "description": "Items must be unique.",
                        },
                        "date_range": {
                            "type": "OBJECT",
                            "properties": {"start": MOMENT | {"description": "From then on"}, "end": MOMENT},
                            "required": ["start"],
                        },
                    },
                },
                "top_k": {"type": "INTEGER", "minimum": 1, "maximum": 10, "description": "Default: 5."},
            },
            "required": ["query"],
        },
    }


def test_googles_sdk_reads_back_what_it_was_given() -> None:
    declaration = adapt(make_spec())
    assert types.FunctionDeclaration(**declaration).model_dump(exclude_none=True, by_alias=True) == declaration


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "object", "additionalProperties": False},
        {"type": "object", "properties": {}, "additionalProperties": False},
        {"type": "object", "properties": {"never": False}},
    ],
)
def test_a_tool_without_properties_has_no_parameters(parameters: dict[str, Any]) -> None:
    assert adapt(make_spec(parameters)) == {"name": "kb_search", "description": "Searches the knowledge base."}


@pytest.mark.parametrize(
    ("schema", "adapted"),
    [
        ({"const": "a"}, {"type": "STRING", "enum": ["a"]}),
        ({"enum": ["a", None]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
        ({"type": "string", "enum": ["a", None, 3]}, {"type": "STRING", "enum": ["a"]}),
        ({"enum": ["", "a"]}, {"type": "STRING", "description": 'One of: "", "a".'}),
        ({"enum": [1, 2, 3]}, {"type": "INTEGER", "description": "One of: 1, 2, 3."}),
        ({"enum": [1, 2.5]}, {"type": "NUMBER", "description": "One of: 1, 2.5."}),
        ({"type": "integer", "enum": [1.0, 2.5]}, {"type": "INTEGER", "description": "One of: 1.0."}),
        ({"const": True}, {"type": "BOOLEAN", "description": "One of: true."}),
        ({"const": None}, {"type": "NULL"}),
        ({"const": {"a": 1}}, {"type": "OBJECT", "description": 'One of: {"a":1}.'}),
        ({"const": [1]}, {"type": "ARRAY", "items": {}, "description": "One of: [1]."}),
        ({"const": 1, "enum": [1.0, 2]}, {"type": "INTEGER", "description": "One of: 1."}),
    ],
)
def test_an_enum_contains_strings_and_other_values_are_described(
    schema: dict[str, Any], adapted: dict[str, Any]
) -> None:
    assert adapt_property(schema) == adapted


@pytest.mark.parametrize(
    ("schema", "adapted"),
    [
        ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
        ({"type": "string", "format": "email"}, {"type": "STRING", "description": "Format: email."}),
        ({"type": "integer", "format": "int64"}, {"type": "INTEGER", "format": "int64"}),
        ({"type": "number", "format": "float"}, {"type": "NUMBER", "format": "float"}),
        ({"type": "number", "format": "email"}, {"type": "NUMBER"}),
        ({"type": "string", "pattern": "^[a-z]+$"}, {"type": "STRING", "pattern": "^[a-z]+$"}),
        ({"type": "string", "pattern": "^(?!x)a"}, {"type": "STRING", "description": "Pattern: `^(?!x)a`."}),
        ({"type": "string", "pattern": r"(a)\1"}, {"type": "STRING", "description": r"Pattern: `(a)\1`."}),
    ],
)
def test_formats_and_patterns_that_google_refuses_are_described(
    schema: dict[str, Any], adapted: dict[str, Any]
) -> None:
    assert adapt_property(schema) == adapted


@pytest.mark.parametrize(
    ("schema", "adapted"),
    [
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "INTEGER", "minimum": 1}),
        ({"type": "integer", "exclusiveMaximum": 2.5}, {"type": "INTEGER", "maximum": 2}),
        ({"type": "integer", "minimum": 5, "exclusiveMinimum": 0}, {"type": "INTEGER", "minimum": 5}),
        (
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "NUMBER", "minimum": 0, "description": "Must be greater than 0."},
        ),
        (
            {"type": "number", "maximum": 9, "exclusiveMaximum": 9},
            {"type": "NUMBER", "maximum": 9, "description": "Must be less than 9."},
        ),
        ({"type": "number", "maximum": 1, "exclusiveMaximum": 9}, {"type": "NUMBER", "maximum": 1}),
        ({"type": "integer", "multipleOf": 5}, {"type": "INTEGER", "description": "Must be a multiple of 5."}),
    ],
)
def test_bounds_are_as_tight_as_gemini_can_express(schema: dict[str, Any], adapted: dict[str, Any]) -> None:
    assert adapt_property(schema) == adapted


def test_annotations_for_people_and_tools_are_dropped() -> None:
    annotations = {"title": "T", "$comment": "c", "readOnly": True, "deprecated": True, "x-order": 1, "$id": "urn:a"}
    assert adapt_property({"type": "string", **annotations}) == {"type": "STRING"}


def test_a_property_may_have_the_name_of_a_keyword() -> None:
    names = ("title", "default", "$ref", "const", "x-tag", "properties")
    schema = {"type": "object", "properties": {name: {"type": "boolean"} for name in names}}
    assert adapt_property(schema)["properties"] == {name: {"type": "BOOLEAN"} for name in names}


def test_values_that_look_like_references_are_values() -> None:
    assert adapt_property({"const": {"$ref": "#/nowhere"}})["description"] == 'One of: {"$ref":"#/nowhere"}.'


def test_notes_follow_the_description_as_sentences() -> None:
    schema = {"type": "integer", "description": "How many ", "default": 5, "multipleOf": 5, "examples": [5, 10]}
    told = "How many. Must be a multiple of 5. Default: 5. Examples: 5, 10."
    assert adapt_property(schema)["description"] == told


def test_constraints_unknown_to_openapi_are_described_as_json_schema() -> None:
    told = 'Must also match the JSON Schema {"not":{"const":3}}.'
    assert adapt_property({"type": "integer", "not": {"const": 3}}) == {"type": "INTEGER", "description": told}


def test_the_values_of_a_map_are_described() -> None:
    told = 'Must also match the JSON Schema {"additionalProperties":{"type":"integer"}}.'
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert adapt_property(schema) == {"type": "OBJECT", "description": told}


def test_a_choice_of_types_stands_alone_and_each_branch_is_described() -> None:
    assert adapt_property({"type": ["string", "integer", "null"], "description": "Who", "minLength": 1}) == {
        "anyOf": [
            {"type": "STRING", "minLength": 1, "description": "Who", "nullable": True},
            {"type": "INTEGER", "description": "Who", "nullable": True},
        ]
    }


def test_one_of_becomes_any_of() -> None:
    branches = [{"type": "string"}, {"type": "boolean"}]
    assert adapt_property({"oneOf": branches}) == {"anyOf": [{"type": "STRING"}, {"type": "BOOLEAN"}]}


def test_equal_branches_are_merged() -> None:
    assert adapt_property({"anyOf": [{"type": "string"}, {"type": "string", "title": "Other"}]}) == {"type": "STRING"}


def test_a_choice_with_null_is_nullable_and_says_what_null_means() -> None:
    schema = {"anyOf": [{"type": "integer"}, {"type": "null", "description": "No limit"}]}
    assert adapt_property(schema) == {"type": "INTEGER", "nullable": True, "description": "If null: No limit"}


def test_a_choice_of_nulls_keeps_what_each_says() -> None:
    schema = {"anyOf": [{"type": "null", "description": "None"}, {"const": None, "default": None}]}
    assert adapt_property(schema) == {"type": "NULL", "description": "None. Default: null."}


def test_keywords_beside_a_choice_hold_in_each_branch() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    both = {"a": {"type": "STRING"}, "b": {"type": "STRING"}}
    assert adapt_property(schema) == {
        "anyOf": [
            {"type": "OBJECT", "properties": both, "required": ["a"]},
            {"type": "OBJECT", "properties": both, "required": ["b"]},
        ]
    }


def test_a_keyword_without_a_type_binds_only_the_values_that_it_is_about() -> None:
    branches = adapt_property({"minLength": 3})["anyOf"]
    assert {"type": "STRING", "minLength": 3, "nullable": True} in branches
    assert [branch["type"] for branch in branches] == ["STRING", "NUMBER", "ARRAY", "OBJECT", "BOOLEAN"]


def test_anything_stays_anything() -> None:
    assert adapt_property({"description": "Whatever"}) == {"description": "Whatever"}


def test_a_property_that_accepts_nothing_is_left_out() -> None:
    assert adapt_property({"allOf": [{"type": "string"}, {"type": "integer"}]}) is None


def test_a_branch_that_accepts_nothing_is_left_out() -> None:
    impossible = {"type": "object", "properties": {"a": False}, "required": ["a"]}
    assert adapt_property({"anyOf": [{"type": "string"}, impossible]}) == {"type": "STRING"}


@pytest.mark.parametrize(
    ("parts", "adapted"),
    [
        ([{"type": "number", "minimum": 1}, {"type": "integer", "minimum": 3}], {"type": "INTEGER", "minimum": 3}),
        ([{"type": "string", "maxLength": 9}, {"maxLength": 4}], {"type": "STRING", "maxLength": 4}),
        ([{"enum": ["a", "b"]}, {"enum": ["b", "c"]}], {"type": "STRING", "enum": ["b"]}),
        (
            [{"type": "string", "pattern": "a"}, {"pattern": "b"}],
            {"type": "STRING", "pattern": "a", "description": 'Must also match the JSON Schema {"pattern":"b"}.'},
        ),
        (
            [{"type": "array", "items": {"type": "string"}}, {"items": {"minLength": 2}}],
            {"type": "ARRAY", "items": {"type": "STRING", "minLength": 2}},
        ),
        (
            [{"properties": {"a": {"type": "number"}}, "type": "object"}, {"properties": {"a": {"minimum": 2}}}],
            {"type": "OBJECT", "properties": {"a": {"type": "NUMBER", "minimum": 2}}},
        ),
        (
            [
                {"type": "object", "properties": {"a": {"type": "boolean"}}, "additionalProperties": False},
                {"properties": {"b": {"type": "boolean"}}},
            ],
            {"type": "OBJECT", "properties": {"a": {"type": "BOOLEAN"}}},
        ),
    ],
)
def test_all_of_is_merged(parts: list[dict[str, Any]], adapted: dict[str, Any]) -> None:
    assert adapt_property({"allOf": parts}) == adapted


def test_merged_tuples_keep_what_each_says_of_a_place() -> None:
    parts = [{"prefixItems": [{"type": "string"}], "items": False}, {"items": {"minLength": 2}}]
    adapted = adapt_property({"type": "array", "allOf": parts})
    assert adapted["items"] == {"type": "STRING", "minLength": 2}


def test_choices_that_would_multiply_endlessly_are_described() -> None:
    choices = [{"anyOf": [{"minLength": n}, {"maxLength": n}]} for n in range(1, 9)]
    adapted = adapt_property({"type": "string", "allOf": choices})
    assert len(adapted["anyOf"]) <= 32
    assert '{"anyOf":[{"minLength":8},{"maxLength":8}]}' in adapted["anyOf"][0]["description"]


def test_the_items_of_a_tuple_may_be_any_of_its_parts() -> None:
    adapted = adapt_property(
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}
    )
    told = 'Must also match the JSON Schema {"prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}.'
    items = {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}
    assert adapted == {"type": "ARRAY", "items": items, "maxItems": 2, "description": told}


def test_one_and_true_are_not_the_same_part_of_a_tuple() -> None:
    adapted = adapt_property({"type": "array", "prefixItems": [{"const": 1}, {"const": True}], "items": False})
    assert [branch["type"] for branch in adapted["items"]["anyOf"]] == ["INTEGER", "BOOLEAN"]


def test_a_tuple_that_may_go_on_takes_anything_after_its_parts() -> None:
    assert adapt_property({"type": "array", "prefixItems": [{"type": "string"}]})["items"] == {
        "anyOf": [{"type": "STRING"}, {}]
    }


def test_an_array_always_has_items() -> None:
    assert adapt_property({"type": "array"}) == {"type": "ARRAY", "items": {}}


def test_an_array_that_must_be_empty_says_so() -> None:
    assert adapt_property({"type": "array", "items": False}) == {"type": "ARRAY", "items": {}, "maxItems": 0}


def test_a_required_name_that_is_not_a_property_is_described() -> None:
    told = 'Must also match the JSON Schema {"required":["b"]}.'
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a", "b"]}
    assert adapt_property(schema) == {
        "type": "OBJECT",
        "properties": {"a": {"type": "BOOLEAN"}},
        "required": ["a"],
        "description": told,
    }


def test_alternatives_of_the_root_become_one_object_that_takes_them_all() -> None:
    choices = [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"minLength": 2}}}]
    parameters = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}},
        "required": ["c"],
        "maxProperties": 2,
        "additionalProperties": False,
        "anyOf": choices,
    }
    assert adapt(make_spec(parameters))["parameters"] == {
        "type": "OBJECT",
        "properties": {
            "a": {"type": "STRING"},
            "b": {"anyOf": [{"type": "STRING"}, {"type": "STRING", "minLength": 2}]},
            "c": {"type": "STRING"},
        },
        "required": ["c"],
        "maxProperties": 2,
        "description": (
            'Must also match the JSON Schema {"anyOf":[{"required":["a"]},'
            '{"required":["b"],"properties":{"b":{"minLength":2}}}]}.'
        ),
    }


def test_an_alternative_of_the_root_that_is_open_takes_any_value_there() -> None:
    open_choices = [{"properties": {"a": {"type": "string"}}}, {"patternProperties": {"^a$": {"type": "boolean"}}}]
    adapted = adapt(make_spec({"type": "object", "anyOf": open_choices}))
    assert adapted["parameters"]["properties"] == {"a": {"anyOf": [{"type": "STRING"}, {}]}}


def test_a_root_without_a_type_is_an_object() -> None:
    adapted = adapt(make_spec({"properties": {"a": {"type": "string"}}}))
    assert adapted["parameters"] == {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}


def test_a_reference_may_be_followed_twice_and_through_another() -> None:
    definitions = {"a/b": {"$ref": "#/$defs/c"}, "c": {"type": "string", "description": "A name"}}
    adapted = adapt_property({"anyOf": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/$defs/c"}]}, **{"$defs": definitions})
    assert adapted == {"type": "STRING", "description": "A name"}


def test_a_reference_may_name_an_anchor() -> None:
    definitions = {"name": {"$anchor": "who", "type": "string"}}
    assert adapt_property({"$ref": "#who"}, **{"$defs": definitions}) == {"type": "STRING"}


def test_a_reference_keeps_the_keywords_beside_it() -> None:
    definitions = {"name": {"type": "string", "minLength": 1, "description": "A name."}}
    schema = {"$ref": "#/$defs/name", "description": "Whose", "allOf": [{"minLength": 3}]}
    adapted = adapt_property(schema, **{"$defs": definitions})
    assert adapted == {"type": "STRING", "minLength": 3, "description": "Whose. A name."}


@pytest.mark.parametrize("ref", ["#", "#/$defs/node", "#/properties/p"])
def test_a_recursive_reference_is_an_error_that_names_tool_and_reference(ref: str) -> None:
    node = {"type": "object", "properties": {"child": {"$ref": ref}}}
    with pytest.raises(BuildError, match=r"kb_search: the reference #.* refers to itself"):
        adapt_property(node, **{"$defs": {"node": {"$ref": "#/properties/p"}}})


@pytest.mark.parametrize("ref", ["#/$defs/nothing", "#/required/x", "#nowhere", "https://example.org/schema.json"])
def test_a_reference_that_leads_nowhere_is_an_error_that_names_tool_and_reference(ref: str) -> None:
    with pytest.raises(BuildError) as raised:
        adapt_property({"$ref": ref}, required=["p"])
    assert str(raised.value).startswith(f"kb_search: the reference {ref} leads to nothing.")


def test_a_dynamic_reference_is_an_error() -> None:
    with pytest.raises(BuildError, match=r"kb_search: .*\$dynamicRef \(#node\)"):
        adapt_property({"$dynamicRef": "#node"})

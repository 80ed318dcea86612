from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.tools.arguments import compile_schema
from antiphon.tools.witness import Difference, find_witnesses, subtract
from tests.fakes.schemas import arguments_for, tool_parameters

# A busy machine is no reason to fail.
fuzz = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def accept_any(value: Any) -> bool:
    return True


@fuzz
@given(tool_parameters())
def test_every_witness_is_accepted(parameters: dict[str, Any]) -> None:
    canonical = jsonschema_rs.canonicalize(parameters, validate_formats=True)
    validator = compile_schema(parameters)
    assert all(validator.is_valid(witness) for witness in find_witnesses(canonical))


@fuzz
@given(st.data())
def test_where_nothing_differs_every_value_is_still_accepted(data: st.DataObject) -> None:
    old, other = data.draw(tool_parameters()), data.draw(tool_parameters())
    # Two schemas that are alike but for one property.
    properties = old["properties"] | dict(list(other["properties"].items())[:1])
    new = old | {"properties": properties, "$defs": other.get("$defs", {}) | old.get("$defs", {})}
    is_valid = compile_schema(new).is_valid
    values = [data.draw(arguments_for(old)) for _ in range(3)]
    assert subtract(old, new, accept_any).found is not False or all(map(is_valid, values))


def test_a_schema_that_may_go_on_for_ever_is_left_in_time() -> None:
    node = {"type": "object", "properties": {name: {"$ref": "#/$defs/node"} for name in "abcdefgh"}}
    canonical = jsonschema_rs.canonicalize({"$ref": "#/$defs/node", "$defs": {"node": node}})
    assert {} in find_witnesses(canonical)


def test_what_is_contained_is_not_subtracted() -> None:
    assert subtract({"const": 1}, {"type": "integer"}, accept_any) == Difference(False)


def test_each_way_to_differ_has_its_own_witness() -> None:
    minuend = {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}}}
    subtrahend = {"type": "object", "properties": {"a": {"const": True}, "b": {"const": False}}}
    assert subtract(minuend, subtrahend, accept_any).witnesses == ({"a": False}, {"b": True})


def test_null_may_be_the_witness() -> None:
    assert subtract({"type": ["string", "null"]}, {"type": "string"}, accept_any).witnesses == (None,)


@pytest.mark.parametrize("ref", ["#/$defs/nothing", "https://example.org/schema.json"])
def test_a_schema_that_cannot_be_read_gives_a_reason(ref: str) -> None:
    difference = subtract({"$ref": ref}, {}, accept_any)
    assert difference.found is None
    assert difference.reason


def test_a_witness_needs_the_callers_word() -> None:
    assert subtract({"type": "string"}, {"const": "a"}, lambda value: False) == Difference(True)

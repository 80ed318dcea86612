"""Checks the JSON Schemas inside schema.json: parameters and outputs."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

import jsonschema_rs

from antiphon.authoring.problems import Place, Problem, did_you_mean, dotted
from antiphon.tools.arguments import compile_schema

Path = tuple[str, ...]
Schema = dict[str, Any]
Parts = Sequence[tuple[Path, Schema]]
"""A schema and all schemas within it."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_DRAFT: Final = compile_schema({"$ref": "https://json-schema.org/draft/2020-12/schema"})

_BY_NAME: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_IN_LIST: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE: Final = (
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)


def check_parameters(at: Place, parameters: Schema) -> Iterator[Problem]:
    if parameters.get("type") != "object":
        yield at.error("parameters.type", 'must be "object"')
    if parameters.get("additionalProperties") is not False:
        yield at.error("parameters.additionalProperties", "must be false, so that an invented argument is refused")
    for path, schema in walk(parameters, ("parameters",)):
        yield from _check_properties(at, path, schema)
        if schema is not parameters and _is_open_object(schema):
            field = dotted(*path, "additionalProperties")
            yield at.warning(field, "should be false here too, so that an invented argument is refused")
    yield from check_schema(at, "parameters", parameters)


def check_schema(at: Place, field: str, schema: Schema) -> Iterator[Problem]:
    """Checks what must hold for any schema: it is valid, its references resolve, and its defaults satisfy it."""
    parts = list(walk(schema, ()))
    problems = [
        *_check_draft(at, field, schema),
        *_check_formats(at, field, parts),
        *_check_references(at, field, schema, parts),
    ]
    # A validator can be compiled only if these checks pass.
    problems = problems or [*_check_compiles(at, field, schema)] or [*_check_defaults(at, field, schema, parts)]
    yield from problems


def walk(schema: object, path: Path) -> Iterator[tuple[Path, Schema]]:
    """Yields a schema and all schemas within it, each with its path. Anything that is not a schema is skipped."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for keyword, value in schema.items():
        if keyword in _SINGLE:
            yield from walk(value, (*path, keyword))
        elif keyword in _BY_NAME and isinstance(value, dict):
            for name, inner in value.items():
                yield from walk(inner, (*path, keyword, name))
        elif keyword in _IN_LIST and isinstance(value, list):
            for index, inner in enumerate(value):
                yield from walk(inner, (*path, keyword, str(index)))


def _is_open_object(schema: Schema) -> bool:
    # Only where an object is spelled out: a free-form one is meant to be open, and the branch of an `allOf`, `if` or
    # `not` must be.
    closed = schema.get("additionalProperties", schema.get("unevaluatedProperties")) is False
    return schema.get("type") == "object" and "properties" in schema and not closed


def _check_properties(at: Place, path: Path, schema: Schema) -> Iterator[Problem]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, inner in properties.items():
        field = dotted(*path, "properties", name)
        if not _NAME.fullmatch(name):
            yield at.error(field, "a name has letters, digits and underscores only, and does not begin with a digit")
        if isinstance(inner, bool):
            yield at.error(field, f"{str(inner).lower()} says nothing about the argument; give it a type")
    required = schema.get("required")
    closed = len(path) == 1 or schema.get("additionalProperties") is False
    if closed and isinstance(required, list) and "patternProperties" not in schema:
        for name in required:
            if isinstance(name, str) and name not in properties:
                hint = did_you_mean(name, properties)
                yield at.error(dotted(*path, "required"), f'"{name}" is required, but not among the properties.{hint}')


def _check_draft(at: Place, field: str, schema: Schema) -> Iterator[Problem]:
    for error in _DRAFT.iter_errors(schema):
        path = error.instance_path
        # The draft lists the types with `anyOf`, so its message would be about branches.
        message = "is not a JSON type, nor a list of them" if path[-1:] == ["type"] else error.message
        yield at.error(dotted(field, *path), message)


def _check_formats(at: Place, field: str, parts: Parts) -> Iterator[Problem]:
    for path, inner in parts:
        name = inner.get("format")
        if isinstance(name, str) and not _is_format(name):
            yield at.error(dotted(field, *path, "format"), f'"{name}" is not a format of JSON Schema 2020-12')


@lru_cache(maxsize=256)
def _is_format(name: str) -> bool:
    try:
        compile_schema({"format": name})
    except ValueError:
        return False
    return True


def _check_references(at: Place, field: str, schema: Schema, parts: Parts) -> Iterator[Problem]:
    anchors = {inner.get(keyword) for _, inner in parts for keyword in ("$anchor", "$dynamicAnchor")}
    for path, inner in parts:
        for keyword in ("$ref", "$dynamicRef"):
            reference = inner.get(keyword)
            if not isinstance(reference, str):
                continue
            place = dotted(field, *path, keyword)
            if not reference.startswith("#"):
                yield at.error(place, f'"{reference}" is outside this file; refer to "#/$defs/…"')
            elif not (reference[1:] in anchors or _points_somewhere(schema, reference[1:])):
                yield at.error(place, f'"{reference}" points to nothing in {field}')


def _points_somewhere(schema: Schema, pointer: str) -> bool:
    target: Any = schema
    if pointer and not pointer.startswith("/"):
        return False
    for part in unquote(pointer).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(target, dict) and key in target:
            target = target[key]
        elif isinstance(target, list) and key.isdecimal() and int(key) < len(target):
            target = target[int(key)]
        else:
            return False
    return True


def _check_compiles(at: Place, field: str, schema: Schema) -> Iterator[Problem]:
    try:
        compile_schema(schema)
    except jsonschema_rs.ValidationError as error:
        yield at.error(dotted(field, *error.schema_path), error.message)
    except ValueError as error:
        yield at.error(field, str(error))


def _check_defaults(at: Place, field: str, schema: Schema, parts: Parts) -> Iterator[Problem]:
    with_default = [(path, inner) for path, inner in parts if "default" in inner]
    if not with_default:
        return
    validators = jsonschema_rs.validator_map_for(
        schema, validate_formats=True, ignore_unknown_formats=False, offline=True
    )
    for path, inner in with_default:
        validator = validators["#" + "".join(f"/{_escaped(part)}" for part in path)]
        for error in validator.iter_errors(inner["default"]):
            yield at.error(dotted(field, *path, "default", *error.instance_path), error.message)


def _escaped(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")

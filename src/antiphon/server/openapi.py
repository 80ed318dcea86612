"""Makes the OpenAPI document of the HTTP interface from the table of operations and the structs."""

import re
from collections.abc import Iterable
from enum import EnumMeta
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct

import antiphon
from antiphon.protocol.schema import describe, notes
from antiphon.security.paths import versioned
from antiphon.server.http import OPERATIONS, Health, ready
from antiphon.server.operation import Operation
from antiphon.server.refusals import STATUSES, RefusalCode, Refused

JSON: Final = "application/json"
REFERENCE: Final = "#/components/schemas/{name}"

Schema = dict[str, Any]

_TOKEN: Final = "token"
_ANY: Final = (RefusalCode.TOO_FAST, RefusalCode.INTERNAL, RefusalCode.UNAVAILABLE)


@cache
def document() -> Schema:
    references, definitions = msgspec.json.schema_components(_types(), ref_template=REFERENCE)
    named = dict(zip(_types(), references, strict=True))
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        paths.setdefault(versioned(operation.path), {})[operation.method.lower()] = _describe(operation, named)
    for owner in _owners(_types()):
        describe(definitions[owner.__name__], owner)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Antiphon",
            "version": antiphon.__version__,
            "summary": "The HTTP interface. Conversations in real time go over the WebSocket at /ws (protocol.md).",
            "description": "Each path below /api/v1/ has an alias below /api/, without the version.",
        },
        "security": [{_TOKEN: []}, {}],
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {_TOKEN: {"type": "http", "scheme": "bearer"}},
        },
    }


def _types() -> list[type]:
    answers = [operation.answer for operation in OPERATIONS if isinstance(operation.answer, type)]
    bodies = [operation.body for operation in OPERATIONS if operation.body is not None]
    return list(dict.fromkeys([*bodies, Refused, *answers]))


def _describe(operation: Operation, named: dict[type, Schema]) -> Schema:
    described: Schema = {"summary": operation.summary, "operationId": _name(operation)}
    parameters = [*_in_path(operation.path), *_in_query(operation.query)]
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": {JSON: {"schema": named[operation.body]}}}
    described["responses"] = _responses(operation, named)
    if operation.public:
        described["security"] = []
    if operation.is_admin:
        described["security"] = [{_TOKEN: []}]
    return described


def _responses(operation: Operation, named: dict[type, Schema]) -> Schema:
    responses: Schema = {}
    match operation.answer:
        case None:
            responses["204"] = {"description": "It was deleted."}
        case str(media_type):
            responses["200"] = {"description": operation.summary, "content": {media_type: {}}}
        case answer:
            content: Schema = {JSON: {"schema": named[answer]}}
            if operation.also is not None:
                content[operation.also] = {"schema": {"type": "string"}}
            described = {"description": answer.__doc__ or operation.summary, "content": content}
            responses[str(operation.status)] = described
    if operation.handle is ready:
        responses["503"] = {"description": "The server cannot serve.", "content": {JSON: {"schema": named[Health]}}}
    if operation.public:
        return responses
    own = (RefusalCode.FORBIDDEN, *operation.refusals) if operation.is_admin else operation.refusals
    codes = dict.fromkeys((RefusalCode.UNAUTHENTICATED, *own, *_ANY))
    for status in sorted({STATUSES[code] for code in codes}):
        told = ", ".join(f"`{code}`" for code in codes if STATUSES[code] == status)
        responses[str(status)] = {
            "description": f"Refused: {told}.",
            "content": {JSON: {"schema": named[Refused]}},
        }
    return responses


def _name(operation: Operation) -> str:
    return "talk" if operation.handle is None else operation.handle.__name__


def _in_path(path: str) -> Iterable[Schema]:
    for name in re.findall(r"{(\w+)}", path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _in_query(query: type | None) -> Iterable[Schema]:
    if query is None:
        return
    [_], definitions = msgspec.json.schema_components([query])
    required = definitions[query.__name__].get("required", ())
    for name, schema in definitions[query.__name__]["properties"].items():
        reference = schema.get("anyOf", [schema])[0].get("$ref")
        if reference is not None:
            default = {} if schema.get("default") is None else {"default": schema["default"]}
            schema = definitions[reference.rpartition("/")[2]] | default
        parameter = {"name": name, "in": "query", "required": name in required, "schema": schema}
        if name in notes(query):
            parameter["description"] = notes(query)[name]
        yield parameter


def _owners(types: Iterable[type]) -> Iterable[type]:
    """Finds every struct and enum that is reachable from these types."""
    seen: dict[type, None] = {}
    waiting: list[Any] = list(types)
    while waiting:
        each = waiting.pop()
        if isinstance(each, EnumMeta) or (isinstance(each, type) and issubclass(each, Struct)):
            if each in seen:
                continue
            seen[each] = None
            if not isinstance(each, EnumMeta):
                waiting += [field.type for field in msgspec.structs.fields(each)]
        else:
            waiting += getattr(each, "__args__", ())
    return seen

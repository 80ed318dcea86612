"""Makes the JSON Schema of the protocol from the structs and the strings under their fields."""

import ast
import inspect
from collections.abc import Mapping, Sequence
from enum import EnumMeta
from functools import cache
from typing import Any, Final

import msgspec

from antiphon.protocol import client_messages, server_messages
from antiphon.protocol.client_messages import CLIENT_MESSAGES, ClientMessage
from antiphon.protocol.server_messages import SERVER_MESSAGES, ServerMessage

_OWNERS: Final = vars(client_messages) | vars(server_messages)


def json_schema() -> dict[str, Any]:
    """Returns the schema of every message, under `ClientMessage` and `ServerMessage` in `$defs`."""
    client = _definitions(ClientMessage, CLIENT_MESSAGES)
    server = _definitions(ServerMessage, SERVER_MESSAGES)
    for definition in server.values():
        _require_all(definition)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The client wire of Antiphon, version 1",
        "anyOf": [{"$ref": f"#/$defs/{base.__name__}"} for base in (ClientMessage, ServerMessage)],
        "$defs": client | server,
    }


def describe(definition: dict[str, Any], owner: type) -> None:
    """Adds the strings under the fields of a struct, or under the members of an enum, as descriptions."""
    if isinstance(owner, EnumMeta):
        meanings = [f"{owner[name].value}: {note}" for name, note in notes(owner).items()]
        if meanings:
            definition["description"] = " ".join(meanings)
        return
    shown = {field.name: field.encode_name for field in msgspec.structs.fields(owner)}
    for name, note in notes(owner).items():
        definition["properties"][shown[name]]["description"] = note


@cache
def notes(owner: type) -> Mapping[str, str]:
    """Returns the string under each field or member, including those of base classes."""
    found: dict[str, str] = {}
    for each in reversed(owner.__mro__):
        if each.__module__ == owner.__module__:
            found |= _own_notes(each)
    return found


def _own_notes(owner: type) -> dict[str, str]:
    """Reads the strings from the source, since Python does not keep them."""
    # All these classes are at the top level of a module, so their source needs no dedenting.
    [definition] = ast.parse(inspect.getsource(owner)).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for field, note in zip(definition.body, definition.body[1:], strict=False):
        match field, note:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = inspect.cleandoc(text)
    return found


def _definitions(base: type, messages: Sequence[type]) -> dict[str, Any]:
    references, definitions = msgspec.json.schema_components(messages)
    for name, definition in definitions.items():
        describe(definition, _OWNERS[name])
    return {base.__name__: {"description": base.__doc__, "oneOf": list(references)}, **definitions}


def _require_all(definition: dict[str, Any]) -> None:
    """Marks every field as required: defaults are for the sender, and a receiver finds every field."""
    properties = definition.get("properties", {})
    if properties:
        definition["required"] = list(properties)
    for field in properties.values():
        field.pop("default", None)

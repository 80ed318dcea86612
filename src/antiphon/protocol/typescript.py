"""Makes the TypeScript types of the protocol for the page's client."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from antiphon.protocol import limits
from antiphon.protocol.closing import CLOSES
from antiphon.protocol.errors import ErrorCode
from antiphon.protocol.schema import json_schema

Schema = Mapping[str, Any]

UNIONS: Final = ("ClientMessage", "ServerMessage")
MESSAGE: Final = "Message"
"""Every message's name ends in this, since "Error", "Image" and "Audio" are names of the browser."""
NUMBERED: Final = "NumberedMessage"
NUMBER: Final = "n"
LIMITS: Final = ("MICROPHONE_HZ", "SPEECH_HZ", "MAX_TEXT", "MAX_PENDING_REQUEST", "MAX_INITIAL_MESSAGES")
"""The limits that a client needs to know."""

INTRODUCTION: Final = """\
// The client wire, version 1. Made by `make reference`: change the structs in src/antiphon/protocol/, not this file.
"""


def source() -> str:
    definitions = json_schema()["$defs"]
    names = {name: _name(name, definition) for name, definition in definitions.items()}
    codes = " | ".join(json.dumps(code.value) for code in ErrorCode)
    parts = [
        INTRODUCTION,
        *(f"export const {name} = {getattr(limits, name)};" for name in LIMITS),
        "\n/** The close codes of the server, and whether to reconnect after them. */",
        "export const CLOSES: Readonly<Record<number, { reason: string; comeBack: boolean }>> = {",
        *(f"  {c.code}: {{ reason: {json.dumps(c.reason)}, comeBack: {json.dumps(c.come_back)} }}," for c in CLOSES),
        "};\n",
        f"export type ErrorCode = {codes};\n",
        _declare_numbered(definitions["StateChanged"]),
        *(_declare(definition, names[name], names) for name, definition in definitions.items() if name not in UNIONS),
        *(_union(name, definitions, names) for name in UNIONS),
        "/** Clients ignore all other types. */",
        f"export const SERVER_TYPES: ReadonlySet<string> = new Set({json.dumps(_tags('ServerMessage', definitions))});",
    ]
    return "\n".join(parts) + "\n"


def _name(name: str, definition: Schema) -> str:
    is_message = "type" in definition.get("properties", {})
    return name if not is_message or name.endswith(MESSAGE) else name + MESSAGE


def _declare(definition: Schema, name: str, names: Mapping[str, str]) -> str:
    comment = _comment(definition, "")
    if "enum" in definition:
        return f"{comment}export type {name} = {_type(definition, names)};\n"
    head = f"{name} extends {NUMBERED}" if NUMBER in definition["properties"] else name
    return "\n".join([f"{comment}export interface {head} {{", *_fields(definition, names), "}\n"])


def _declare_numbered(message: Schema) -> str:
    """Declares what all messages of the server have."""
    field = message["properties"][NUMBER]
    return f"export interface {NUMBERED} {{\n{_comment(field, '  ')}  {NUMBER}: number;\n}}\n"


def _fields(definition: Schema, names: Mapping[str, str]) -> Iterator[str]:
    for name, field in definition["properties"].items():
        if name == NUMBER:
            continue
        mark = "" if name in definition["required"] else "?"
        yield f"{_comment(field, '  ')}  {name}{mark}: {_type(field, names)};"


def _comment(schema: Schema, indent: str) -> str:
    text = schema.get("description", "").replace("*/", "* /")
    return f"{indent}/** {text} */\n" if text else ""


def _union(name: str, definitions: Schema, names: Mapping[str, str]) -> str:
    """Declares the messages by their types, and their union."""
    members = [names[_target(reference)] for reference in definitions[name]["oneOf"]]
    by_type = [f"  {tag}: {member};" for tag, member in zip(_tags(name, definitions), members, strict=True)]
    return "\n".join(
        [
            f"export interface {name}s {{",
            *by_type,
            "}\n",
            f"{_comment(definitions[name], '')}export type {name} = {name}s[keyof {name}s];\n",
        ]
    )


def _tags(union: str, definitions: Schema) -> list[str]:
    return [
        str(definitions[_target(reference)]["properties"]["type"]["enum"][0])
        for reference in definitions[union]["oneOf"]
    ]


def _target(reference: Schema) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _type(field: Schema, names: Mapping[str, str]) -> str:
    match field:
        case {"$ref": str()}:
            return names[_target(field)]
        case {"anyOf": [*choices]}:
            return " | ".join(dict.fromkeys(_type(choice, names) for choice in choices))
        case {"enum": [*values]}:
            return " | ".join(map(json.dumps, values))
        case {"type": "array", "items": items}:
            return f"{_type(items, names)}[]"
        case {"type": "object"}:
            return "Record<string, unknown>"
        case {"type": "integer" | "number"}:
            return "number"
        case {"type": "string" | "boolean" | "null" as kind}:
            return str(kind)
    return "unknown"

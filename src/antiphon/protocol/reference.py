"""Makes the reference page of the protocol from its schema."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from antiphon.protocol import limits
from antiphon.protocol.closing import CLOSES
from antiphon.protocol.errors import ErrorCode
from antiphon.protocol.schema import notes

Schema = Mapping[str, Any]

INTRODUCTION: Final = f"""\
# The client wire, version 1

This page and [protocol.schema.json](protocol.schema.json) are generated from the code by
`make reference`. Change the structs in `src/antiphon/protocol/`, not this page.

Messages are JSON objects in text frames, identified by `type`. Receivers ignore unknown fields, and clients ignore
unknown types. A frame from a client has at most {limits.MAX_FRAME_BYTES:,} bytes.

## Binary frames

| from | layout |
|---|---|
| client | 1 byte of flags, then PCM16 little-endian, {limits.MICROPHONE_HZ:,} Hz, mono. Bit 0 of the flags: the \
client is playing the assistant's speech |
| server | 0x01, then `n`, `turn` and `seq` as unsigned 32-bit big-endian numbers, then PCM16 little-endian, \
{limits.SPEECH_HZ:,} Hz, mono. Sent instead of `audio` if `hello` asks for it |
"""

SAID_ONCE: Final = frozenset({"type", "n"})
"""Fields that the text before the tables explains."""


def markdown(schema: Schema) -> str:
    definitions = schema["$defs"]
    parts = [
        INTRODUCTION,
        "## Client → server\n",
        "Fields with a question mark are optional.\n",
        *_messages(definitions, "ClientMessage"),
        "## Server → client\n",
        "Every field is always present; null means that it does not apply. Each message also has `n`, an integer that\n"
        "counts messages and binary frames from 1 within the session.\n",
        *_messages(definitions, "ServerMessage"),
        "## Error codes\n",
        _table(("code", "meaning"), ((f"`{code}`", notes(ErrorCode)[code.name]) for code in ErrorCode)),
        "## Close codes\n",
        _table(
            ("code", "reason", "reconnect"),
            ((str(close.code), close.reason, "yes" if close.come_back else "no") for close in CLOSES),
        ),
    ]
    return "\n".join(parts)


def _messages(definitions: Schema, union: str) -> Iterator[str]:
    for reference in definitions[union]["oneOf"]:
        message = _resolve(reference, definitions)
        [tag] = message["properties"]["type"]["enum"]
        yield f"### `{tag}`\n\n{message['description']}\n"
        rows = [_row(name, message, definitions) for name in message["properties"] if name not in SAID_ONCE]
        if rows:
            yield _table(("field", "value", "meaning"), rows)


def _row(name: str, message: Schema, definitions: Schema) -> tuple[str, str, str]:
    field = message["properties"][name]
    meaning = field.get("description") or _of_enum(field, definitions)
    return f"`{name}`{'' if name in message['required'] else '?'}", _say(field, definitions), meaning


def _of_enum(field: Schema, definitions: Schema) -> str:
    return str(_resolve(field, definitions).get("description", "")) if "$ref" in field else ""


def _say(field: Schema, definitions: Schema) -> str:
    """Describes the value of a field."""
    match field:
        case {"$ref": str()}:
            return _say(_resolve(field, definitions), definitions)
        case {"anyOf": [*choices]}:
            return " or ".join(_say(choice, definitions) for choice in choices)
        case {"enum": [*values]}:
            return ", ".join(f"`{value}`" for value in values)
        case {"type": "array", "items": items}:
            return f"list of {_say(items, definitions)}{_bounds(field, 'minItems', 'maxItems', ' items')}"
        case {"type": "object", "properties": properties}:
            return "{" + ", ".join(f"`{name}`: {_say(each, definitions)}" for name, each in properties.items()) + "}"
        case {"type": "string"}:
            return f"string{_bounds(field, 'minLength', 'maxLength', ' characters')}"
        case {"type": str(kind)}:
            return f"{kind}{_bounds(field, 'minimum', 'maximum', '')}"
    return "any JSON"


def _bounds(field: Schema, low: str, high: str, unit: str) -> str:
    match field.get(low), field.get(high):
        case None, None:
            return ""
        case None, most:
            return f" (at most {most:,}{unit})"
        case least, most:
            return f" ({least:,} to {most:,}{unit})"


def _resolve(reference: Schema, definitions: Schema) -> Schema:
    found: Schema = definitions[reference["$ref"].rpartition("/")[2]]
    return found


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |\n" for line in lines)

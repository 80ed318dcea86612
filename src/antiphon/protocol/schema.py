"""The wire as JSON Schema, made from the structs; `docs/reference/` is written from it.

python -m antiphon.protocol.schema --write     (or --check: whether what is written is current)
"""

import argparse
import sys
from collections.abc import Sequence
from enum import EnumMeta
from pathlib import Path
from typing import Any, Final

import msgspec

from antiphon.protocol import client_messages, server_messages
from antiphon.protocol.client_messages import CLIENT_MESSAGES, ClientMessage
from antiphon.protocol.notes import notes
from antiphon.protocol.reference import markdown
from antiphon.protocol.server_messages import SERVER_MESSAGES, ServerMessage

FOLDER: Final = Path("docs/reference")
SCHEMA_NAME: Final = "protocol.schema.json"
PAGE_NAME: Final = "protocol.md"

_OWNERS: Final = vars(client_messages) | vars(server_messages)


def json_schema() -> dict[str, Any]:
    """Every message of both directions, under `ClientMessage` and `ServerMessage` in `$defs`."""
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


def documents() -> dict[str, str]:
    """What belongs into the folder: the text of each file by its name."""
    schema = json_schema()
    text = msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
    return {SCHEMA_NAME: f"{text}\n", PAGE_NAME: markdown(schema)}


def write(folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in documents().items():
        (folder / name).write_text(text, encoding="utf-8")


def stale(folder: Path = FOLDER) -> list[str]:
    """The files that are missing, or are not what the structs say."""
    return [
        name
        for name, text in documents().items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m antiphon.protocol.schema", description="The reference of the wire."
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where it is (default: %(default)s)")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="write it")
    what.add_argument("--check", action="store_true", help="fail if it is not current")
    options = parser.parse_args(arguments)
    if options.write:
        write(options.folder)
    elif names := stale(options.folder):
        print(f"Not current in {options.folder}: {', '.join(names)}. Run this with --write.", file=sys.stderr)
        return 1
    return 0


def _definitions(base: type, messages: Sequence[type]) -> dict[str, Any]:
    references, definitions = msgspec.json.schema_components(messages)
    for name, definition in definitions.items():
        _describe(definition, _OWNERS[name])
    return {base.__name__: {"description": base.__doc__, "oneOf": list(references)}, **definitions}


def _describe(definition: dict[str, Any], owner: type) -> None:
    if isinstance(owner, EnumMeta):
        meanings: dict[str, str] = {owner[name].value: note for name, note in notes(owner).items()}
        if meanings:
            definition["description"] = " ".join(f"{value}: {note}" for value, note in meanings.items())
    else:
        for name, note in notes(owner).items():
            definition["properties"][name]["description"] = note


def _require_all(definition: dict[str, Any]) -> None:
    """A default is for those who make a message; those who receive it find every field."""
    properties = definition.get("properties", {})
    if properties:
        definition["required"] = list(properties)
    for field in properties.values():
        field.pop("default", None)


if __name__ == "__main__":
    sys.exit(main())

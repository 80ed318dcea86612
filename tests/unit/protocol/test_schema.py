"""The schema describes the messages that are sent."""

import json
from typing import Any

import jsonschema_rs
import pytest

from antiphon.protocol.client_messages import ClientMessage
from antiphon.protocol.codec import encode, encode_client
from antiphon.protocol.errors import ErrorCode
from antiphon.protocol.reference import markdown
from antiphon.protocol.schema import json_schema
from antiphon.protocol.server_messages import ServerMessage
from tests.unit.protocol.test_client_messages import WRITTEN
from tests.unit.protocol.test_server_messages import ALL


def definition(name: str) -> dict[str, Any]:
    return json_schema() | {"anyOf": [{"$ref": f"#/$defs/{name}"}]}


CLIENT = jsonschema_rs.validator_for(definition("ClientMessage"))
SERVER = jsonschema_rs.validator_for(definition("ServerMessage"))


@pytest.mark.parametrize("message", [meant for _, meant in WRITTEN], ids=lambda message: type(message).__name__)
def test_client_messages_are_in_the_schema(message: ClientMessage) -> None:
    CLIENT.validate(json.loads(encode_client(message)))


@pytest.mark.parametrize("message", ALL, ids=lambda message: type(message).__name__)
def test_server_messages_are_in_the_schema(message: ServerMessage) -> None:
    SERVER.validate(json.loads(encode(message, 1)))


def test_the_schema_contains_the_ranges() -> None:
    assert not CLIENT.is_valid({"type": "settings", "volume": 101})


def test_the_schema_promises_every_field_of_a_server_message() -> None:
    assert not SERVER.is_valid({"type": "response", "text": "Yes."})


def test_the_schema_states_the_units() -> None:
    until = json_schema()["$defs"]["Timeout"]["properties"]["until"]
    assert until["description"] == "Unix time in milliseconds."


def test_the_page_names_every_message_and_every_error_code() -> None:
    page = markdown(json_schema())
    tags = {json.loads(encode(message, 1))["type"] for message in ALL} | {written["type"] for written, _ in WRITTEN}
    missing = [tag for tag in tags if f"### `{tag}`" not in page] + [
        code for code in ErrorCode if f"`{code}`" not in page
    ]
    assert missing == []

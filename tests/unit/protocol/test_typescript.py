"""The page's client speaks the wire that the server does."""

import re

import pytest

from antiphon.protocol.closing import CLOSES
from antiphon.protocol.errors import ErrorCode
from antiphon.protocol.schema import json_schema
from antiphon.protocol.typescript import source


@pytest.mark.parametrize("union", ["ClientMessage", "ServerMessage"])
def test_every_message_is_in_its_union(union: str) -> None:
    definitions = json_schema()["$defs"]
    names = [each["$ref"].rpartition("/")[2] for each in definitions[union]["oneOf"]]
    tags = [definitions[name]["properties"]["type"]["enum"][0] for name in names]
    declared = source().partition(f"export interface {union}s {{\n")[2].partition("}")[0]
    assert [line.split(":")[0].strip() for line in declared.splitlines()] == tags


@pytest.mark.parametrize(
    "line",
    [
        "  /** The speed of speech, in percent of the normal speed. */\n  voice_speed?: number | null;",
        "  voice_speed: number;",
        "  turns: HistoryTurn[];",
        "  result: unknown;",
        "  args: Record<string, unknown>;",
        '  type: "state";\n  state: State;',
        'export type Mode = "text" | "voice";',
        "export const SPEECH_HZ = 22050;",
    ],
)
def test_the_types_are_those_of_the_schema(line: str) -> None:
    text = source().replace("  /** Counts the server's messages", "  /** Counts").replace("  n: number;\n", "")
    assert line in text


def test_names_of_browser_globals_are_not_used() -> None:
    assert not any(f"interface {name} " in source() for name in ("Error", "Image", "Audio", "Notification"))


def test_no_two_types_have_the_same_name() -> None:
    declared = re.findall(r"^export (?:interface|type) (\w+)", source(), re.MULTILINE)
    assert [name for name in declared if declared.count(name) > 1] == []


def test_every_close_code_is_known() -> None:
    assert [close.code for close in CLOSES if f"\n  {close.code}: {{" not in source()] == []


def test_every_error_code_is_known() -> None:
    assert [code for code in ErrorCode if f'"{code}"' not in source()] == []

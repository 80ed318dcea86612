"""Whatever a frame holds, the codec answers with a message or a `ProtocolError`, and soon."""

import builtins
import json
import time
import types
import typing
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, TypeVar, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields, replace

from antiphon.protocol.client_messages import CLIENT_MESSAGES, AudioFrame, ClientMessage
from antiphon.protocol.codec import decode, decode_audio, decode_server, encode, encode_client, tag_of
from antiphon.protocol.errors import ProtocolError
from antiphon.protocol.limits import MAX_FRAME_BYTES
from antiphon.protocol.server_messages import SERVER_MESSAGES, Error, ServerMessage, SpeechFrame
from tests.unit.protocol.test_client_messages import WRITTEN

S = TypeVar("S", bound=Struct)

LOOP_LIMIT_S: Final = 0.05
"""The event loop is never blocked for longer."""

ANY_TEXT: Final = st.text(st.characters(codec=None))
NUMBERS: Final = st.one_of(st.integers(), st.floats(), st.sampled_from([2**53 + 1, -(2**63) - 1, 2**64, 2**10_000]))
SCALARS: Final = st.one_of(st.none(), st.booleans(), NUMBERS, ANY_TEXT)
ANY_JSON: Final = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4), max_leaves=4
)
FIELD_NAMES: Final = st.sampled_from(sorted({field.name for kind in CLIENT_MESSAGES for field in fields(kind)}))
TYPES: Final = st.sampled_from([tag_of(kind) for kind in CLIENT_MESSAGES + SERVER_MESSAGES])
WORDS: Final = [encode_client(message) for _, message in WRITTEN]


def dump(value: Any) -> str:
    """JSON as Python writes it: NaN, Infinity and halves of characters included."""
    return json.dumps(value, ensure_ascii=False)


@st.composite
def near_messages(draw: st.DrawFn) -> str:
    """A known type, known fields, any values."""
    message = draw(st.dictionaries(FIELD_NAMES, ANY_JSON, max_size=4)) | {"type": draw(TYPES)}
    return dump(dict(draw(st.permutations(list(message.items())))))


@st.composite
def damaged_messages(draw: st.DrawFn) -> str:
    """A good message with a piece cut out, doubled or replaced."""
    text = draw(st.sampled_from(WORDS))
    start, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
    piece = draw(
        st.one_of(
            st.just(""), st.just(text[start:end] * 2), ANY_TEXT, st.sampled_from(["NaN", "\\ud800", "{", "]", "1e999"])
        )
    )
    return text[:start] + piece + text[end:]


def answer(decoder: Callable[[Any], object], frame: str | bytes) -> object:
    """A message, or the error; anything else that is raised fails the test."""
    try:
        return decoder(frame)
    except ProtocolError as error:
        # It goes back to the client, so it must itself be fit to be sent.
        encode(Error(str(error), error.code), 1)
        return error


@given(st.binary(max_size=2_000))
@settings(max_examples=2_000, deadline=None)
def test_any_bytes_are_audio_or_an_error(frame: bytes) -> None:
    assert isinstance(answer(decode, frame), AudioFrame | ProtocolError)
    assert isinstance(answer(decode_audio, frame), SpeechFrame | ProtocolError)


@given(ANY_TEXT)
@settings(max_examples=2_000, deadline=None)
def test_any_text_is_an_error(text: str) -> None:
    assert isinstance(answer(decode, text), ProtocolError)


@given(st.one_of(ANY_JSON, st.dictionaries(st.just("type") | ANY_TEXT, ANY_JSON, max_size=4)).map(dump))
@settings(max_examples=1_000, deadline=None)
def test_any_json_is_a_message_or_an_error(text: str) -> None:
    assert isinstance(answer(decode, text), ClientMessage | ProtocolError)


@given(near_messages())
@settings(max_examples=2_000, deadline=None)
def test_known_types_with_any_values_are_messages_or_errors(text: str) -> None:
    assert isinstance(answer(decode, text), ClientMessage | ProtocolError)
    assert isinstance(answer(decode_server, text), ServerMessage | ProtocolError)


@given(damaged_messages())
@settings(max_examples=3_000, deadline=None)
def test_damaged_messages_are_messages_or_errors(text: str) -> None:
    assert isinstance(answer(decode, text), ClientMessage | ProtocolError)


def fill(beginning: str, piece: str, end: str = "") -> str:
    """As many pieces as a frame holds."""
    return beginning + piece * ((MAX_FRAME_BYTES - len(beginning) - len(end)) // len(piece)) + end


@pytest.mark.parametrize(
    "frame",
    [
        fill('{"type":"ping","t":', "9", "}"),
        fill('{"type":"ping","t":0.', "9", "}"),
        fill('{"type":"ping","t":1,"x":', "["),
        fill('{"type":"ping","t":', '{"a":'),
        fill('{"type":"ping","t":1,"x":[', "0,", "0]}"),
        fill('{"type":"ping",', '"t":1,', '"t":1}'),
        fill("{", '"type":"ping",', '"t":1}'),
        fill('{"type":"', "\\u0000", '"}'),
        fill('{"type":"hello","mode":"', " - at `$", '"}'),
        fill('{"type":"hello","initial_messages":[', '{"role":"user","content":"x"},', "0]}"),
        fill("", " "),
        fill("", "\ud800"),
    ],
    ids=lambda frame: ascii(frame)[:40],
)
def test_the_worst_frames_do_not_block_the_loop(frame: str) -> None:
    # The time of this thread alone: other programs on the machine do not count.
    before = time.thread_time()
    assert isinstance(answer(decode, frame), ClientMessage | ProtocolError)
    assert time.thread_time() - before < LOOP_LIMIT_S


SENDABLE: Final = st.text(st.characters(codec="utf-8"))
SENDABLE_JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | SENDABLE,
    lambda inner: st.lists(inner) | st.dictionaries(SENDABLE, inner),
    max_leaves=8,
)
PLAIN: Final[dict[Any, st.SearchStrategy[Any]]] = {
    str: SENDABLE,
    int: st.integers(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
    Any: SENDABLE_JSON,
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    if kind in PLAIN:
        return PLAIN[kind]
    inner = get_args(kind)
    match get_origin(kind):
        case types.UnionType | typing.Union:
            return st.one_of(*map(values_of, inner))
        case builtins.tuple:
            return st.lists(values_of(inner[0]), max_size=3).map(tuple)
        case builtins.dict:
            return st.dictionaries(SENDABLE, values_of(inner[1]), max_size=3)
    return st.sampled_from(kind) if issubclass(kind, StrEnum) else structs_of(kind)


def structs_of(kind: type[S]) -> st.SearchStrategy[S]:
    return st.builds(kind, **{field.name: values_of(field.type) for field in fields(kind)})


@pytest.mark.parametrize("kind", SERVER_MESSAGES, ids=tag_of)
@given(data=st.data(), n=st.integers(1, 2**32))
@settings(max_examples=40, deadline=None)
def test_a_server_message_arrives_unchanged(kind: type[ServerMessage], data: st.DataObject, n: int) -> None:
    message = data.draw(structs_of(kind))
    assert decode_server(encode(message, n)) == replace(message, n=n)


@given(st.data(), ANY_TEXT)
@settings(max_examples=200, deadline=None)
def test_any_text_can_be_sent(data: st.DataObject, text: str) -> None:
    kind = data.draw(st.sampled_from(SERVER_MESSAGES))
    names = [field.name for field in fields(kind) if field.type in (str, Any)]
    message = replace(data.draw(structs_of(kind)), **dict.fromkeys(names, text))
    assert isinstance(decode_server(encode(message, 1)), kind)

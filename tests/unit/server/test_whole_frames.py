import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from antiphon.server.connections import read_binary

MAX = 65_536


def masked(payload: bytes, opcode: Opcode = Opcode.BINARY, *, fin: bool = True) -> bytes:
    return Frame(opcode, payload, fin).serialize(mask=True)


@given(st.binary(min_size=2, max_size=1_000), st.binary(max_size=20), st.binary(max_size=20))
def test_a_whole_message_is_read_as_the_library_reads_it(payload: bytes, before: bytes, after: bytes) -> None:
    frame = masked(payload)
    assert read_binary(before + frame + after, len(before), MAX) == (payload, len(before + frame))


@pytest.mark.parametrize("size", [2, 125, 126, 641, 65_535])
def test_every_length_encoding_is_read(size: int) -> None:
    assert read_binary(masked(bytes(size)), 0, MAX) == (bytes(size), len(masked(bytes(size))))


@pytest.mark.parametrize("opcode", [Opcode.TEXT, Opcode.CONT, Opcode.PING, Opcode.PONG, Opcode.CLOSE])
def test_other_kinds_are_left_to_the_library(opcode: Opcode) -> None:
    assert read_binary(masked(b"\3\xe8 some", opcode), 0, MAX) is None


def test_a_part_of_a_message_is_left_to_the_library() -> None:
    assert read_binary(masked(bytes(640), fin=False), 0, MAX) is None


def test_a_frame_without_a_mask_is_left_to_the_library() -> None:
    assert read_binary(Frame(Opcode.BINARY, bytes(640)).serialize(mask=False), 0, MAX) is None


def test_a_frame_that_uses_an_extension_is_left_to_the_library() -> None:
    first, *rest = masked(bytes(640))
    assert read_binary(bytes([first | 0b0100_0000, *rest]), 0, MAX) is None


@pytest.mark.parametrize(("size", "most"), [(641, 640), (65_536, 65_536)])
def test_an_oversized_frame_is_left_to_the_library(size: int, most: int) -> None:
    assert read_binary(masked(bytes(size)), 0, most) is None


@given(st.integers(0, 640))
def test_an_incomplete_frame_is_left_to_the_library(missing: int) -> None:
    frame = masked(bytes(640))
    assert (read_binary(frame[: len(frame) - missing], 0, MAX) is None) == (missing > 0)

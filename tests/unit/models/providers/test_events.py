"""Server-sent events, however their bytes are cut."""

import pytest

from antiphon.models.bounded import LimitExceeded
from antiphon.models.providers.events import MAX_EVENT_BYTES, EventDecoder

STREAM = b": hello\n\ndata: one\n\nevent: x\nid: 7\ndata:two\ndata: three\r\n\r\ndata: four\r\rdata: unfinished"
DATA = [b"one", b"two\nthree", b"four"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(STREAM)])
def test_events_are_the_same_however_they_are_split(size: int) -> None:
    decoder = EventDecoder()
    pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert [data for piece in pieces for data in decoder.feed(piece)] == DATA


@pytest.mark.parametrize("piece", [b"x" * 1_000, b"data: x\n" * 100])
def test_an_endless_event_is_refused_at_the_limit(piece: bytes) -> None:
    decoder = EventDecoder()
    pieces = MAX_EVENT_BYTES // len(piece) * 2
    with pytest.raises(LimitExceeded, match="a line of more than 1 MB"):
        [list(decoder.feed(piece)) for _ in range(pieces)]


def test_events_up_to_the_limit_pass() -> None:
    data = b"x" * (MAX_EVENT_BYTES - 10)
    assert list(EventDecoder().feed((b"data: " + data + b"\n\n") * 2)) == [data, data]

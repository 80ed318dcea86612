"""Close codes and error codes are part of the contract."""

from antiphon.protocol import closing
from antiphon.protocol.closing import CLOSES, Close
from antiphon.protocol.errors import ErrorCode
from antiphon.protocol.schema import notes


def test_a_reason_fits_into_a_close_frame() -> None:
    assert [close for close in CLOSES if len(close.reason.encode()) > 123] == []


def test_every_way_to_close_is_documented_once() -> None:
    assert sorted(close.code for close in CLOSES) == sorted(
        value.code for value in vars(closing).values() if isinstance(value, Close)
    )
    assert len({close.code for close in CLOSES}) == len(CLOSES)


def test_only_codes_that_a_server_may_send_are_used() -> None:
    assert all(close.code in {1000, 1007, 1009, 1011, 1012, 1013} or 4000 <= close.code < 5000 for close in CLOSES)


def test_every_error_code_is_documented() -> None:
    assert notes(ErrorCode).keys() == {code.name for code in ErrorCode}

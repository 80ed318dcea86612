from typing import Any, cast

import pytest
from msgspec import Struct

from antiphon.protocol import server_messages as s
from antiphon.session.messaging import WIRE, to_wire
from antiphon.tools import messages
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.messages import MESSAGES, Image, Notice, NoticeKind
from antiphon.tools.result import ConfirmationRequest, Flyout, FlyoutType


def test_every_tool_message_has_a_wire_message() -> None:
    assert set(WIRE) == set(MESSAGES)


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (Notice("Saved.", NoticeKind.SUCCESS, 500), s.Notice(s.NoticeKind.SUCCESS, "Saved.", None, 500)),
        (Image("https://example.org/cat.jpg"), s.Image("https://example.org/cat.jpg")),
        (Flyout(FlyoutType.CODE, "1 + 1", language="python"), s.Flyout(s.FlyoutType.CODE, "1 + 1", "python")),
        (messages.VoiceSessionStart("s1", "hello"), s.VoiceSessionStart("s1", "hello")),
        (messages.Timeout(5, 30, "Bye."), s.Timeout(5, 30, "Bye.")),
        (
            ConfirmationRequest("greet", {"name": "Ada"}, "Greet Ada?", "token", 9, "c1"),
            s.ConfirmationRequest("token", "greet", {"name": "Ada"}, "Greet Ada?", 9, "c1"),
        ),
    ],
)
def test_a_message_is_sent_with_the_same_fields(sent: messages.Message, received: s.ServerMessage) -> None:
    assert to_wire(sent) == received


class Unknown(Struct):
    text: str = ""


@pytest.mark.parametrize(("sent", "named"), [({"type": "notice"}, "a dict,"), (Unknown(), "a Unknown,")])
def test_an_unknown_message_is_refused_with_a_list_of_known_ones(sent: Any, named: str) -> None:
    with pytest.raises(ToolError, match=f"^The tool sent {named} .* Send one of Notice, Image, Flyout") as refused:
        to_wire(sent)
    assert refused.value.type is ErrorType.INTERNAL


def test_a_field_of_the_wrong_type_is_named() -> None:
    with pytest.raises(ToolError, match=r"an invalid Image \(Expected `str`, got `int` - at `\$\.url`\)"):
        to_wire(Image(cast(str, 7)))

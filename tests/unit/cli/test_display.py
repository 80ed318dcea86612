"""A turn as it is shown at a terminal."""

import io

import pytest
from rich.console import Console

from antiphon.cli.display import TurnDisplay
from antiphon.client import Incoming, NewSession, Reconnecting, Resumed
from antiphon.protocol import server_messages as s


def shown(*incoming: Incoming) -> list[str]:
    out = io.StringIO()
    display = TurnDisplay(Console(file=out, highlight=False, soft_wrap=True))
    for each in incoming:
        display.show(each)
    return out.getvalue().splitlines()


def test_a_turn_is_shown_in_order() -> None:
    assert shown(
        s.Transcript("what", is_final=False),
        s.Transcript("what time", is_final=False),
        s.Transcript("what time is it", is_final=True),
        s.ToolCall("get_current_time", {"timezone": "Tokyo"}),
        s.ToolResult("get_current_time", {"iso": "…"}),
        s.ResponseChunk("It's ", is_first=True),
        s.ResponseChunk("noon.", is_first=False),
        s.SpeechFrame(1, 1, 0, b"\0\0"),
        s.Response("It's noon."),
    ) == [
        "you  what …",
        "you  what time …",
        "you  what time is it",
        '     · get_current_time {"timezone":"Tokyo"}',
        "it   It's noon.",
    ]


def test_the_same_guess_is_shown_once() -> None:
    assert shown(s.Transcript("what", is_final=False), s.Transcript("what", is_final=False)) == ["you  what …"]


def test_a_confirmation_question_is_shown() -> None:
    question = s.ConfirmationRequest("token", "book", {}, "Book a table?", 0)
    assert shown(question) == ["Please confirm: Book a table?"]


def test_an_interrupted_answer_ends_its_line() -> None:
    cut = [s.ResponseChunk("Once upon", is_first=True), s.StateChanged(s.State.INTERRUPTED)]
    assert shown(*cut, s.Transcript("stop", is_final=True)) == ["it   Once upon", "     (interrupted)", "you  stop"]


def test_spoken_text_is_not_treated_as_markup() -> None:
    assert shown(s.Transcript("[bold]x[/]", is_final=True)) == ["you  [bold]x[/]"]


@pytest.mark.parametrize(
    ("incoming", "told"),
    [
        (s.ToolResult("calculate", {"error": "no"}, ok=False), "     · calculate failed."),
        (
            s.ToolResult("calculate", {"error": {"type": "VALIDATION", "message": "No."}}, ok=False),
            "     · calculate failed: No.",
        ),
        (s.ConfirmationResolved("token", s.Outcome.DENIED), "     · denied"),
        (s.Flyout(s.FlyoutType.CODE, "x = 1"), "x = 1"),
        (s.Error("It failed."), "It failed."),
        (s.Notice(s.NoticeKind.INFO, "By the way."), "By the way."),
        (s.Timeout(0, 60.0, "You are blocked."), "You are blocked. (60 s)"),
        (s.EndVoiceSession("user_request", "Goodbye."), "Goodbye."),
        (s.GoAway(time_left_ms=1, reason="The server restarts."), "The server restarts."),
        (Reconnecting("The connection was lost."), "Reconnecting… The connection was lost."),
        (Resumed("s1", 3), "Back again."),
        (NewSession("s2", "It was gone."), "A new session: It was gone."),
    ],
)
def test_side_events_are_shown_in_one_line(incoming: Incoming, told: str) -> None:
    assert shown(incoming) == [told]


def test_internal_events_are_not_shown() -> None:
    assert shown(s.Pong(1), s.StateChanged(s.State.LISTENING), s.EndVoiceSession("blocked", None)) == []


def test_a_picture_is_shown_by_its_address() -> None:
    assert shown(s.Image("/images/x.png", "a lighthouse")) == ["The picture is at /images/x.png on the server."]

from antiphon.continuity.summary import MAX_CHARS, extract
from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage

TALK: list[Message] = [
    UserMessage("What time is it in Tokyo?"),
    AssistantMessage("", ()),
    ToolMessage("c1", "get_current_time", {}, ok=True),
    AssistantMessage("It's noon."),
    UserMessage("Book a table."),
    ToolMessage("c2", "book", {}, ok=False),
    AssistantMessage("For how many people?"),
]


def test_an_empty_call_has_an_empty_summary() -> None:
    assert extract([]) == ""
    assert extract([AssistantMessage("Hello.")]) == ""


def test_requests_tools_and_the_open_question_are_named() -> None:
    assert extract(TALK) == (
        "The user said: What time is it in Tokyo?; Book a table. Tools used: get_current_time. "
        "Without success: book. Open question: For how many people?"
    )


def test_an_unanswered_request_is_named() -> None:
    assert extract([*TALK, UserMessage("Four.")]).endswith("Not answered yet: Four.")


def test_a_long_call_has_a_short_summary() -> None:
    long = [UserMessage(f"Request number {n}, which goes on and on " * 5) for n in range(100)]
    summary = extract(long)
    assert len(summary) <= MAX_CHARS
    assert "and 94 more" in summary

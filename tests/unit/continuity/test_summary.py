"""The summary without a model: what you asked, what came of it, and what is still open."""

import pytest

from antiphon.continuity.summary import MAX_CHARS, extract
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage

CONFIRMATION = {"error": {"type": "CONFIRMATION_REQUIRED", "message": "Ask.", "preview": "Delete all notes?"}}


def run(name: str, spoken: str | None = None, *, ok: bool = True, content: object = None) -> list[Message]:
    return [
        AssistantMessage("", (CallMade("c1", name, {}),)),
        ToolMessage("c1", name, content if content is not None else {}, spoken, ok),
    ]


def test_a_conversation_without_words_of_the_user_has_an_empty_summary() -> None:
    assert extract([]) == ""
    assert extract([AssistantMessage("Hello.")]) == ""
    assert extract([UserMessage("  "), UserMessage("…"), UserMessage("[noise]")]) == ""


def test_a_summary_reads_as_a_person_would_tell_it() -> None:
    assert extract(
        [
            UserMessage("What time is it in Tokyo?"),
            AssistantMessage("It's noon."),
            UserMessage("what is 15 % of 80"),
            AssistantMessage("It's 12."),
            UserMessage("Please set a timer for ten minutes."),
            *run("set_timer", "The timer for ten minutes was set."),
            AssistantMessage("It is set."),
            UserMessage("and the weather?"),
            AssistantMessage("I can look that up. Which city do you mean?"),
        ]
    ) == (
        "You asked what time it is in Tokyo and what 15 % of 80 is. You asked me to set a timer for ten minutes. "
        "You asked “and the weather?” The timer for ten minutes was set. Still open: “Which city do you mean?”"
    )


def test_an_unanswered_request_is_named_as_open() -> None:
    messages: list[Message] = [
        UserMessage("Book a table."),
        AssistantMessage("For four?"),
        UserMessage("I need it for five people"),
    ]
    assert extract(messages) == (
        "You asked me to book a table. You said you need it for five people. I have not answered that yet."
    )


def test_a_result_without_words_of_its_own_is_told_in_those_of_the_answer() -> None:
    messages = [UserMessage("Who is at home?"), *run("list_people"), AssistantMessage("Anna is. Shall I call her?")]
    assert extract(messages) == "You asked “Who is at home?” Anna is. Still open: “Shall I call her?”"


def test_of_a_result_in_several_sentences_the_first_is_told() -> None:
    asked = UserMessage("Check the disk.")
    assert extract([asked, *run("disk", "It is half full. Most of it is photos."), AssistantMessage("Fine.")]) == (
        "You asked me to check the disk. It is half full."
    )
    assert "Why? Because." in extract([UserMessage("Tell me a joke."), *run("joke", "Why? Because.")])


def test_a_result_that_nobody_told_is_named_by_its_tool() -> None:
    assert "I used list people." in extract([UserMessage("Check who is at home."), *run("list_people")])


@pytest.mark.parametrize(
    ("spoken", "content", "told"),
    [
        ("The calendar is not reachable.", {}, "The calendar is not reachable."),
        (None, {"error": {"type": "TIMEOUT", "message": "it took too long"}}, "This did not work: it took too long."),
        (None, {}, "Read calendar did not work."),
    ],
)
def test_failures_of_tools_are_told(spoken: str | None, content: object, told: str) -> None:
    messages = [UserMessage("Read my calendar."), *run("read_calendar", spoken, ok=False, content=content)]
    assert told in extract(messages)


def test_a_call_that_waits_for_approval_is_open_and_not_a_failure() -> None:
    messages = [UserMessage("Delete my notes."), *run("delete_notes", ok=False, content=CONFIRMATION)]
    assert extract(messages) == "You asked me to delete your notes. Still open: “Delete all notes?”"


def test_repeated_outcomes_are_told_once() -> None:
    asked = [UserMessage("Turn on the light."), *run("light", "The light is on."), AssistantMessage("Done.")]
    assert extract(asked * 2).count("The light is on.") == 1


def test_greetings_are_left_out_unless_there_is_nothing_else() -> None:
    assert extract([UserMessage("Hello!"), AssistantMessage("Hi.")]) == "You said “Hello!”"
    said = extract(
        [UserMessage("Hello!"), UserMessage("What time is it?"), AssistantMessage("Noon."), UserMessage("thanks")]
    )
    assert said == "You asked what time it is."


@pytest.mark.parametrize(
    "said", ["Wie spät ist es in Tokio?", "今日の天気はどうですか？", "¿Qué hora es?", "כמה זה עולה?", "क्या समय हुआ है?"]
)
def test_other_languages_are_quoted_as_they_are(said: str) -> None:
    assert extract([UserMessage(said), AssistantMessage("…")]).startswith(f"You asked “{said}”")


def test_a_long_conversation_has_a_short_summary_of_its_newest_part() -> None:
    long = [UserMessage(f"Remind me of thing number {n}, " + "which goes on and on " * 20) for n in range(100)]
    summary = extract(long)
    assert len(summary) <= MAX_CHARS
    assert "other requests, you" in summary
    assert "number 99" in summary
    assert "number 0," not in summary


def test_a_long_request_is_cut_at_the_end_of_a_word() -> None:
    summary = extract([UserMessage("wordy " * 100_000), AssistantMessage("All right.")])
    assert summary.startswith("You said “wordy wordy")
    assert summary.endswith("wordy…”")
    assert len(summary) <= MAX_CHARS


def test_a_text_without_spaces_is_cut_too() -> None:
    family = "👩‍👩‍👧"
    for text in ("天" * 10_000, family * 1_000, "e\u0301" * 1_000):
        summary = extract([UserMessage(text), AssistantMessage("…")])
        assert len(summary) <= MAX_CHARS
        assert not summary.rstrip(".”…").endswith("\u200d")


def test_the_largest_of_everything_fits() -> None:
    long = "lengthy words " * 50
    messages: list[Message] = []
    for n in range(20):
        messages += [UserMessage(f"{n} {long}"), *run("do_it", f"{n} {long}")]
    messages.append(AssistantMessage(f"{long}?"))
    assert len(extract(messages)) <= MAX_CHARS


def test_halves_of_characters_do_not_reach_the_summary() -> None:
    summary = extract([UserMessage("play \ud83d music"), *run("play", "Playing \udc00."), AssistantMessage("\ud800?")])
    assert summary.encode().decode() == summary

"""The history of an earlier conversation, as it is sent to a client."""

from collections.abc import Iterable
from typing import Any

import msgspec

from antiphon.protocol.client_messages import Role
from antiphon.protocol.server_messages import HistoryCall, HistoryTurn
from antiphon.session.history import MAX_CALLS, MAX_VALUE_BYTES, history_of
from antiphon.transcript import AssistantMessage, CallMade, Entry, Message, ToolMessage, UserMessage
from tests.fakes.gates import make_tool

AT_MS = 1_767_268_800_000


def history(messages: Iterable[Message]) -> tuple[HistoryTurn, ...]:
    return history_of((Entry("", message, at_ms=AT_MS) for message in messages), {})


def used(id: str, result: Any, said: str = "", *, ok: bool = True) -> list[Message]:
    """A model's message with a tool call, and the result of the call."""
    return [AssistantMessage(said, (CallMade(id, "look_up", {"of": id}),)), ToolMessage(id, "look_up", result, ok=ok)]


def test_calls_have_the_titles_of_their_tools() -> None:
    messages = [*used("a", 1), AssistantMessage("", (CallMade("b", "gone", {}),))]
    entries = [Entry("", message, at_ms=AT_MS) for message in messages]
    (turn,) = history_of(entries, {"look_up": make_tool("look_up", title="Look it up")})
    assert [call.title for call in turn.calls] == ["Look it up", None]


def test_calls_belong_to_the_text_that_follows_them() -> None:
    messages = [
        UserMessage("What is new?"),
        *used("a", 1, "Let me look."),
        *used("b", {"error": "gone"}, ok=False),
        AssistantMessage("Nothing."),
    ]
    assert history(messages) == (
        HistoryTurn(Role.USER, "What is new?", at=AT_MS),
        HistoryTurn(Role.ASSISTANT, "Let me look.", at=AT_MS),
        HistoryTurn(
            Role.ASSISTANT,
            "Nothing.",
            at=AT_MS,
            calls=(
                HistoryCall("a", "look_up", {"of": "a"}, 1, True),
                HistoryCall("b", "look_up", {"of": "b"}, {"error": "gone"}, False),
            ),
        ),
    )


def test_calls_without_text_after_them_are_included() -> None:
    calls = [turn.calls for turn in history([*used("a", 1), UserMessage("Stop."), *used("b", 2)])]
    assert [[call.id for call in made] for made in calls] == [["a"], [], ["b"]]


def test_a_call_whose_result_is_not_stored_has_no_outcome() -> None:
    (turn,) = history([AssistantMessage("", (CallMade("a", "look_up", {}),))])
    assert turn.calls == (HistoryCall("a", "look_up", {}, None, None),)


def test_long_values_are_truncated() -> None:
    (turn,) = history(used("a", {"text": "word " * 1000}))
    (call,) = turn.calls
    assert call.args == {"of": "a"}
    assert call.result.startswith('{"text":"word word')
    assert len(msgspec.json.encode(call.result)) < MAX_VALUE_BYTES * 1.1


def test_a_long_conversation_includes_its_newest_calls() -> None:
    messages = [message for number in range(MAX_CALLS + 5) for message in used(str(number), number)]
    (turn,) = history(messages)
    assert [call.id for call in turn.calls] == [str(number) for number in range(5, MAX_CALLS + 5)]

"""Limits hold for any text model, and what was said before one was exceeded has been passed on."""

from itertools import count

import pytest

from antiphon.models.base import CallRequested, Event, FailureKind, ModelError, Prompt, TextDelta
from antiphon.models.bounded import MAX_ANSWER_CHARS, MAX_CALLS, REPEATED_CHARS, BoundedModel, is_repetitive
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import UserMessage
from tests.fakes.streaming_model import StreamingModel

PROMPT = Prompt("", [UserMessage("hi")], [], Mode.TEXT)


async def said_until_failure(model: StreamingModel) -> tuple[list[Event], ModelError]:
    said: list[Event] = []

    async def listen() -> None:
        async for event in BoundedModel(model).reply(PROMPT):
            said.append(event)

    with pytest.raises(ModelError) as failed:
        await listen()
    return said, failed.value


async def test_an_endless_answer_is_stopped_at_the_limit() -> None:
    model = StreamingModel(TextDelta(f"word{number} ") for number in count())
    said, failure = await said_until_failure(model)
    chars = sum(len(event.text) for event in said if isinstance(event, TextDelta))
    assert MAX_ANSWER_CHARS - 20 < chars <= MAX_ANSWER_CHARS
    assert str(failure) == "talker gave an answer of more than 100,000 characters, so I stopped it."
    assert (failure.kind, model.is_closed) == (FailureKind.TOO_LONG, True)


@pytest.mark.parametrize("passage", ["I am sorry. ", "\n", "ab" * 300])
async def test_a_repeated_passage_is_stopped_early(passage: str) -> None:
    said, failure = await said_until_failure(StreamingModel(TextDelta(passage) for _ in count()))
    assert sum(len(event.text) for event in said if isinstance(event, TextDelta)) < 2 * REPEATED_CHARS
    assert failure.kind is FailureKind.LOOPED


async def test_too_many_calls_in_a_message_are_refused() -> None:
    said, failure = await said_until_failure(StreamingModel(CallRequested(ToolCall(None, "f", {})) for _ in count()))
    assert len(said) == MAX_CALLS
    assert str(failure) == "talker asked for more than 32 tool calls in one message, so I stopped it."


async def test_an_ordinary_answer_passes_unchanged() -> None:
    events: list[Event] = [TextDelta("Hello "), CallRequested(ToolCall(None, "f", {})), TextDelta("there.")]
    assert [event async for event in BoundedModel(StreamingModel(iter(events))).reply(PROMPT)] == events


@pytest.mark.parametrize(
    ("text", "is_stuck"),
    [
        ("".join(f"{number}. An item of a list.\n" for number in range(1_000)), False),
        ("| a | b |\n" * 100, False),
        ("no " * 10_000, True),
        ("A longer beginning. " * 10 + "and then " * 1_000, True),
    ],
)
def test_only_a_long_text_of_one_repeated_passage_is_repetitive(text: str, is_stuck: bool) -> None:
    assert is_repetitive(text[-REPEATED_CHARS:]) is is_stuck

"""Calls that a model writes as text: they run, they are not spoken, and ordinary text is not held back."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.models.base import (
    CallRequested,
    Event,
    FailureKind,
    MessageComplete,
    ModelError,
    Prompt,
    StopReason,
    TextDelta,
    TextProfile,
    TokensUsed,
    warm,
)
from antiphon.models.bounded import MAX_CALLS, BoundedModel
from antiphon.models.written_calls.formats import TAGS
from antiphon.models.written_calls.model import WrittenCallsModel
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import UserMessage

TOOL = {"type": "function", "function": {"name": "get_time", "description": "", "parameters": {"type": "object"}}}
PROMPT = Prompt("", [UserMessage("hi")], [TOOL], Mode.TEXT)
JSON = '{"name": "get_time", "arguments": {"timezone": "Tokyo"}}'
CALL = ToolCall(None, "get_time", {"timezone": "Tokyo"})
WEATHER = ToolCall("call_A", "get_weather", {})
DONE = MessageComplete(StopReason.DONE)
CALLS = MessageComplete(StopReason.CALLS)


class Speaker:
    """A text model that says what it is told, and then fails if it is told to."""

    profile = TextProfile("speaker", needs_network=False)

    def __init__(self, *events: Event | str, error: ModelError | None = None) -> None:
        self._events = [TextDelta(event) if isinstance(event, str) else event for event in events]
        self._error = error
        self.is_closed = False

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        try:
            for event in self._events:
                yield event
            if self._error is not None:
                raise self._error
        finally:
            self.is_closed = True


async def reply(*events: Event | str, error: ModelError | None = None) -> list[Event]:
    model = WrittenCallsModel(BoundedModel(Speaker(*events, error=error)))
    return [event async for event in model.reply(PROMPT)]


def joined(events: Sequence[Event]) -> tuple[str, list[Event]]:
    """All text, and everything else."""
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return text, [event for event in events if not isinstance(event, TextDelta)]


@pytest.mark.parametrize(
    "message", [JSON, f"```json\n{JSON}\n```", f"<tool_call>\n{JSON}\n</tool_call>", f"<tools>{JSON}</tools>"]
)
async def test_a_written_call_becomes_a_call_and_is_not_spoken(message: str) -> None:
    assert await reply(*message, TokensUsed(5, 4), DONE) == [TokensUsed(5, 4), CallRequested(CALL), CALLS]


async def test_ordinary_text_is_passed_on_as_it_comes() -> None:
    said = ["It", " is", " four", " o'clock", "."]
    assert await reply(*said, DONE) == [*map(TextDelta, said), DONE]


async def test_text_that_only_begins_like_a_call_is_passed_on_when_it_is_told_apart() -> None:
    events = await reply("`", "`", "`", "py", "thon", "\n", "import", " os", "\n```", DONE)
    assert events[:3] == [TextDelta("```python\nimport"), TextDelta(" os"), TextDelta("\n```")]


@pytest.mark.parametrize(
    "message",
    [
        f"I would call:\n{JSON}",
        f"{JSON}\nThat is how.",
        '{"name": "Ada", "age": 36}',
        '{"name": "get_weather", "arguments": {}}',
        "get_time",
        "```",
        "{",
        " \n",
    ],
)
async def test_what_is_not_a_call_is_spoken_unchanged(message: str) -> None:
    assert joined(await reply(*message, DONE)) == (message, [DONE])


async def test_an_unknown_tool_in_tags_is_left_to_the_gate_to_refuse() -> None:
    message = '<tool_call>{"name": "get_weather", "arguments": {}}</tool_call>'
    assert await reply(message, DONE) == [CallRequested(ToolCall(None, "get_weather", {})), CALLS]


async def test_a_call_that_is_also_made_properly_is_made_once() -> None:
    assert await reply(JSON, CallRequested(WEATHER), CALLS) == [CallRequested(WEATHER), CALLS]


async def test_text_before_a_proper_call_is_spoken() -> None:
    events = await reply("{", "One moment}", CallRequested(WEATHER), CALLS)
    assert events == [TextDelta("{One moment}"), CallRequested(WEATHER), CALLS]


async def test_too_many_written_calls_are_refused() -> None:
    with pytest.raises(ModelError, match="more than 32 tool calls") as failed:
        await reply(JSON * (MAX_CALLS + 1), DONE)
    assert failed.value.kind is FailureKind.TOO_LONG


@pytest.mark.parametrize(
    ("message", "spoken"), [(JSON, ""), ("<tool_call>{", ""), ("```js", "```js"), ("Once", "Once")]
)
async def test_a_message_that_is_cut_off_makes_no_call_and_loses_no_text(message: str, spoken: str) -> None:
    events: Any = WrittenCallsModel(Speaker(*message, error=ModelError("cut off"))).reply(PROMPT)
    told = ""
    while len(told) < len(spoken):
        told += (await anext(events)).text
    assert told == spoken
    with pytest.raises(ModelError, match="cut off"):
        await anext(events)


async def test_an_abandoned_message_is_closed() -> None:
    speaker = Speaker("Hello", " there", DONE)
    events: Any = WrittenCallsModel(speaker).reply(PROMPT)
    assert await anext(events) == TextDelta("Hello")
    await events.aclose()
    assert speaker.is_closed


async def test_the_model_behind_is_warmed() -> None:
    class Server(Speaker):
        warmed: Prompt | None = None

        async def warm(self, prompt: Prompt) -> bool:
            self.warmed = prompt
            return True

    server = Server()
    assert await warm(WrittenCallsModel(BoundedModel(server)), PROMPT)
    assert server.warmed is PROMPT
    assert not await warm(WrittenCallsModel(Speaker()), PROMPT)


async def test_tools_without_a_function_field_are_known_too() -> None:
    prompt = Prompt("", [UserMessage("hi")], [{"type": "function", "name": "get_time", "parameters": {}}], Mode.TEXT)
    events = [event async for event in WrittenCallsModel(Speaker(JSON, DONE)).reply(prompt)]
    assert events == [CallRequested(CALL), CALLS]


PARTS = [
    *TAGS,
    "</tool_call>",
    "```",
    "json",
    "{",
    "}",
    '"name": ',
    '"get_time"',
    JSON,
    " ",
    "\n",
    "get_time",
    "(",
    ")",
    "Hi",
]
MESSAGES = st.lists(st.sampled_from(PARTS), max_size=12).map("".join) | st.text()


@given(MESSAGES, st.data())
def test_pieces_make_no_difference(message: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(message)), max_size=8)))
    pieces = [message[start:end] for start, end in zip([0, *cuts], [*cuts, len(message)], strict=True)]
    whole, pieced, spelled = (joined(asyncio.run(reply(*each, DONE))) for each in ([message], pieces, message))
    assert whole == pieced == spelled
    assert whole in ((message, [DONE]), ("", whole[1]))


@given(MESSAGES)
def test_text_waits_only_while_it_is_the_beginning_of_a_call(message: str) -> None:
    """Once something is passed on, everything is."""

    async def waits() -> list[int]:
        """How many characters were waiting after each one, if the message was not a call."""
        spoken, counts = 0, list[int]()
        model = WrittenCallsModel(Spelled(message, lambda count: counts.append(count - spoken)))
        async for event in model.reply(PROMPT):
            if isinstance(event, CallRequested):
                return []
            if isinstance(event, TextDelta):
                spoken += len(event.text)
        return counts

    counts = asyncio.run(waits())
    begun = next((n for n, count in enumerate(counts) if count == 0), len(counts))
    assert not any(counts[begun:])


class Spelled(Speaker):
    """It says one character at a time, and tells after each how many it has said."""

    def __init__(self, message: str, tell: Any) -> None:
        super().__init__(*message, DONE)
        self._tell = tell

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        for count, event in enumerate(self._events):
            yield event
            if isinstance(event, TextDelta):
                self._tell(count + 1)

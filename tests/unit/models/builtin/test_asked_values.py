"""The assistant asks for digits, a spelled word, an address or a name, and calls the tool with what was meant."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
import pytest

from antiphon.models.base import CallRequested, MessageComplete, Prompt, StopReason, TextDelta
from antiphon.models.builtin import BuiltinModel
from antiphon.models.builtin.collecting import GIVEN_UP
from antiphon.models.builtin.replies import LEFT_ALONE
from antiphon.models.expectation import Expectation
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from tests.fakes.talking_tools import Box, make_spec, make_tool, talking_tools

PHONE: Final = {"type": "string", "pattern": "^[0-9]{3,}$"}
WORDS: Final = {"type": "string"}


def asking(tool_id: str, sentence: str, properties: dict[str, Any], arguments: dict[str, Any]) -> Tool:
    spec = make_spec(tool_id, properties, required=tuple(properties), writes=True)
    return make_tool(spec, {"data": [{"sentences": [sentence]}], "arguments": arguments})


TOOLS: Final = {
    **talking_tools(),
    "save_phone": asking(
        "save_phone",
        "save a phone number [for {name}]",
        {"name": WORDS, "phone": PHONE},
        {
            "name": {"reader": "text", "ask": "For whom?"},
            "phone": {"reader": "digits", "ask": "What's the number?"},
        },
    ),
    "invite": asking(
        "invite", "invite somebody", {"email": WORDS}, {"email": {"reader": "email", "ask": "What's the address?"}}
    ),
    "label": asking(
        "label", "label the box", {"word": WORDS}, {"word": {"reader": "spelling", "ask": "How is it spelled?"}}
    ),
    "greet": asking("greet", "greet somebody", {"name": WORDS}, {"name": {"reader": "person", "ask": "Whom?"}}),
}
MODEL: Final = BuiltinModel(Box(TOOLS))

SAVE: Final = "save a phone number for Tom"
NUMBER: Final = "five five five one two three four"
READ_BACK: Final = "That's 5 5 5, 1 2 3 4, right?"
SAY_AGAIN: Final = "Sorry. Please say the number again, digit by digit."
SAVED: Final = ("save_phone", {"name": "Tom", "phone": "5551234"})


@dataclass
class Talk:
    """A conversation in which every call succeeds."""

    model: BuiltinModel = MODEL
    mode: Mode = Mode.VOICE
    messages: list[Message] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    expects: Expectation = Expectation.NOTHING

    async def say(self, *texts: str) -> list[str]:
        """Says one thing after the other, and returns the answers."""
        return [await self._say(text) for text in texts]

    async def _say(self, text: str) -> str:
        self.messages.append(UserMessage(text))
        while True:
            events = [event async for event in self.model.reply(Prompt("", self.messages, (), self.mode))]
            end = events[-1]
            assert isinstance(end, MessageComplete)
            if end.reason is StopReason.DONE:
                answer = "".join(event.text for event in events if isinstance(event, TextDelta))
                self.messages.append(AssistantMessage(answer))
                self.expects = end.expects
                return answer
            calls = [event.call for event in events if isinstance(event, CallRequested)]
            self.calls += [(call.name, call.args) for call in calls]
            made = tuple(CallMade(f"c{len(self.messages)}.{n}", c.name, c.args) for n, c in enumerate(calls))
            self.messages += [AssistantMessage(calls=made), *(ToolMessage(c.id, c.name, {}, "Done.") for c in made)]

    def interrupt(self, heard: str) -> None:
        """Only this much of the last answer was heard."""
        self.messages[-1] = AssistantMessage(heard)


async def test_spoken_digits_are_read_back_and_saved_after_a_yes() -> None:
    talk = Talk()
    assert await talk.say(SAVE, NUMBER) == ["What's the number?", READ_BACK]
    assert talk.calls == []
    assert await talk.say("yes") == ["Done."]
    assert talk.calls == [SAVED]


async def test_a_part_is_corrected_and_the_whole_is_read_back() -> None:
    talk = Talk()
    answers = await talk.say(SAVE, NUMBER, "no, one two three five", "no, the first one is six", "right")
    assert answers[2:] == ["That's 5 5 5, 1 2 3 5, right?", "That's 6 5 5, 1 2 3 5, right?", "Done."]
    assert talk.calls == [("save_phone", {"name": "Tom", "phone": "6551235"})]


async def test_after_a_no_all_of_it_is_said_again() -> None:
    talk = Talk()
    assert await talk.say(SAVE, "five five six", "no", NUMBER, "yes") == [
        "What's the number?",
        "That's 5 5 6, right?",
        SAY_AGAIN,
        READ_BACK,
        "Done.",
    ]
    assert talk.calls == [SAVED]


@pytest.mark.parametrize("before", [[], [NUMBER], [NUMBER, "no"], ["bananas"]])
@pytest.mark.parametrize("leaving", ["never mind", "cancel that", "forget it"])
async def test_never_mind_leaves_it(before: list[str], leaving: str) -> None:
    talk = Talk()
    assert (await talk.say(SAVE, *before, leaving))[-1] == LEFT_ALONE
    assert talk.expects is Expectation.NOTHING
    await talk.say("yes", NUMBER)
    assert talk.calls == []


@pytest.mark.parametrize("before", [[], [NUMBER], [NUMBER, "no"], ["bananas"]])
async def test_another_request_is_done_instead_of_it(before: list[str]) -> None:
    talk = Talk()
    await talk.say(SAVE, *before, "tell me a joke", "yes", NUMBER)
    assert talk.calls == [("tell_joke", {})]


async def test_another_request_is_not_taken_for_a_name() -> None:
    talk = Talk()
    await talk.say("greet somebody", "what time is it in Tokyo")
    assert talk.calls == [("get_time", {"timezone": "Tokyo"})]
    assert (await talk.say("greet somebody", "thank you"))[-1] != "That's Thank You, right?"


async def test_an_answer_that_cannot_be_read_is_asked_for_again_once() -> None:
    talk = Talk()
    assert await talk.say(SAVE, "bananas", "apples and pears") == [
        "What's the number?",
        SAY_AGAIN,
        GIVEN_UP[Expectation.DIGITS],
    ]
    assert talk.expects is Expectation.NOTHING
    await talk.say(NUMBER, "yes")
    assert talk.calls == []


async def test_an_answer_that_can_be_read_begins_the_count_anew() -> None:
    talk = Talk()
    answers = await talk.say(SAVE, "bananas", NUMBER, "purple", "no", "bananas", NUMBER, "yes")
    assert answers[1:] == [SAY_AGAIN, READ_BACK, READ_BACK, SAY_AGAIN, SAY_AGAIN, READ_BACK, "Done."]
    assert talk.calls == [SAVED]


async def test_what_the_tool_would_refuse_is_asked_for_again() -> None:
    talk = Talk()
    assert (await talk.say(SAVE, "one two"))[-1] == SAY_AGAIN


@pytest.mark.parametrize("asking", ["what?", "say that again please", "I didn't catch that"])
async def test_the_question_is_repeated_if_it_was_not_heard(asking: str) -> None:
    talk = Talk()
    assert await talk.say(SAVE, asking, NUMBER, asking, "yes") == [
        "What's the number?",
        "What's the number?",
        READ_BACK,
        READ_BACK,
        "Done.",
    ]
    assert talk.calls == [SAVED]


@pytest.mark.parametrize(
    ("request_", "said", "question", "call"),
    [
        ("invite somebody", "ann at example dot com", "That's ann at example dot com, right?", "ann@example.com"),
        ("label the box", "S M I T H", "That's S, M, I, T, H, right?", "smith"),
        ("greet somebody", "her name is ann smith", "That's Ann Smith, right?", "Ann Smith"),
    ],
)
async def test_addresses_words_and_names_are_read_back(request_: str, said: str, question: str, call: str) -> None:
    talk = Talk()
    assert (await talk.say(request_, said))[-1] == question
    await talk.say("yes")
    assert [list(args.values()) for _, args in talk.calls] == [[call]]


@pytest.mark.parametrize(
    ("request_", "typed", "value"),
    [
        (SAVE, "555-1234", "5551234"),
        (SAVE, NUMBER, "5551234"),
        ("invite somebody", "Ann.O'Neil@example.com", "Ann.O'Neil@example.com"),
        ("label the box", "McDuff", "McDuff"),
        ("greet somebody", "ann smith", "ann smith"),
    ],
)
async def test_what_is_typed_is_not_read_back(request_: str, typed: str, value: str) -> None:
    talk = Talk(mode=Mode.TEXT)
    assert (await talk.say(request_, typed))[-1] == "Done."
    assert [list(args.values())[-1] for _, args in talk.calls] == [value]


async def test_a_typed_answer_that_cannot_be_read_is_asked_for_again_once() -> None:
    talk = Talk(mode=Mode.TEXT)
    assert (await talk.say(SAVE, "bananas", "pears"))[1:] == [SAY_AGAIN, GIVEN_UP[Expectation.DIGITS]]
    assert talk.calls == []


async def test_a_value_that_was_read_back_in_a_call_can_be_confirmed_by_typing() -> None:
    talk = Talk()
    await talk.say(SAVE, NUMBER)
    talk.mode = Mode.TEXT
    assert await talk.say("yes") == ["Done."]
    assert talk.calls == [SAVED]


@pytest.mark.parametrize("said", [[], ["bananas"], [NUMBER], [NUMBER, "no"], [NUMBER, "no, 5 5 6"]])
async def test_every_question_for_digits_expects_digits(said: list[str]) -> None:
    talk = Talk()
    await talk.say(SAVE, *said)
    assert talk.expects is Expectation.DIGITS


@pytest.mark.parametrize(
    ("before", "heard", "answer", "told"),
    [
        ([], "What's the", NUMBER, READ_BACK),
        ([NUMBER], "That's 5 5 5, 1", "no", SAY_AGAIN),
        ([NUMBER], "That's 5 5 5, 1", "no, 5 5 6", "That's 5 5 6, 1 2 3 4, right?"),
        ([NUMBER, "no"], "Sorry. Please say", NUMBER, READ_BACK),
    ],
)
async def test_a_question_can_be_answered_before_its_end(before: list[str], heard: str, answer: str, told: str) -> None:
    talk = Talk()
    await talk.say(SAVE, *before)
    talk.interrupt(heard)
    assert await talk.say(answer) == [told]


async def test_several_values_are_asked_for_one_after_the_other() -> None:
    talk = Talk()
    assert await talk.say("save a phone number", "Tom", NUMBER, "yes") == [
        "For whom?",
        "What's the number?",
        READ_BACK,
        "Done.",
    ]
    assert talk.calls == [SAVED]


async def test_a_correction_of_digits_does_not_change_an_earlier_request() -> None:
    talk = Talk()
    await talk.say("what time is it in Tokyo", SAVE, NUMBER, "no, London five", "no, Paris")
    assert talk.calls == [("get_time", {"timezone": "Tokyo"})]


async def test_two_requests_of_which_one_lacks_a_value_are_not_carried_out_by_half() -> None:
    talk = Talk()
    assert await talk.say("invite somebody and tell me a joke") != ["Done."]
    assert talk.calls == []


async def test_repeated_digits_are_no_stutter() -> None:
    talk = Talk()
    assert (await talk.say(SAVE, "to to for for five"))[-1] == "That's 2 2 4, 4 5, right?"


@pytest.mark.parametrize(
    ("tool_id", "said", "told"),
    [
        ("invite", ["invite somebody", "ann at example dot com"], "Done."),
        ("save_phone", [SAVE, NUMBER], READ_BACK),
    ],
)
async def test_a_value_that_the_tool_itself_asks_about_is_not_asked_about_twice(
    tool_id: str, said: list[str], told: str
) -> None:
    tool = TOOLS[tool_id]
    spec = msgspec.structs.replace(tool.spec, requires_confirmation=True)
    held = replace(tool, spec=spec, preview=lambda args: f"Do it with {', '.join(args.values())}?")
    talk = Talk(BuiltinModel(Box({**TOOLS, tool_id: held})))
    assert (await talk.say(*said))[-1] == told


async def test_any_number_of_questions_in_a_row_can_be_followed() -> None:
    exchange: list[Message] = [UserMessage("yes"), AssistantMessage("Shall I go on?")]
    talk = Talk(messages=[*exchange * 500])
    await talk.say("yes")
    assert talk.calls == []

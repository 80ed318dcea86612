"""The offline assistant knows what was said in the conversation."""

import pytest

from antiphon.models.base import Prompt, TextDelta
from antiphon.models.builtin import BuiltinModel
from antiphon.models.builtin.recall import NOTHING_ASKED, NOTHING_DISCUSSED, NOTHING_SAID, Recall, find_recall
from antiphon.models.builtin.understanding import words_of
from antiphon.models.completeness import Completeness
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from tests.fakes.talking_tools import Box, talking_tools

MODEL = BuiltinModel(Box(talking_tools()))

TOKYO: tuple[Message, ...] = (
    UserMessage("What time is it in Tokyo?"),
    AssistantMessage(calls=(CallMade("c1", "get_time", {"timezone": "Tokyo"}),)),
    ToolMessage("c1", "get_time", {}, "It's 4:22 PM in Tokyo."),
    AssistantMessage("It's 4:22 PM in Tokyo."),
)
SUM: tuple[Message, ...] = (UserMessage("what is 15 % of 80"), AssistantMessage("12"))
THANKS: tuple[Message, ...] = (UserMessage("thanks"), AssistantMessage("You're welcome."))


async def answer(*messages: Message, asked: str, summary: str = "", mode: Mode = Mode.TEXT) -> str:
    prompt = Prompt("", (*messages, UserMessage(asked)), (), mode, summary=summary)
    return "".join([event.text async for event in MODEL.reply(prompt) if isinstance(event, TextDelta)])


@pytest.mark.parametrize(
    ("recall", "questions"),
    [
        (
            Recall.LAST_REQUEST,
            "What did I just ask?|What did I just ask you?|what did i just say|what was my last question|"
            "Can you tell me what I just asked?|what did I ask you a moment ago|What was the previous request?|"
            "remind me what I just said|do you remember what I just asked you",
        ),
        (Recall.FIRST_REQUEST, "what did I ask you first?|What was my first question?|what did I ask at the beginning"),
        (
            Recall.REQUESTS,
            "What did I ask you?|what did I ask you before|What have I asked you so far?|what did I say earlier|"
            "do you remember what I asked|what did I want to know|I forgot what I asked you|what was my question|"
            "what was I asking you about|Tell me what I asked you earlier, please.|what did I tell you|"
            "what were my last questions",
        ),
        (
            Recall.TOPICS,
            "What did we talk about?|what were we talking about|What have we been talking about so far?|where were we|"
            "summarize our conversation|Please summarise this call.|give me a short summary|what was discussed|"
            "Can you remind me what we talked about before?|what do you remember about our conversation|recap the chat|"
            "what did we discuss last time|where did we leave off",
        ),
        (
            Recall.LAST_ANSWER,
            "What did you say?|what did you just say|What did you say before?|What did you say just now?|"
            "what was your answer|Sorry, what did you say?|I didn't catch that.|I couldn’t hear you|"
            "what did you tell me|what have you just said|what was that?|I did not understand what you said",
        ),
        (
            Recall.REPETITION,
            "Repeat that.|repeat that please|Say that again.|Could you say that again?|Can you repeat that, please?|"
            "once more|say it one more time|Pardon?|come again?|please repeat your last answer|repeat|"
            "Would you please repeat what you just said?",
        ),
    ],
)
def test_questions_about_the_conversation_are_understood(recall: Recall, questions: str) -> None:
    understood = {question: find_recall(words_of(question)) for question in questions.split("|")}
    assert understood == dict.fromkeys(understood, recall)


@pytest.mark.parametrize(
    "text",
    [
        "what did you eat",
        "what did I do yesterday",
        "say hello",
        "say hello again",
        "repeat after me",
        "what is that",
        "what did we order",
        "tell me a joke again",
        "summarize this article",
        "what did my sister ask you",
        "what time was it before",
        "what did I ask you " * 200,
    ],
)
def test_other_requests_are_not_taken_for_them(text: str) -> None:
    assert find_recall(words_of(text)) is None


@pytest.mark.parametrize("asked", ["what did I ask you before?", "what did I just ask?", "What was my first question?"])
async def test_a_request_is_told_with_its_answer(asked: str) -> None:
    told = "You asked what time it is in Tokyo, and I said it's 4:22 PM in Tokyo."
    assert await answer(*TOKYO, asked=asked) == told
    assert await answer(*TOKYO, *THANKS, asked=asked) == told, "thanks are not a request"


async def test_the_newest_request_comes_first() -> None:
    told = await answer(
        *TOKYO, UserMessage("tell me a joke"), AssistantMessage("No."), *SUM, asked="what did I ask you?"
    )
    assert told == (
        "You asked what 15 % of 80 is, and I said: “12”. Before that, you asked what time it is in Tokyo. "
        "You asked me to tell you a joke."
    )
    assert await answer(*TOKYO, *SUM, asked="what did I just ask?") == "You asked what 15 % of 80 is, and I said: “12”."


async def test_questions_about_the_conversation_are_not_part_of_it() -> None:
    first = await answer(*TOKYO, asked="what did I ask you?")
    again = (UserMessage("what did I ask you?"), AssistantMessage(first))
    assert await answer(*TOKYO, *again, asked="what did I just ask?") == first


async def test_a_request_without_an_answer_is_told_as_such() -> None:
    told = await answer(UserMessage("what time is it"), asked="what did I just ask?")
    assert told == "You asked what time it is, and I haven't answered that yet."


async def test_a_question_of_the_assistant_is_told_as_one() -> None:
    talk = (UserMessage("book a table"), AssistantMessage("For how many people?"))
    assert await answer(*talk, asked="what did I just ask?") == (
        "You asked me to book a table, and I asked “For how many people?”"
    )
    assert await answer(*talk, asked="what did you say?") == "I asked “For how many people?”"


async def test_what_was_said_last_is_told_or_repeated() -> None:
    assert await answer(*TOKYO, asked="what did you say?") == "I said it's 4:22 PM in Tokyo."
    assert await answer(*TOKYO, asked="say that again") == "It's 4:22 PM in Tokyo."
    repeated = (UserMessage("say that again"), AssistantMessage("It's 4:22 PM in Tokyo."))
    assert await answer(*TOKYO, *repeated, asked="repeat that") == "It's 4:22 PM in Tokyo."


async def test_the_topics_are_what_was_asked() -> None:
    told = await answer(*TOKYO, *SUM, *THANKS, asked="what did we talk about?")
    assert told == "You asked what time it is in Tokyo and what 15 % of 80 is."


async def test_what_was_left_out_is_known_from_the_summary() -> None:
    summary = "You asked for a table for four in Oslo."
    for asked in (
        "what did I ask you?",
        "what did I just ask?",
        "what did we talk about?",
        "what was my first question",
    ):
        assert await answer(asked=asked, summary=summary) == summary
    assert await answer(*TOKYO, asked="what did I ask you before?", summary=summary) == (
        "You asked what time it is in Tokyo, and I said it's 4:22 PM in Tokyo. "
        "And earlier: You asked for a table for four in Oslo."
    )
    assert await answer(*TOKYO, asked="what did we talk about?", summary=summary) == (
        "You asked for a table for four in Oslo. You asked what time it is in Tokyo."
    )


async def test_a_new_conversation_has_nothing_to_tell() -> None:
    greeting = AssistantMessage("Hello! How can I help?")
    assert await answer(greeting, asked="what did I ask you?") == NOTHING_ASKED
    assert await answer(greeting, asked="what did we talk about?") == NOTHING_DISCUSSED
    assert await answer(asked="what did you say?") == await answer(asked="repeat that") == NOTHING_SAID
    assert await answer(*THANKS, asked="what did I ask you?") == NOTHING_ASKED


async def test_less_is_told_in_a_call() -> None:
    talk = [UserMessage(f"remind me of thing {n}") for n in range(10)]
    told = {mode: await answer(*talk, asked="what did I ask you?", mode=mode) for mode in Mode}
    assert told[Mode.TEXT].count("thing") == 5
    assert told[Mode.VOICE].count("thing") == 3


async def test_notes_of_a_program_are_not_words_of_the_user() -> None:
    note = UserMessage('[Note from the app; the user did not say this. A tool has run: {"tool": "x", "args": []}]')
    assert "Note" not in await answer(*TOKYO, note, asked="what did I ask you?")


async def test_long_messages_and_other_languages_are_quoted_in_part() -> None:
    talk = (UserMessage("Wie spät ist es?"), AssistantMessage("Es ist zwölf Uhr."), UserMessage("word " * 50_000))
    told = await answer(*talk, asked="what did I ask you?")
    assert "you asked “Wie spät ist es?”" in told
    assert len(told) < 400


def test_such_a_question_may_go_on() -> None:
    for text in ("what did I ask you", "repeat that"):
        assert MODEL.completeness(text, Mode.VOICE) is Completeness.EXTENDABLE

from typing import Any

import pytest

from antiphon.models.base import CallRequested, Event, MessageComplete, Prompt, StopReason, TextDelta
from antiphon.models.builtin import BuiltinModel
from antiphon.models.completeness import Completeness
from antiphon.tools.call import ToolCall
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ConfirmationRequest, Failure, ToolResult, fail
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from tests.fakes.talking_tools import Box, talking_tools

MODEL = BuiltinModel(Box(talking_tools()))


async def reply(*messages: Message, mode: Mode = Mode.TEXT) -> list[Event]:
    return [event async for event in MODEL.reply(Prompt("", messages, (), mode))]


async def answer(*messages: Message) -> str:
    return "".join(event.text for event in await reply(*messages) if isinstance(event, TextDelta))


async def call_of(*messages: Message) -> ToolCall | None:
    return next((event.call for event in await reply(*messages) if isinstance(event, CallRequested)), None)


def called(text: str, tool_id: str, content: Any, *, spoken: str | None = None, ok: bool = True) -> list[Message]:
    """A conversation up to the result of one call."""
    run = MODEL.find_request(text, Mode.TEXT)
    args = {} if run is None else dict(run.calls[0].args)
    return [
        UserMessage(text),
        AssistantMessage(calls=(CallMade("c1", tool_id, args),)),
        ToolMessage("c1", tool_id, content, spoken, ok),
    ]


async def test_a_request_becomes_a_call_and_waits_for_it() -> None:
    assert await reply(UserMessage("what time is it in Tokyo?")) == [
        CallRequested(ToolCall(None, "get_time", {"timezone": "Tokyo"})),
        MessageComplete(StopReason.CALLS),
    ]


async def test_changing_the_arguments_of_a_call_does_not_affect_later_calls() -> None:
    first = await call_of(UserMessage("what time is it in Oslo"))
    assert first is not None
    first.args.clear()
    assert await call_of(UserMessage("what time is it in Oslo")) == ToolCall(None, "get_time", {"timezone": "Oslo"})


async def test_an_unknown_request_is_answered_in_words() -> None:
    events = await reply(UserMessage("sing me a song"))
    assert isinstance(events[0], TextDelta)
    assert events[1:] == [MessageComplete(StopReason.DONE)]


async def test_a_result_is_phrased_by_the_tool() -> None:
    spoken = "It's ten past four."
    assert await answer(*called("what time is it", "get_time", {"iso": "16:10"}, spoken=spoken)) == spoken


async def test_a_result_is_phrased_by_the_response_of_its_sentence() -> None:
    told = called("what is 15% of 80", "calculate", {"result": 12.0}, spoken="12")
    assert await answer(*told) == "That makes 12."


async def test_a_response_that_names_a_missing_field_falls_back_to_the_tools_wording() -> None:
    assert await answer(*called("what is 15% of 80", "calculate", {"sum": 12}, spoken="It is 12.")) == "It is 12."


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "That worked, but there is nothing to tell."),
        ({"temperature_c": 12.5, "sky": "clear"}, "Temperature c: 12.5. Sky: clear."),
        ({"open": True, "hours": None}, "Open: yes."),
        ("it rains", "It rains."),
        (7, "7."),
        ([], "There are none."),
        (["milk", "bread", "tea"], "Milk, bread and tea."),
        ([{"id": 1}], "There is one result."),
        (list(range(40)), "There are 40 results."),
        ({"rows": [{"a": 1}]}, "That worked, but the result is too long to say."),
        ("x" * 5000, "That worked, but the result is too long to say."),
    ],
)
async def test_a_result_without_wording_gets_a_plain_sentence(data: Any, said: str) -> None:
    assert await answer(*called("list my reminders", "list_reminders", data)) == said


async def test_only_a_tool_that_writes_is_said_to_be_done() -> None:
    assert await answer(*called("cancel the reminder tea", "cancel_reminder", None)) == "Done."


async def test_several_results_are_phrased_one_after_the_other() -> None:
    messages: list[Message] = [
        UserMessage("what time is it and tell me a joke"),
        AssistantMessage(calls=(CallMade("c1", "get_time", {}), CallMade("c2", "tell_joke", {}))),
        ToolMessage("c1", "get_time", {}, "It's four."),
        ToolMessage("c2", "tell_joke", {}, "Knock, knock."),
    ]
    assert await answer(*messages) == "It's four. Knock, knock."


async def test_results_that_arrived_after_an_interrupted_turn_come_first() -> None:
    unheard = called("remind me to call mum at six", "set_reminder", {}, spoken="I'll remind you at six.")
    assert await answer(*unheard, UserMessage("hello")) == "I'll remind you at six. Hello! What can I do for you?"


def failed(result: ToolResult) -> list[Message]:
    return called("what time is it in Atlantis", "get_time", result.for_model(), spoken=result.spoken, ok=False)


async def test_an_error_message_is_passed_on_unchanged() -> None:
    result = fail(ErrorType.NOT_FOUND, "there is no time zone called Atlantis", suggestion="Use a city.")
    assert await answer(*failed(result)) == "There is no time zone called Atlantis."


async def test_an_error_with_a_spoken_text_uses_it() -> None:
    result = fail(ErrorType.TRANSIENT, "HTTP 503", spoken="The weather service doesn't answer.")
    assert await answer(*failed(result)) == "The weather service doesn't answer."


async def test_an_error_without_a_message_is_admitted() -> None:
    assert await answer(*called("what time is it", "get_time", None, ok=False)) == (
        "That didn't work, and I don't know why."
    )


@pytest.mark.parametrize(
    ("preview", "asked"),
    [
        ("Create “Lunch” on Friday at noon", "Create “Lunch” on Friday at noon. Shall I?"),
        ("Shall I invite Ann to lunch?", "Shall I invite Ann to lunch?"),
    ],
)
async def test_a_call_that_needs_confirmation_is_shown_and_asked_about(preview: str, asked: str) -> None:
    request = ConfirmationRequest("calendar", {}, preview, "secret", 0)
    failure = Failure(ErrorType.CONFIRMATION_REQUIRED, "Needs confirmation.", confirmation_request=request)
    assert await answer(*failed(ToolResult(False, error=failure))) == asked


async def test_an_interrupted_question_is_not_repeated_with_the_outcome_of_its_approval() -> None:
    request = ConfirmationRequest("get_time", {}, "Look at the clock?", "secret", 0)
    failure = Failure(ErrorType.CONFIRMATION_REQUIRED, "Needs confirmation.", confirmation_request=request)
    asked = failed(ToolResult(False, error=failure))
    assert await answer(*asked, *called("yes", "get_time", {}, spoken="It is noon.")) == "It is noon."


async def test_a_result_that_came_after_an_approval_is_phrased() -> None:
    messages: list[Message] = [
        UserMessage("yes"),
        ToolMessage("c1", "create_event", {"id": 1}, "Lunch is in your calendar."),
    ]
    assert await answer(*messages) == "Lunch is in your calendar."


SLIP = UserMessage("set a remainder to call mum at six")
QUESTION = AssistantMessage("Did you mean “set a reminder to call mum at six”?")
REMINDER = ToolCall(None, "set_reminder", {"message": "call mum", "time": "six"})


async def test_a_near_miss_of_a_writing_tool_is_only_asked_about() -> None:
    assert await reply(SLIP) == [TextDelta(QUESTION.text), MessageComplete(StopReason.DONE)]


@pytest.mark.parametrize("text", ["yes", "Yes, please.", "go ahead", "that's right"])
async def test_a_yes_to_the_question_runs_the_call(text: str) -> None:
    assert await call_of(SLIP, QUESTION, UserMessage(text)) == REMINDER


async def test_the_result_of_a_confirmed_call_is_phrased() -> None:
    messages: list[Message] = [
        SLIP,
        QUESTION,
        *called("yes", "set_reminder", {"id": 3}, spoken="I'll remind you at six."),
    ]
    assert await answer(*messages) == "I'll remind you at six."


async def test_a_no_to_the_question_drops_the_call() -> None:
    assert await answer(SLIP, QUESTION, UserMessage("no thanks")) == "All right, I won't do that."


@pytest.mark.parametrize("text", ["yes but at seven", "maybe", "yes?", "the page says yes"])
async def test_an_unclear_yes_runs_nothing(text: str) -> None:
    assert await call_of(SLIP, QUESTION, UserMessage(text)) is None


async def test_another_request_after_the_question_is_handled_as_a_request() -> None:
    assert await call_of(SLIP, QUESTION, UserMessage("tell me a joke")) == ToolCall(None, "tell_joke", {})


NO_QUESTION: list[tuple[str, list[Message]]] = [
    ("nothing was said before", []),
    ("the question is another one", [SLIP, AssistantMessage("Did you mean “delete all”?")]),
    ("the question was cut off", [SLIP, AssistantMessage("Did you mean “set a")]),
    ("the question was not asked about these words", [UserMessage("hello"), QUESTION]),
    ("something else was said since", [SLIP, QUESTION, UserMessage("hello"), AssistantMessage("Hello!")]),
    ("it is answered already", [SLIP, QUESTION, UserMessage("no"), AssistantMessage("All right, I won't do that.")]),
]


@pytest.mark.parametrize("before", [before for _, before in NO_QUESTION], ids=[why for why, _ in NO_QUESTION])
async def test_a_yes_to_nothing_runs_nothing(before: list[Message]) -> None:
    assert await answer(*before, UserMessage("yes")) == "I haven't asked you a yes-or-no question."


async def test_a_request_in_the_history_is_not_run_again() -> None:
    history = called("what time is it", "get_time", {}, spoken="It's four.")
    assert await call_of(*history, AssistantMessage("It's four."), UserMessage("thanks")) is None


async def test_the_mode_decides_which_tools_may_be_called() -> None:
    assert not [
        event
        for event in await reply(UserMessage("start voice mode"), mode=Mode.VOICE)
        if isinstance(event, CallRequested)
    ]


def test_it_reports_whether_a_text_is_a_complete_request() -> None:
    assert MODEL.completeness("what time is it", Mode.VOICE) is Completeness.EXTENDABLE


def test_the_grammar_is_compiled_only_when_needed() -> None:
    model = BuiltinModel(Box(talking_tools()))
    assert vars(model)["_compiled"] is None
    model.compile()
    assert vars(model)["_compiled"] is not None


def test_reloaded_tools_are_understood() -> None:
    box = Box({})
    model = BuiltinModel(box)
    assert model.completeness("what time is it", Mode.VOICE) is not Completeness.EXTENDABLE
    box.tools = talking_tools()
    assert model.completeness("what time is it", Mode.VOICE) is Completeness.EXTENDABLE


def looked_up(args: dict[str, str], spoken: str) -> list[Message]:
    return [
        AssistantMessage(calls=(CallMade("c1", "get_time", args),)),
        ToolMessage("c1", "get_time", {}, spoken),
    ]


async def test_an_answer_of_which_nothing_was_heard_is_not_said_before_that_to_the_whole_question() -> None:
    interrupted = [UserMessage("what time is it"), *looked_up({}, "It's noon.")]
    whole = [UserMessage("what time is it in Tokyo"), *looked_up({"timezone": "Tokyo"}, "It's nine in Tokyo.")]
    assert await answer(*interrupted, *whole) == "It's nine in Tokyo."

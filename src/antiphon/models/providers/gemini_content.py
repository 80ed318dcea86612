"""What Gemini Live is told: the conversation so far, the results of tools, and notes about what happened.

Results that no function call waits for are told as text. Gemini 3 refuses a `functionCall` in the history without its
thought signature, and the Live API gives none, so calls of the past cannot be written as calls.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.genai import types

from antiphon.models.live import ToolAnswer
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage

NOTE: Final = "[Note from the app; the user did not say this. {text}]"
RESULT: Final = "A tool has run: {result}"
HEARD: Final = "The user interrupted an answer of yours. The part that was not heard counts as unsaid: {heard}"
BEGINS: Final = NOTE.format(text="This is the conversation so far.")
CONTINUES: Final = NOTE.format(text="The conversation goes on from here.")
ANSWER_NOW: Final = NOTE.format(text="Tell the user what came of this.")
SAY: Final = "[Instruction from the app: say exactly the following words to the user, and nothing else.] {words}"

MAX_HISTORY_CHARS: Final = 200_000
"""How much of the conversation is told, its newest part: about half of what the models keep."""
MAX_QUOTED_CHARS: Final = 200
"""How much of an answer is quoted to tell which one is meant."""


def note_result(name: str, args: Any, content: Any) -> str:
    return NOTE.format(text=RESULT.format(result=_json({"tool": name, "args": args, "result": content})))


def note_heard(said: str, heard: str) -> str:
    """Tells the model what the user heard of an answer."""
    return NOTE.format(text=HEARD.format(heard=_json({"answer": said[:MAX_QUOTED_CHARS], "heard": heard})))


def user_content(*texts: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text) for text in texts])


def tell_history(messages: Sequence[Message], *, ends_with_user: bool) -> list[types.Content]:
    """Returns the conversation as turns of the user and of the model, the newest part if it is long."""
    turns: list[tuple[str, list[str]]] = []
    for role, text in _newest(_tell(messages)):
        if turns and turns[-1][0] == role:
            turns[-1][1].append(text)
        else:
            turns.append((role, [text]))
    if turns and turns[0][0] == "model":
        # A conversation begins with the user, for every model of Gemini.
        turns.insert(0, ("user", [BEGINS]))
    if ends_with_user and turns and turns[-1][0] == "model":
        turns.append(("user", [CONTINUES]))
    return [types.Content(role=role, parts=[types.Part(text=text) for text in texts]) for role, texts in turns]


def function_response(answer: ToolAnswer, scheduling: str | None) -> types.FunctionResponse:
    """Returns the result of a call that has an id. Google gives `output` and `error` a meaning of their own."""
    response = {"output": answer.content}
    if not answer.ok:
        content = answer.content
        response = {"error": content["error"] if isinstance(content, Mapping) and "error" in content else content}
    return types.FunctionResponse(
        id=answer.call.id,
        name=answer.call.name,
        response=response,
        scheduling=None if scheduling is None else types.FunctionResponseScheduling(scheduling),
    )


def _tell(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Returns pairs of role and text."""
    calls: dict[str, CallMade] = {}
    told: list[tuple[str, str]] = []
    for message in messages:
        match message:
            case UserMessage(text=text):
                told.append(("user", text))
            case AssistantMessage(text=text):
                calls |= {call.id: call for call in message.calls}
                told.append(("model", text))
            case ToolMessage(call_id=call_id, name=name, content=content):
                args = calls[call_id].args if call_id in calls else {}
                told.append(("user", note_result(name, args, content)))
    return [(role, text) for role, text in told if text.strip()]


def _newest(told: list[tuple[str, str]]) -> list[tuple[str, str]]:
    left, first = MAX_HISTORY_CHARS, len(told)
    while first and left >= len(told[first - 1][1]):
        first -= 1
        left -= len(told[first][1])
    return told[first:]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

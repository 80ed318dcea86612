"""The model of both contenders: a scripted chat-completions server that insists on a call after the person said no."""

import json
from typing import Final

from tests.fakes.chat_server import Answer, Request, call_delta, delta, refusal, stream, words

TOOL: Final = "delete_album"
ARGUMENTS: Final = {"album": "Norway"}
WISH: Final = "Delete the album Norway."
YES: Final = "Yes, please."
NO: Final = "No, don't do that."
NEXT: Final = "What is left on my list?"
QUESTION: Final = "Shall I delete it?"
CLOSING: Final = "Understood."
_OWN: Final = "scripted"
"""Marks the calls that this model made: Antiphon also puts a declined call beside the no, with its outcome."""


def answer(request: Request) -> Answer:
    """Makes the call once in every turn, whatever was answered, and talks otherwise."""
    if request.body is None:
        return refusal(404, {"error": {"message": "There is nothing here."}})
    messages = request.messages
    last = max(place for place, message in enumerate(messages) if message["role"] == "user")
    own = [call for message in messages[last:] for call in message.get("tool_calls") or () if _OWN in call["id"]]
    if not own:
        return _call(f"{_OWN}_{len(messages)}")
    return words(QUESTION if last == 1 else CLOSING)


def _call(id: str) -> Answer:
    function = {"name": TOOL, "arguments": json.dumps(ARGUMENTS)}
    made = call_delta({"index": 0, "id": id, "type": "function", "function": function})
    return stream(made, delta("tool_calls"))

"""The language model behind the local voice: a scripted chat-completions server that knows how to use one tool.

It calls the tool that the client declared, with the city that it reads in the words of the user, and makes a sentence
of what the tool returned. Hearing, turn-taking, speaking and the way to the client's function are all real.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from bench.stock.turn import TOOL
from tests.fakes.chat_server import Answer, Request, call_delta, delta, refusal, stream, words

QUESTION: Final = "What is the weather like in {city}?"
GREETING: Final = "Hello, I can tell you the weather."
_CITY: Final = re.compile(r"weather.*? in (?P<city>[a-z]+)", re.IGNORECASE)


def answer(request: Request) -> Answer:
    if request.body is None:
        return refusal(404, {"error": {"message": "There is nothing here."}})
    messages = request.messages
    last = messages[-1]
    if last["role"] == "tool":
        return words(tell(json.loads(last["content"])))
    said = next((str(message["content"]) for message in reversed(messages) if message["role"] == "user"), "")
    found = _CITY.search(said)
    if found is None:
        return words(GREETING)
    if TOOL not in {tool["function"]["name"] for tool in request.body.get("tools", ())}:
        return words("There is no tool for the weather.")
    function = {"name": TOOL, "arguments": json.dumps({"city": found["city"].title()})}
    return stream(
        call_delta({"index": 0, "id": f"call_{len(messages)}", "type": "function", "function": function}),
        delta("tool_calls"),
    )


def tell(result: Mapping[str, Any]) -> str:
    if "celsius" not in result:
        return f"The weather service failed with {json.dumps(result)[:200]}."
    return f"It is {result['celsius']} degrees in {result['city']}."

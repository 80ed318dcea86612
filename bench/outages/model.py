"""The language model behind the simulator's voice, and behind our local one: a scripted chat-completions server.

It knows the answers of the script, calls the tool that the client declared, and finds what was ordered in the
conversation that it is given. If it is told which words of an answer were heard, it goes on after them.
"""

import json
import re
from dataclasses import replace
from typing import Any, Final

from bench.outages.script import STEPS
from bench.speech.words import normalize
from tests.fakes.chat_server import Answer, Request, call_delta, delta, refusal, stream, words

TOOL: Final = "order_pizza"
WORD_S: Final = 0.25
BEGINNING_WORDS: Final = 8
UNKNOWN: Final = "Sorry, I did not understand that."
_ORDER: Final = re.compile(r"order a? ?pizza with (?P<topping>[a-z]+)", re.IGNORECASE)
_ORDERED: Final = re.compile(r"order(?:ed)? a pizza with (?P<topping>[a-z]+)", re.IGNORECASE)
_RECALL: Final = re.compile(r"\bmy (?P<which>first|last) order", re.IGNORECASE)
_SAY: Final = re.compile(r"say exactly (?:these|the following) words[^:\n]*:\s*(?P<words>\S.*)", re.IGNORECASE)
_HEARD: Final = re.compile(r"were heard: “([^”]+)”")
_TOPICS: Final = {
    re.findall(r"\w+", step.question)[-1].lower(): step.answer for step in STEPS if "order" not in step.question
}
"""The answers by the last word of their questions."""


def answer(request: Request) -> Answer:
    if request.body is None:
        return refusal(404, {"error": {"message": "There is nothing here."}})
    messages = request.messages
    last = messages[-1]
    if last["role"] == "tool":
        return words(tell(json.loads(last["content"])))
    said = _text(last)
    if "summarise" in _text(messages[0]):
        ordered = dict.fromkeys(_orders(messages))
        return words(" ".join(f"You had me order a pizza with {topping}." for topping in ordered))
    if found := _SAY.search(said):
        return words(found["words"])
    if found := _ORDER.search(said):
        return _call(found["topping"].lower(), len(messages))
    return _speak(_reply(said, messages))


def tell(result: Any) -> str:
    topping = result.get("ordered") if isinstance(result, dict) else None
    return f"I have ordered a pizza with {topping}." if topping else "The order failed."


def _speak(text: str) -> Answer:
    """Gives the beginning at once and the rest little faster than it is spoken, so that faults meet an answer."""
    sentences = re.split(r"(?<=[.!?]) ", text)
    beginning = sentences.pop(0)
    # The voice waits for whole sentences: after the rest of one, it would fall silent.
    while sentences and len(beginning.split()) < BEGINNING_WORDS:
        beginning += f" {sentences.pop(0)}"
    pieces = [beginning, *" ".join(sentences).split()]
    return replace(stream(*(delta(content=f"{piece} ") for piece in pieces), delta("stop")), pause_s=WORD_S)


def _reply(said: str, messages: list[dict[str, Any]]) -> str:
    if found := _RECALL.search(said):
        ordered = _orders(messages)
        if not ordered:
            return "I do not know of any pizza."
        first = found["which"].lower() == "first"
        return f"Your {found['which'].lower()} order was a pizza with {ordered[0 if first else -1]}."
    whole = _known(said)
    return UNKNOWN if whole is None else _go_on(whole, messages)


def _orders(messages: list[dict[str, Any]]) -> list[str]:
    """Returns what was ordered, as often as the conversation says so."""
    return [topping.lower() for message in messages for topping in _ORDERED.findall(_text(message))]


def _known(said: str) -> str | None:
    heard = normalize(said)
    return next((whole for topic, whole in _TOPICS.items() if topic in heard), None)


def _go_on(whole: str, messages: list[dict[str, Any]]) -> str:
    """Returns what is left of the answer, if the client says which words of it were heard."""
    words_of_it = whole.split()
    for heard in _HEARD.findall(" ".join(_text(each) for each in messages if each["role"] != "assistant")):
        count = len(heard.split())
        if count and normalize(heard) == normalize(" ".join(words_of_it[:count])):
            return " ".join(words_of_it[count:]) or "That was all."
    return whole


def _call(topping: str, place: int) -> Answer:
    function = {"name": TOOL, "arguments": json.dumps({"topping": topping})}
    call = {"index": 0, "id": f"call_{place}", "type": "function", "function": function}
    return stream(call_delta(call), delta("tool_calls"))


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(str(part.get("text", "")) for part in content)

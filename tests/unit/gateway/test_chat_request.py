"""A chat request: what identifies its turn, and what becomes of its messages."""

import json
from typing import Any

from antiphon.gateway.chat_request import ChatRequest, read_chat_request
from antiphon.transcript import AssistantMessage, CallMade, ToolMessage, UserMessage

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}


def read(*messages: Any, **fields: Any) -> ChatRequest:
    made = [{"role": role, "content": content} if role else content for role, content in messages]
    return read_chat_request(json.dumps({"model": "m", "messages": made, **fields}).encode())


def test_calls_and_results_become_messages_that_are_joined_by_their_ids() -> None:
    request = read(
        ("user", "Do it."),
        ("", {"role": "assistant", "content": "Now.", "tool_calls": [CALL]}),
        ("", {"role": "tool", "tool_call_id": "c1", "content": '{"done": true}'}),
    )
    assert request.messages == [
        UserMessage("Do it."),
        AssistantMessage("Now.", (CallMade("c1", "f", {"x": 1}),)),
        ToolMessage("c1", "f", {"done": True}),
    ]
    assert (request.text, request.last_call_id) == (None, "c1")


def test_the_answer_to_a_question_leads_back_to_the_turn_that_asked() -> None:
    asking = read(("system", "It is 10:00."), ("user", "hi"), ("assistant", "ho"), ("user", "water it"))
    answering = read(
        ("system", "It is 10:01."),
        ("user", "hi"),
        ("assistant", " ho\n"),
        ("user", [{"type": "text", "text": "water it"}]),
        ("assistant", "Water it?"),
        ("user", "yes"),
    )
    assert answering.previous_turn_key == asking.turn_key
    assert asking.turn_key not in (asking.previous_turn_key, answering.turn_key)


def test_the_results_of_the_clients_tools_belong_to_the_turn_of_their_call() -> None:
    asking = read(("user", "water it"))
    going_on = read(
        ("user", "water it"),
        ("", {"role": "assistant", "tool_calls": [CALL]}),
        ("", {"role": "tool", "tool_call_id": "c1", "content": "done"}),
    )
    assert going_on.turn_key == asking.turn_key


def test_the_first_turn_has_none_before_it() -> None:
    assert read(("system", "x"), ("user", "yes")).previous_turn_key is None


def test_other_words_earlier_make_another_turn() -> None:
    keys = {
        read(("user", first), ("assistant", "ho"), ("user", "water it")).turn_key for first in ("hi", "hello", "hi ho")
    }
    assert len(keys) == 3

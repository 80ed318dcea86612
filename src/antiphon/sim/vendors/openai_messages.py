"""Whole responses in OpenAI Realtime's format, which faults send in the provider's name."""

from itertools import count
from typing import Any, Final

from antiphon.sim.vendors.base import Message, tone

SPEECH_S: Final = 0.3
CHUNKS: Final = 3


class Writer:
    """Writes messages with ids that no endpoint uses."""

    def __init__(self, connection: int) -> None:
        self._connection = connection
        self._numbers = count(1)

    def new_id(self, kind: str) -> str:
        return f"{kind}_sim_{self._connection}_{next(self._numbers)}"

    def event(self, type_: str, **fields: Any) -> Message:
        return {"type": type_, "event_id": self.new_id("event"), **fields}

    def error(self, kind: str, code: str, text: str, event_id: str | None = None) -> Message:
        error = {"type": kind, "code": code, "message": text, "param": None, "event_id": event_id}
        return self.event("error", error=error)

    def speech_item(self, response_id: str, text: str, index: int) -> tuple[list[Message], Message]:
        """Returns the events of one spoken item, and the item when it is done."""
        item: Message = {
            "id": self.new_id("item"),
            "object": "realtime.item",
            "type": "message",
            "status": "in_progress",
            "role": "assistant",
            "content": [],
        }
        at = {"response_id": response_id, "item_id": item["id"], "output_index": index, "content_index": 0}
        part = {"type": "audio", "transcript": text}
        done = {**item, "status": "completed", "content": [{"type": "output_audio", "transcript": text}]}
        in_response = {"response_id": response_id, "output_index": index}
        sound = tone(SPEECH_S / CHUNKS)
        events = [
            self.event("response.output_item.added", **in_response, item=item),
            self.event("conversation.item.added", previous_item_id=None, item=item),
            self.event("response.content_part.added", **at, part={"type": "audio", "transcript": ""}),
            self.event("response.output_audio_transcript.delta", **at, delta=text),
            *(self.event("response.output_audio.delta", **at, delta=sound) for _ in range(CHUNKS)),
            self.event("response.output_audio.done", **at),
            self.event("response.output_audio_transcript.done", **at, transcript=text),
            self.event("response.content_part.done", **at, part=part),
            self.event("conversation.item.done", previous_item_id=None, item=done),
            self.event("response.output_item.done", **in_response, item=done),
        ]
        return events, done

    def spoken_response(self, text: str) -> list[Message]:
        response_id = self.new_id("resp")
        events, item = self.speech_item(response_id, text, 0)
        return [self._created(response_id), *events, self._done(response_id, [item])]

    def call_response(self, calls: list[Message]) -> list[Message]:
        """Returns a response that makes the calls, which are items of type function_call."""
        response_id = self.new_id("resp")
        events: list[Message] = [self._created(response_id)]
        items: list[Message] = []
        for index, call in enumerate(calls):
            item = {**call, "id": self.new_id("item"), "status": "completed"}
            begun = {**item, "status": "in_progress", "arguments": ""}
            at = {"response_id": response_id, "output_index": index}
            told = {**at, "item_id": item["id"], "call_id": item.get("call_id")}
            events += [
                self.event("response.output_item.added", **at, item=begun),
                self.event("conversation.item.added", previous_item_id=None, item=begun),
                self.event("response.function_call_arguments.delta", **told, delta=item["arguments"]),
                self.event(
                    "response.function_call_arguments.done", **told, name=item["name"], arguments=item["arguments"]
                ),
                self.event("conversation.item.done", previous_item_id=None, item=item),
                self.event("response.output_item.done", **at, item=item),
            ]
            items.append(item)
        return [*events, self._done(response_id, items)]

    def _created(self, response_id: str) -> Message:
        return self.event("response.created", response=_response(response_id, "in_progress", []))

    def _done(self, response_id: str, items: list[Message]) -> Message:
        return self.event("response.done", response=_response(response_id, "completed", items))


def _response(response_id: str, status: str, output: list[Message]) -> Message:
    return {
        "object": "realtime.response",
        "id": response_id,
        "status": status,
        "status_details": None,
        "output": output,
        "conversation_id": None,
        "output_modalities": ["audio"],
        "max_output_tokens": "inf",
        "usage": None,
        "metadata": None,
    }

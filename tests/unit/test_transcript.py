import msgspec

from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage


def test_a_conversation_can_be_stored_and_read_again() -> None:
    conversation: list[Message] = [
        UserMessage("what time is it in Tokyo"),
        AssistantMessage(calls=(CallMade("c1", "get_time", {"timezone": "Tokyo"}),)),
        ToolMessage("c1", "get_time", {"error": {"type": "NOT_FOUND"}}, ok=False),
        AssistantMessage("I don't know that place."),
    ]
    stored = msgspec.json.encode(conversation)
    assert msgspec.json.decode(stored, type=list[Message]) == conversation

"""A conversation as a client shows it."""

from collections.abc import Sequence

from antiphon.protocol.client_messages import Role
from antiphon.protocol.server_messages import HistoryTurn
from antiphon.transcript import AssistantMessage, Message, UserMessage


def history_of(messages: Sequence[Message]) -> tuple[HistoryTurn, ...]:
    """Who said what; calls and their results are left to the model."""
    turns = []
    for message in messages:
        match message:
            case UserMessage(text=text):
                turns.append(HistoryTurn(Role.USER, text))
            case AssistantMessage(text=text) if text:
                turns.append(HistoryTurn(Role.ASSISTANT, text))
    return tuple(turns)

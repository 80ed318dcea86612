"""What the application behind a client of another protocol may ask of a session, beyond the messages of our wire."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antiphon.protocol import client_messages as c
from antiphon.session import events as e
from antiphon.session.state import BUSY
from antiphon.tools.tool import Tool
from antiphon.transcript import Message, UserMessage

if TYPE_CHECKING:
    from antiphon.session.runner import Runner


@dataclass(frozen=True, slots=True)
class ClientApplication:
    """How a client has set its session up."""

    instructions: str = ""
    """Instructions of its own, which become part of the prompt."""
    uses_tools: bool = True
    """Whether the model is offered tools."""
    holds_answers: bool = False
    """Whether the words of a spoken turn are only stored, and the client asks for the answer by `respond`. Only models
    that wait to answer can do that."""


def configure(runner: "Runner", application: ClientApplication, tools: Sequence[Tool] | None = None) -> None:
    """Changes how the session is set up; `tools` are those that the client runs, if they change.

    A model that was connected with something else is replaced as soon as no turn is under way. Raises
    `ClientToolError`.
    """
    if tools is not None:
        runner.tools.set_client_tools(tools)
    before, runner.application = runner.application, application
    is_same_prompt = (before.instructions, before.uses_tools) == (application.instructions, application.uses_tools)
    if tools is not None or not is_same_prompt:
        runner.has_new_context = True
        runner.post(runner.follow_up)


def bring(runner: "Runner", messages: Sequence[Message]) -> Sequence[str]:
    """Adds what was said elsewhere to the conversation, each message as a turn. Returns the ids of these turns. They
    are stored with the next turn."""
    turns = [runner.writer.bring(message) for message in messages]
    # A model that keeps its own context is given the conversation anew.
    runner.is_behind = True
    runner.post(runner.follow_up)
    return turns


async def forget(runner: "Runner", turn: str, *, of_user: bool) -> None:
    """Removes the user's words in a turn, or the answer to it, from the conversation."""
    if await runner.writer.forget(turn, of_user=of_user):
        runner.is_behind = True
        await runner.follow_up()


async def forget_run(runner: "Runner", name: str, args: Any) -> None:
    """Removes the newest call of a tool with these arguments, and its result, from the conversation."""
    if await runner.writer.forget_run(name, args):
        runner.is_behind = True
        await runner.follow_up()


async def respond(runner: "Runner") -> None:
    """Has the model answer the conversation as it is, in a turn of its own, as soon as no other is under way."""
    runner.is_answer_wanted = runner.state.phase in BUSY
    if runner.is_answer_wanted:
        return
    last = runner.writer.transcript.messages[-1:]
    words = last[0].text if last and isinstance(last[0], UserMessage) else ""
    await runner.outcomes.respond(await runner.voice.begin_turn(), words, ())


async def answer_last(runner: "Runner") -> None:
    """A call begins: if the conversation ends with words of the user, these are answered first."""
    last = runner.writer.transcript.messages[-1:]
    if last and isinstance(last[0], UserMessage):
        await respond(runner)


async def assume_played(runner: "Runner") -> None:
    """The answer counts as played, since the client does not report playback."""
    await runner.step(e.PlaybackAssumed())


async def leave(runner: "Runner") -> None:
    """The client leaves for good. A complete answer counts as played; of another one, what was said is stored."""
    await assume_played(runner)
    if runner.state.phase in BUSY:
        await runner.step(c.Interrupt())


async def cut_answer(runner: "Runner", number: int, heard: str) -> None:
    """The user has heard only this of the answer to a turn, which is over: the rest is forgotten."""
    turn = next((id for id, of in runner.state.recent if of == number), None)
    if turn is None or runner.state.is_current(turn):
        return
    await runner.writer.store_answer(turn, heard, spoken=True)
    if runner.models.connection is not None:
        runner.models.connection.interrupt(turn, heard)

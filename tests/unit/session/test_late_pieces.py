"""The user completes a request after its first words were acted on: "set a timer for ten minutes" … "called pasta".

The first words are final after a pause. What follows comes before any of the answer is heard (the turn is continued),
or after it has begun (the words are joined to it).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

import pytest

from antiphon.models.builtin import BuiltinModel
from antiphon.models.text_live import text_factory
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.services.reminders.service import ReminderService
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.context import Args, Context, Offer
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.spec import Capability, Mode
from antiphon.tools.tool import Tool
from antiphon.transcript import UserMessage
from tests.fakes.calls import Client, LoopClock, Server
from tests.fakes.gates import make_action
from tests.fakes.talking_tools import Box
from tests.fakes.toolkit import built_in
from tests.fakes.voice import HZ, PUSH_MS, FakeEngines, Tones

BEFORE_IT_IS_HEARD, AFTER_IT_HAS_BEGUN = 3.0, 0.05
"""How long the synthesiser takes, which decides where the late piece falls."""
PAUSE_MS = 1_300


@dataclass
class Post:
    """Sends messages, which nothing can take back."""

    takes_s: float = 0.0
    sent: list[dict[str, str]] = field(default_factory=list)

    async def send(self, args: Args, context: Context) -> ToolResult:
        await asyncio.sleep(self.takes_s)
        self.sent.append(dict(args))
        return ok(dict(args), spoken=f"I've sent your message to {args['to']}.")

    def tool(self, *, asks: bool = False) -> Tool:
        properties = {"to": {"type": "string"}, "text": {"type": "string"}}
        schema = {"type": "object", "required": ["to"], "properties": properties}
        asked = {"data": [{"sentences": ["send a message to {to}", "send a message to {to} about {text}"]}]}
        made = make_action("send_message", self.send, parameters=schema, timeout_ms=10_000, requires_confirmation=asks)
        return replace(made, sentences=asked)


class SpokenCall:
    """Somebody who talks to the offline assistant through a session, the cascade, and the gate."""

    def __init__(self, database: MemoryDatabase, tools: dict[str, Tool], offers: Mapping[str, Offer]) -> None:
        self.database = database
        self.fakes, self.tones = FakeEngines(), Tones()
        self.fakes.recognizer.tells_interim = False
        model = BuiltinModel(Box(tools))
        self.fakes.engines = replace(self.fakes.engines, completeness=lambda text: model.completeness(text, Mode.VOICE))
        self.server = Server(
            *tools.values(),
            models={Mode.TEXT: text_factory(model), Mode.VOICE: self.fakes.factory(model, self.tones)},
            database=database,
            offers=offers,
        )
        self.client = Client(self.server)

    async def say(self, *pieces: str, synthesis_s: float = AFTER_IT_HAS_BEGUN, then_ms: int = 20_000) -> None:
        """Says something with a pause after each piece."""
        if self.client.live is None:
            await self.client.enter()
            await self.client.say(c.StartListening(), seconds=0.1)
            await self._sound(bytes(HZ))
        for place, piece in enumerate(pieces, start=1):
            self.tones.delay_s = synthesis_s if place < len(pieces) else AFTER_IT_HAS_BEGUN
            await self._sound(self.fakes.words.say(piece))
            await self._sound(bytes(2 * HZ * (PAUSE_MS if place < len(pieces) else then_ms) // 1_000))

    @property
    def answer(self) -> str:
        return self.client.last(s.Response).text

    async def _sound(self, pcm: bytes) -> None:
        assert self.client.live is not None
        size = 2 * HZ * PUSH_MS // 1_000
        for at in range(0, len(pcm), size):
            self.client.live.runner.hear(pcm[at : at + size], playing=False)
            await asyncio.sleep(PUSH_MS / 1_000)

    @property
    def said(self) -> list[str]:
        """What the user said, as the conversation keeps it."""
        assert self.client.live is not None
        messages = self.client.live.runner.writer.transcript.messages
        return [message.text for message in messages if isinstance(message, UserMessage)]

    @property
    def called(self) -> list[str]:
        return [call.name for call in self.client.every(s.ToolCall)]

    async def reminders(self) -> list[tuple[str, str]]:
        return [(each.kind, each.message) for each in await self.database.reminders.list("ann")]

    async def items(self, name: str) -> list[str]:
        return sorted(item.text for item in await self.database.lists.items("ann", name))


Open = Callable[..., SpokenCall]


@pytest.fixture
async def begin() -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:
        database = MemoryDatabase()
        reminders = ReminderService(database.reminders, LoopClock(), database.changes)

        def begin(*more: Tool) -> SpokenCall:
            tools = {**built_in(), **{tool.id: tool for tool in more}}
            call = SpokenCall(database, tools, {Capability.REMINDERS: reminders.offer})
            stack.push_async_callback(call.server.aclose)
            return call

        yield begin


WHEN = pytest.mark.parametrize(
    "synthesis_s", [BEFORE_IT_IS_HEARD, AFTER_IT_HAS_BEGUN], ids=["before_it_is_heard", "after_it_has_begun"]
)


# What can be undone.


@WHEN
async def test_a_timer_that_is_named_late_is_one_timer_with_that_name(begin: Open, synthesis_s: float) -> None:
    call = begin()
    await call.say("set a timer for ten minutes", "called pasta", synthesis_s=synthesis_s)
    assert await call.reminders() == [("timer", "pasta")]
    assert call.called == ["set_timer", "cancel_reminder", "set_timer"]
    assert call.answer == "I've cancelled the one before. Your pasta timer is set for 10 minutes."


@WHEN
async def test_a_timer_that_is_completed_twice_is_one_timer(begin: Open, synthesis_s: float) -> None:
    call = begin()
    await call.say("set a timer for ten minutes", "called pasta", "with tomatoes", synthesis_s=synthesis_s)
    assert [message for _, message in await call.reminders()] == ["pasta with tomatoes"]


@WHEN
async def test_a_reminder_whose_time_comes_late_is_one_reminder(begin: Open, synthesis_s: float) -> None:
    call = begin()
    await call.say("remind me to call Ann tomorrow", "at eleven in the morning", synthesis_s=synthesis_s)
    [reminder] = await call.database.reminders.list("ann")
    assert (reminder.due_ms // 3_600_000) % 24 == 11


@WHEN
async def test_things_that_are_added_late_are_on_the_list_once(begin: Open, synthesis_s: float) -> None:
    call = begin()
    await call.say("add milk to the shopping list", "and eggs", synthesis_s=synthesis_s)
    assert await call.items("shopping") == ["eggs", "milk"]


async def test_what_was_put_on_another_list_is_taken_off_it(begin: Open) -> None:
    call = begin()
    await call.say("put tea on my list", "of presents")
    assert [(item.list, item.text) for item in await call.database.lists.items("ann")] == [("presents", "tea")]


async def test_two_requests_that_are_both_said_in_full_are_both_done(begin: Open) -> None:
    call = begin()
    await call.say("set a timer for ten minutes")
    await call.say("set a timer for ten minutes called pasta")
    assert await call.reminders() == [("timer", ""), ("timer", "pasta")]


# What cannot be undone.


@WHEN
@pytest.mark.parametrize("takes_s", [0.0, 4.0], ids=["at_once", "slowly"])
async def test_a_message_is_sent_once(begin: Open, synthesis_s: float, takes_s: float) -> None:
    post = Post(takes_s)
    call = begin(post.tool())
    await call.say("send a message to Ann", "about the party", synthesis_s=synthesis_s)
    assert post.sent == [{"to": "Ann"}]
    assert call.answer == "I was too quick. I've sent your message to Ann. I can't change that any more."


async def test_what_an_earlier_turn_does_meanwhile_is_not_taken_for_the_first_words(begin: Open) -> None:
    post = Post(takes_s=6.0)
    call = begin(post.tool())
    await call.say("send a message to Ann", then_ms=PAUSE_MS)
    await call.client.say(c.Interrupt(), seconds=0.1)
    await call.say("set a timer for ten minutes", "called pasta", synthesis_s=BEFORE_IT_IS_HEARD)
    assert post.sent == [{"to": "Ann"}]
    assert await call.reminders() == [("timer", "pasta")]


# What waits for a yes.

MESSAGE = ("send a message to Ann", "about the party")


@WHEN
async def test_a_question_is_asked_anew_and_a_yes_approves_only_the_new_one(begin: Open, synthesis_s: float) -> None:
    post = Post()
    call = begin(post.tool(asks=True))
    await call.say(*MESSAGE, synthesis_s=synthesis_s)
    first, second = call.client.every(s.ConfirmationRequest)
    assert [(each.confirmation_token, each.outcome) for each in call.client.every(s.ConfirmationResolved)] == [
        (first.confirmation_token, s.Outcome.EXPIRED)
    ]
    assert post.sent == []
    await call.say("yes")
    assert call.client.last(s.ConfirmationResolved).confirmation_token == second.confirmation_token
    assert post.sent == [{"to": "Ann", "text": "the party"}]


@WHEN
async def test_the_button_of_the_question_that_was_asked_too_early_does_nothing(
    begin: Open, synthesis_s: float
) -> None:
    post = Post()
    call = begin(post.tool(asks=True))
    await call.say(*MESSAGE, synthesis_s=synthesis_s)
    first, second = call.client.every(s.ConfirmationRequest)
    await call.client.say(c.Confirm(first.confirmation_token, approved=True))
    assert post.sent == []
    await call.client.say(c.Confirm(second.confirmation_token, approved=True))
    assert post.sent == [{"to": "Ann", "text": "the party"}]


# What only reads.


@WHEN
async def test_what_only_reads_is_done_for_the_whole(begin: Open, synthesis_s: float) -> None:
    call = begin()
    await call.say("what time is it", "in Tokyo", synthesis_s=synthesis_s)
    assert "Tokyo" in call.answer
    assert "quick" not in call.answer

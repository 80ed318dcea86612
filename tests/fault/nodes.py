"""Many people who are in calls with the nodes of one database, while something happens to a node."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from websockets.exceptions import ConnectionClosed, WebSocketException

from tests.fault.cuts import Listener
from tests.fault.servers import BOOK, Client, Served, Servers, recital, story

RECONNECT_S: Final = 60.0
"""How long a client goes on trying to connect."""
TURNS: Final = 3
"""How many turns each has at least."""


@dataclass(eq=False)
class Nodes:
    """The nodes behind a load balancer, which sends a client to any of those that accept connections."""

    servers: Servers
    up: list[Served] = field(default_factory=list)

    async def start(self, clock_ms: int = 0) -> Served:
        started = await self.servers.start(clock_ms=clock_ms)
        self.up.append(started)
        return started

    def choose(self, rng: Random) -> Served:
        return rng.choice(self.up)


class Person(Listener):
    """One who goes on with the conversation on another node if the connection is lost."""

    def __init__(self, nodes: Nodes, number: int) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.has_begun = asyncio.Event()
        """Set after the first turn."""
        self.resumed_in_s: list[float] = []
        """How long each resumption took, from the connection to the session."""
        self._nodes = nodes
        self._number = number
        self._rng = Random(number)

    async def live(self, is_over: asyncio.Event) -> None:
        """Has one turn after another until it is over."""
        await self.open(self._nodes.choose(self._rng))
        while len(self.asked) < TURNS or not is_over.is_set():
            # Numbers that the voice can recognise, in an order that comes once.
            turn, number = len(self.asked), self._number
            words = f"{number // 20 + 1} {number % 20 + 1} {turn % 20 + 1} {turn // 20 + 1} recite 2"
            is_spoken = turn > 1 and self._rng.random() < 0.1
            question = f"{BOOK}{words}" if turn == 1 else words
            self.asked.append(question)
            await self._have_turn(question, is_spoken=is_spoken)
            self.has_begun.set()
            await asyncio.sleep(self._rng.uniform(0, 0.3))

    async def _have_turn(self, question: str, *, is_spoken: bool) -> None:
        while True:
            try:
                if ("user", question) not in self.shown:
                    await (self.speak(question) if is_spoken else self.send("text_message", text=question))
                await self.listen_out(len(self.asked))
                return
            except ConnectionClosed:
                await self._come_back()

    async def _come_back(self) -> None:
        give_up_s = time.monotonic() + RECONNECT_S
        while True:
            began_s = time.monotonic()
            try:
                await self.resume(self._nodes.choose(self._rng))
                assert self.session["resumed"] is True
                self.resumed_in_s.append(time.monotonic() - began_s)
                # A message that was typed as the connection broke may never have arrived.
                await self.send("ping", t=1)
                await self.until("pong")
                return
            except (OSError, WebSocketException):
                assert time.monotonic() < give_up_s, "no node lets the client in"
                await asyncio.sleep(self._rng.uniform(0.05, 0.3))


async def live_through(
    nodes: Nodes, count: int, event: Callable[[], Awaitable[None]], *, after_s: float = 1.0
) -> Sequence[Person]:
    """Lets so many people talk while something happens, and asserts that no turn is lost and no action is doubled."""
    people = [Person(nodes, number) for number in range(count)]
    is_over = asyncio.Event()

    async def happen() -> None:
        # Nothing of a session is stored before its first turn.
        await asyncio.gather(*(person.has_begun.wait() for person in people))
        await event()
        await asyncio.sleep(after_s)
        is_over.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(happen())
        for person in people:
            group.create_task(person.live(is_over))
    await asyncio.gather(*(person.leave() for person in people))
    for person in people:
        wanted = [pair for text in person.asked for pair in (("user", text), ("assistant", recital(text)))]
        assert person.shown == wanted
        assert nodes.servers.words(person.conversation_id) == wanted
    booked = Counter(label for (label,) in nodes.servers.rows("SELECT message FROM reminders"))
    assert [label for label, times in booked.items() if times > 1] == []
    for person in people:
        if person.asked[1] not in booked:
            # The node died as it was about to book. Whether it did is unknown to the next one, which says so.
            turns = nodes.servers.turns(person.conversation_id)
            assert any(turn["role"] == "tool" and turn.get("ok") is False for turn in turns)
    return people


async def ask_until_answered(client: Client, text: str, within_s: float = 60.0) -> None:
    """Asks again as long as the server says that it cannot store anything."""
    give_up_s = time.monotonic() + within_s
    while True:
        await client.send("text_message", text=text)
        message = await client.hear()
        while message["type"] not in ("response", "error"):
            message = await client.hear()
        await client.rest_for_good()
        if client.shown[-2:] == [("user", text), ("assistant", story(text))]:
            return
        assert time.monotonic() < give_up_s, "the server does not recover"
        await asyncio.sleep(0.3)

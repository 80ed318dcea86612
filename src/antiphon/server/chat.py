"""`POST /api/chat`: takes a message and returns the answer, as one more client of the sessions."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import BLOCKED, TAKEN_OVER
from antiphon.security.admission import Caller
from antiphon.security.quota import Account
from antiphon.server.answer import AnswerCollector, ChatAnswer, ChatRequest
from antiphon.server.deps import HttpDeps
from antiphon.server.refusals import STOPPING, Block, Refusal, RefusalCode, unavailable
from antiphon.session.hub import ActiveSession, ConversationBusy
from antiphon.session.tool_runner import charge_to
from antiphon.tools.affirmation import verdict
from antiphon.tools.context import Messaging
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.messages import Message, Timeout
from antiphon.tools.spec import Mode

DEADLINE_S: Final = 120.0
GIVING_UP_S: Final = 5.0
"""How long a cancelled answer may take to store what was said so far."""


class QuietMessaging:
    """Messaging for a caller that cannot show messages. A timeout is passed on, since it must hold all the same."""

    def __init__(self, messaging: Messaging) -> None:
        self._messaging = messaging

    async def send(self, message: Message) -> None:
        if not isinstance(message, Timeout):
            raise ToolError(ErrorType.TRANSIENT, "The client cannot show messages.")
        await self._messaging.send(message)


class ChatTurn:
    """One admitted request. `run` must be called, or the conversation stays busy."""

    def __init__(self, chat: "Chat", active: ActiveSession, request: ChatRequest, link: AnswerCollector) -> None:
        self.link = link
        self._chat = chat
        self._active = active
        self._request = request

    @property
    def conversation_id(self) -> str:
        return self._active.runner.conversation_id

    async def run(self) -> ChatAnswer:
        """Returns the answer, or raises `Refusal`. If it is cancelled, what was said so far is stored."""
        try:
            if not await self._say_in_time():
                await self._give_up()
                raise self._refuse(self._chat.explain_end())
        except asyncio.CancelledError:
            await self._give_up()
            raise
        finally:
            await self._chat.leave(self._active)
        refusal = self.link.refusal()
        if refusal is not None:
            raise self._refuse(refusal)
        runner = self._active.runner
        return self.link.answer(self.conversation_id, tuple(runner.citations), runner.approved)

    async def _say_in_time(self) -> bool:
        """Returns whether the answer was complete before the deadline, and before the server stops."""
        saying = asyncio.create_task(self._say_all())
        ending = asyncio.create_task(self._chat.deps.must_end.wait())
        try:
            await asyncio.wait([saying, ending], timeout=DEADLINE_S, return_when=asyncio.FIRST_COMPLETED)
            if saying.done():
                saying.result()
                return True
            return False
        finally:
            saying.cancel()
            ending.cancel()
            await asyncio.wait([saying, ending])

    async def _say_all(self) -> None:
        confirm, text = self._request.confirm, self._request.message
        if confirm is not None:
            await self._say(c.Confirm(confirm.confirmation_token, confirm.approved))
            # A yes or no beside `confirm` repeats it, and is not a message of its own.
            if verdict(text) is not None or self.link.refusal() is not None:
                return
        if text.strip():
            await self._say(c.TextMessage(text))

    async def _say(self, message: c.ClientMessage) -> None:
        """Returns when the session is idle again."""
        runner, task = self._active.runner, self._active.task
        assert task is not None
        taken = asyncio.Event()

        async def note_taken() -> None:
            taken.set()

        runner.post(message)
        runner.post(note_taken)
        done = asyncio.create_task(_both(taken, runner.rest))
        try:
            await asyncio.wait([done, task], return_when=asyncio.FIRST_COMPLETED)
        finally:
            done.cancel()
        if task.done():
            raise self._refuse(self._broken())

    def _broken(self) -> Refusal:
        told = self.link.refusal()
        if told is not None:
            return told
        if self.link.closed is TAKEN_OVER:
            return Refusal(RefusalCode.BUSY, "This conversation was continued by another request.", retry_after_s=1)
        if self.link.closed is None:
            return unavailable(STOPPING)
        return Refusal(RefusalCode.INTERNAL, "The answer was cut off by an error in the server. Try again.")

    def _refuse(self, refusal: Refusal) -> Refusal:
        if any(isinstance(message, s.Transcript) for message in self.link.told):
            refusal.conversation_id = self.conversation_id
        return refusal

    async def _give_up(self) -> None:
        try:
            async with asyncio.timeout(GIVING_UP_S):
                await self._say(c.Interrupt())
        except (TimeoutError, Refusal):
            pass


class Chat:
    def __init__(self, deps: HttpDeps) -> None:
        self.deps = deps
        self._busy: set[str] = set()
        """The conversations in which this process answers a request. Other processes know by the session's lease."""

    def explain_end(self) -> Refusal:
        """Explains why an answer was cancelled."""
        if self.deps.must_end.is_set():
            return unavailable(STOPPING)
        return Refusal(RefusalCode.DEADLINE, f"There was no answer within {DEADLINE_S:.0f} seconds.")

    async def enter(self, caller: Caller, request: ChatRequest, *, address: str | None) -> ChatTurn:
        """Admits a request, or raises `Refusal`. Its tool calls count for the caller and for the address."""
        if self.deps.stopping.is_set():
            raise unavailable(STOPPING)
        _check(request)
        await self._refuse_blocked(caller.user)
        id = request.conversation_id
        if id in self._busy:
            raise _busy()
        if id is not None:
            self._busy.add(id)
        link = AnswerCollector()
        active = None
        try:
            active = await self.deps.hub.begin_request(caller.user, id, link, authenticated=caller.authenticated)
        except ConversationBusy:
            raise _busy() from None
        finally:
            if active is None and id is not None:
                self._busy.discard(id)
        if active is None:
            raise Refusal(RefusalCode.NOT_FOUND, "You have no such conversation.")
        active.token_id = caller.token_id
        active.runner.charge(charge_to(self.deps.quota, Account(user=caller.user, address=address), self.deps.clock))
        tools = active.runner.tools
        if request.capabilities.voice:
            # This sets the mode of the tool gate only: the text model still answers.
            tools.mode, tools.state.voice_active = Mode.VOICE, True
        if not request.capabilities.messaging:
            tools.messaging = QuietMessaging(tools.messaging)
        return ChatTurn(self, active, request, link)

    async def leave(self, active: ActiveSession) -> None:
        try:
            await self.deps.hub.end_request(active)
        finally:
            self._busy.discard(active.id)

    async def _refuse_blocked(self, user: str) -> None:
        now_ms = self.deps.clock.now_ms()
        until_ms = await self.deps.hub.stores.blocks.blocked_until(user, now_ms)
        if until_ms is not None:
            left_s = (until_ms - now_ms) / 1000
            block = Block(until_ms, left_s, BLOCKED.reason)
            raise Refusal(RefusalCode.BLOCKED, BLOCKED.reason, retry_after_s=left_s, timeout=block)


def _busy() -> Refusal:
    return Refusal(RefusalCode.BUSY, "The last message of this conversation is still being answered.", retry_after_s=1)


def _check(request: ChatRequest) -> None:
    if request.confirm is None and not request.message.strip():
        raise Refusal(RefusalCode.BAD_REQUEST, "`message` is blank. It must have some text.")
    if request.confirm is not None and request.conversation_id is None:
        raise Refusal(RefusalCode.BAD_REQUEST, "`confirm` needs the `conversation_id` of the conversation that asked.")


async def _both(taken: asyncio.Event, rest: Callable[[], Awaitable[None]]) -> None:
    await taken.wait()
    await rest()

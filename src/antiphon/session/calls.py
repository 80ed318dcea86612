"""The stretches of voice in a conversation: each leaves a summary behind."""

from uuid import uuid4

from antiphon.clock import Clock
from antiphon.continuity.summary import extract
from antiphon.session.keeper import Keeper
from antiphon.storage.conversations import VoiceCall, VoiceCallStore


class CallLog:
    """The call of one session, while there is one. It is written when something was said in it."""

    def __init__(self, store: VoiceCallStore, keeper: Keeper, clock: Clock) -> None:
        self._store = store
        self._keeper = keeper
        self._clock = clock
        self._call: VoiceCall | None = None
        self._first_message = 0

    def begin(self, user: str, model: str) -> None:
        self._first_message = len(self._keeper.messages)
        self._call = VoiceCall(
            id=uuid4().hex,
            conversation_id=self._keeper.conversation_id,
            user=user,
            started_ms=self._clock.now_ms(),
            ended_ms=None,
            summary="",
            models=(model,),
            first_seq=self._keeper.last_seq + 1,
            last_seq=None,
        )

    async def end(self) -> None:
        call, self._call = self._call, None
        summary = extract(self._keeper.messages[self._first_message :])
        if call is None or not summary:
            return
        fence = self._keeper.fence
        await self._store.begin(call, fence)
        await self._store.end(
            call.id,
            ended_ms=self._clock.now_ms(),
            summary=summary,
            models=call.models,
            last_seq=self._keeper.last_seq,
            fence=fence,
        )

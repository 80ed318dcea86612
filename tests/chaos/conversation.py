"""One conversation in chaos: a person goes through a plan, and then everything that must hold is checked."""

import asyncio
import random as global_random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from structlog.testing import capture_logs

from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from tests.chaos import checks
from tests.chaos.assistant import RECALL
from tests.chaos.person import Person
from tests.chaos.plan import (
    Armed,
    BargeIn,
    ClientDrop,
    Fault,
    PlannedTurn,
    Renewal,
    Request,
    Timed,
    make_plan,
)
from tests.chaos.sound import words_of
from tests.chaos.text_faults import TextFault
from tests.chaos.world import World, open_world
from tests.fakes.memory_network import MemoryLoop

TURN_S: Final = 300.0
"""How long a turn with faults may take: clients stay away for two minutes, and silent providers are given 30 s."""
UNHEARD_S: Final = 12.0
"""If nothing has come of speech after this time, it was not heard."""
CALM_S: Final = 15.0
"""How long a turn may take once the chaos is over."""
COOLED_S: Final = 70.0
"""By then every model can be used again."""
UNSTORED_AWAY_S: Final = 20.0
"""How long a client may stay away from a session that is only in memory, which ends some time later."""
SETTLE_S: Final = 1.0
VOICE_S: Final = 30.0


@dataclass
class TurnRecord:
    text: str
    topic: str
    is_spoken: bool = False
    asked_s: float = 0.0
    since: int = 0
    """How many messages the person had been sent before."""
    is_acknowledged: bool = False
    outcome: str = ""


@dataclass
class Story:
    """What happened in a conversation."""

    number: int
    turns: list[TurnRecord] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    """What happened and when: the same for the same seed."""
    details: list[str] = field(default_factory=list)
    """What the person was sent, and the transcript in the end, for whoever looks for a mistake."""


def run_conversation(seed: int, number: int) -> Story:
    """Runs the conversation of this number. It depends on the seed and the number alone."""
    global_random.seed(f"{seed}/{number}")
    with asyncio.Runner(loop_factory=MemoryLoop) as runner, capture_logs() as logged:
        story = runner.run(_Conversation(Random(f"{seed}/{number}"), number).run())
    story.problems += [f"log: {each}" for each in logged if each["log_level"] in ("error", "critical")]
    return story


class _Conversation:
    def __init__(self, random: Random, number: int) -> None:
        self._plan = make_plan(random)
        self._story = Story(number)
        self._unfinished: list[TurnRecord] = []
        """Requests whose answers nobody has waited for yet."""
        self._world: World
        self._person: Person

    async def run(self) -> Story:
        async with open_world() as self._world:
            self._person = Person(self._world.tones)
            await self._person.enter(self._world.processes[0])
            try:
                for turn in self._plan:
                    await self._take_turn(turn)
                await self._end_in_calm()
                await self._check()
            finally:
                self._story.details += self._person.log
                self._story.details += self._provider_log()
                await self._person.aclose()
        return self._story

    # Turns.

    async def _take_turn(self, turn: PlannedTurn) -> None:
        await self._rest()
        if turn.mode is not None:
            await self._change_mode(turn.mode)
        now_s = asyncio.get_running_loop().time()
        record = TurnRecord(turn.text, turn.topic, asked_s=now_s, since=len(self._person.received))
        self._story.turns.append(record)
        self._note(f"{turn.request} {turn.topic} in {self._person.mode}")
        under_way = [asyncio.create_task(work) for work in self._arm(turn.faults)]
        await self._ask(record, is_spoken=turn.is_spoken and not self._unfinished)
        if turn.is_hasty and turn is not self._plan[-1]:
            self._unfinished.append(record)
        elif turn.barge_in and not self._unfinished and await self._barge_in(record, turn.barge_in):
            record.outcome = "interrupted"
        else:
            await self._await_outcome(record, TURN_S)
        if turn.request is Request.ORDER and record.outcome:
            await self._decide(record, turn)
        await asyncio.gather(*under_way)
        for provider in self._world.providers.values():
            provider.faults.clear()
        self._world.text_faults.armed.clear()
        if not self._unfinished:
            checks.check_rate_limit(self._story, record, turn.faults)
        if record.outcome:
            for each in (*self._unfinished, record):
                each.outcome = each.outcome or self._outcome(each) or self._unanswered(each)
                if self._was_given_up(each):
                    each.outcome, each.is_acknowledged = "given up", False
                self._note(f"{each.topic}: {each.outcome}")
            self._unfinished = []

    async def _rest(self) -> None:
        person = self._person
        await person.wait_for(lambda: person.is_connected, TURN_S)

    async def _change_mode(self, mode: str) -> None:
        person = self._person
        if mode == "text":
            person.send(c.EndVoice())
            await asyncio.sleep(SETTLE_S)
            return
        since = len(person.received)
        person.send(c.StartVoice())
        await person.wait_for(lambda: self._has_voice(since), VOICE_S)
        person.mode = c.Mode.VOICE if person.state is not s.State.IDLE else c.Mode.TEXT
        await person.wait_for(lambda: person.rests, VOICE_S)

    def _has_voice(self, since: int) -> bool:
        """Whether the call has begun, or was refused."""
        told = self._person.received[since:]
        return self._person.state is not s.State.IDLE or any(
            isinstance(each, s.Notice | s.EndVoiceSession) for each in told
        )

    async def _ask(self, record: TurnRecord, *, is_spoken: bool) -> None:
        person = self._person
        record.is_spoken = is_spoken and person.mode is c.Mode.VOICE
        if record.is_spoken:
            await person.speak(record.text)
            return
        while not person.send(c.TextMessage(record.text)):
            await person.wait_for(lambda: person.is_connected, TURN_S)
        record.is_acknowledged = True

    async def _await_outcome(self, record: TurnRecord, limit_s: float) -> None:
        """Waits until the turn is over, one way or the other."""
        person, loop = self._person, asyncio.get_running_loop()
        deadline_s = loop.time() + limit_s
        while loop.time() < deadline_s:
            await person.wait_for(
                lambda: person.is_connected and person.rests and self._outcome(record) is not None,
                min(UNHEARD_S, deadline_s - loop.time()),
            )
            await asyncio.sleep(SETTLE_S)
            outcome = self._outcome(record)
            if person.is_connected and person.rests:
                if outcome is not None:
                    record.outcome = outcome
                    return
                if not record.is_acknowledged:
                    record.outcome = "unheard"
                    return
                record.outcome = "cancelled" if self._was_cancelled(record) else "silent"
                return
        record.outcome = "stuck"
        told = [type(each).__name__ for each in person.received[record.since :]][-6:]
        self._story.problems.append(f"stuck: {record.text!r} in state {person.state}, after {told}")

    def _unanswered(self, record: TurnRecord) -> str:
        """What became of a request after which the user did not wait, and which has no answer."""
        told = self._person.received[record.since :]
        is_cut = any(isinstance(each, s.StateChanged) and each.state is s.State.INTERRUPTED for each in told)
        has_hung_up = any(isinstance(each, s.EndVoiceSession) and each.reason == "user_request" for each in told)
        if is_cut or has_hung_up:
            return "interrupted"
        return "cancelled" if self._was_cancelled(record) else "silent"

    def _was_given_up(self, record: TurnRecord) -> bool:
        """Whether the user has interrupted or hung up while it waited in the queue, and was told that it is gone."""
        person = self._person
        told = person.received[record.since :]
        has_waited = any(isinstance(each, s.Queued) and record.text in _texts(each) for each in told)
        was_begun = any(isinstance(each, s.Transcript) and each.text == record.text for each in told)
        has_stopped = any(at_s >= record.asked_s for at_s in person.stopped_s)
        return has_waited and not was_begun and has_stopped and record.text not in [each.text for each in person.queue]

    def _was_cancelled(self, record: TurnRecord) -> bool:
        """Whether a provider has cancelled its call, and therefore owes no answer."""
        return any(
            entry["event"] == "fault" and entry["action"] == "CancelToolCall" and entry["at_s"] >= record.asked_s
            for provider in self._world.providers.values()
            for entry in provider.log.since()
        )

    def _outcome(self, record: TurnRecord) -> str | None:
        told = self._person.received[record.since :]
        if record.is_spoken:
            finals = [each.text for each in told if isinstance(each, s.Transcript) and each.is_final]
            record.is_acknowledged |= record.text.lower() in finals
        if any(isinstance(each, s.Response) and record.topic in words_of(each.text) for each in told):
            return "answered"
        if any(isinstance(each, s.ConfirmationRequest) and record.topic in each.args.values() for each in told):
            return "asked back"
        errors = [each.code for each in told if isinstance(each, s.Error)]
        if errors:
            return f"error {errors[-1]}"
        return None

    async def _barge_in(self, record: TurnRecord, how: BargeIn) -> bool:
        """Returns whether there was an answer to speak over."""
        person = self._person
        if not await person.wait_for(lambda: person.state is s.State.SPEAKING and person.is_playing, UNHEARD_S):
            return False
        await asyncio.sleep(0.9)
        self._outcome(record)
        if how is BargeIn.BUTTON:
            person.send(c.Interrupt())
            await asyncio.sleep(SETTLE_S)
        return True

    async def _decide(self, record: TurnRecord, turn: PlannedTurn) -> None:
        asked = [each for each in self._person.received[record.since :] if isinstance(each, s.ConfirmationRequest)]
        if not asked:
            return
        words = "yes" if turn.approves else "no"
        if turn.decides_in_words and turn.is_spoken and self._person.mode is c.Mode.VOICE:
            await self._person.speak(words)
        elif turn.decides_in_words:
            self._person.send(c.TextMessage(words))
        else:
            self._person.send(c.Confirm(asked[-1].confirmation_token, turn.approves))
        await asyncio.sleep(SETTLE_S)
        await self._person.wait_for(lambda: self._person.rests and self._person.is_connected, TURN_S)

    # Faults.

    def _arm(self, faults: tuple[Fault, ...]) -> "Iterator[Any]":
        for fault in faults:
            match fault:
                case Armed(trigger=trigger, action=action):
                    for provider in self._world.providers.values():
                        if type(action) in provider.known and trigger.occasion in provider.occasions:
                            provider.arm(trigger, action)
                case Timed():
                    yield self._perform_later(fault)
                case ClientDrop():
                    yield self._drop_client(fault)
                case TextFault():
                    self._world.text_faults.armed.append(fault)
                case Renewal():
                    yield self._renew(fault)

    async def _perform_later(self, fault: Timed) -> None:
        await asyncio.sleep(fault.after_s)
        for provider in self._world.providers.values():
            if type(fault.action) in provider.known:
                await provider.perform(fault.action)

    async def _renew(self, fault: Renewal) -> None:
        await asyncio.sleep(fault.after_s)
        if self._person.renew_model():
            self._count("renewal")

    async def _drop_client(self, fault: ClientDrop) -> None:
        await asyncio.sleep(fault.after_s)
        person, (one, two) = self._person, self._world.processes
        if not person.is_connected:
            return
        before = person.server
        person.drop()
        # A session in which nothing was said is not stored: only its own process knows it, and not for long.
        is_stored = bool(person.every(s.Transcript))
        to_other = fault.to_other_process and is_stored
        away_s = fault.away_s if is_stored else min(fault.away_s, UNSTORED_AWAY_S)
        self._count(f"client drop{' to another process' if to_other else ''}")
        self._note(f"client drops for {away_s} s")
        await asyncio.sleep(away_s)
        if not person.is_connected:
            there = (two if before is one else one) if to_other else before
            assert there is not None
            await person.enter(there)
            self._note(f"client is back at {'one' if there is one else 'two'}")

    def _provider_log(self) -> Iterator[str]:
        for name, provider in self._world.providers.items():
            for entry in provider.log.since():
                if "'audio': {'data'" not in str(entry) and "input_audio_buffer.append" not in str(entry):
                    said = {key: value for key, value in entry.items() if key not in ("number", "at_s")}
                    yield f"{name} {entry['at_s']:.3f} {str(said)[:300]}"

    def _count(self, fault: str) -> None:
        self._story.faults[fault] += 1

    # The end.

    async def _end_in_calm(self) -> None:
        """The chaos is over: a question typed, and one in a new call, are answered in time."""
        person = self._person
        await person.wait_for(lambda: person.is_connected and person.rests, TURN_S)
        for mode in (c.Mode.TEXT, c.Mode.VOICE):
            if mode is c.Mode.TEXT:
                person.send(c.EndVoice())
                await asyncio.sleep(COOLED_S)
            else:
                await self._change_mode("voice")
            record = TurnRecord(RECALL, "asked", since=len(person.received))
            await self._ask(record, is_spoken=True)
            await self._await_outcome(record, CALM_S)
            self._note(f"in calm, {mode}: {record.outcome}")
            if record.outcome != "answered" or person.mode is not mode:
                self._story.problems.append(f"stuck: in calm, a question in {mode} ended as {record.outcome!r}")
                continue
            answer = [each.text for each in person.received[record.since :] if isinstance(each, s.Response)][-1]
            checks.check_recall(self._story, answer, mode)

    async def _check(self) -> None:
        assert self._person.session is not None
        stored = await self._world.database.conversations.turns(self._person.session.conversation_id)
        self._story.faults += self._world.text_faults.happened
        for name, provider in self._world.providers.items():
            for entry in provider.log.since():
                if entry["event"] == "fault":
                    self._count(_name(entry["action"], entry["settings"]))
                elif entry["event"] == "refused":
                    self._count(f"refuse {entry['status']}")
            checks.check_results(self._story, name, provider.log.since())
        checks.check_transcript(self._story, self._person, stored)
        checks.check_tools(self._story, self._world.tools)
        checks.check_speech(self._story, self._person)
        checks.check_greeting(self._story, self._person)
        checks.check_energy(self._story, self._person)
        self._story.problems += self._person.problems
        self._story.details += [f"{each.role}: {each.text}" for each in stored]
        for turn in sorted(self._person.heard):
            self._note(f"heard in turn {turn}: {' '.join(self._person.words(turn))}")

    def _note(self, what: str) -> None:
        self._story.trace.append(f"{self._story.number} {asyncio.get_running_loop().time():.3f} {what}")


def _texts(queued: s.Queued) -> list[str]:
    return [each.text for each in queued.messages]


def _name(action: str, settings: dict[str, Any]) -> str:
    detail = settings.get("code") or settings.get("then") or settings.get("problem") or ""
    return f"{action} {detail}".strip()

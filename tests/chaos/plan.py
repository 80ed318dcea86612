"""What happens in a conversation: the requests, the faults, and when. All of it follows from the seed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final

from antiphon.sim import actions
from antiphon.sim.actions import Action
from antiphon.sim.script import Occasion, Trigger
from tests.chaos.assistant import TOPICS
from tests.chaos.text_faults import TextFault, TextFaultKind

MIN_TURNS: Final = 5
MAX_TURNS: Final = 8

CLOSES: Final = (
    (1000, ""),
    (1001, ""),
    (1001, "Your session hit the maximum duration of 60 minutes."),
    (1007, "Invalid session handle"),
    (1007, "Request contains an invalid argument."),
    (1008, "BidiGenerateContent session not found"),
    (1008, "Requested entity was not found."),
    (1008, "The operation was aborted."),
    (1008, "Connection aborted because the client failed to close the connection after receiving a GoAway signal"),
    (1011, ""),
    (1011, "Internal error encountered."),
    (1011, "Deadline expired before operation could complete."),
    (1011, "The service is currently unavailable."),
    (1012, ""),
    (1013, ""),
    (1014, ""),
    (4000, "something new"),
)
"""The closes that providers were seen to send, and some that they were not."""


class Request(StrEnum):
    """What the user wants."""

    TELL = "tell me about"
    LOOK_UP = "look up"
    BOOK = "book"
    ORDER = "order"


class BargeIn(StrEnum):
    BUTTON = "button"
    VOICE = "voice"
    """The next question is spoken over the answer."""


@dataclass(frozen=True, slots=True)
class Armed:
    """A fault that waits for its trigger."""

    trigger: Trigger
    action: Action


@dataclass(frozen=True, slots=True)
class Timed:
    """A fault that happens at a time after the request, on whatever is connected then."""

    after_s: float
    action: Action


@dataclass(frozen=True, slots=True)
class ClientDrop:
    """The client loses its connection, and comes back."""

    after_s: float
    away_s: float
    to_other_process: bool


@dataclass(frozen=True, slots=True)
class Renewal:
    """The user asks for a new session of the model, with the same context."""

    after_s: float


Fault = Armed | Timed | ClientDrop | TextFault | Renewal


@dataclass(frozen=True, slots=True)
class PlannedTurn:
    request: Request
    topic: str
    is_spoken: bool
    """In text mode the request is typed all the same."""
    mode: str | None
    """The mode to change to before the request, "voice" or "text"."""
    faults: tuple[Fault, ...]
    barge_in: BargeIn | None
    approves: bool
    """Whether the user approves what must be approved."""
    decides_in_words: bool
    """Whether the user says "yes" or "no" instead of pressing a button."""
    is_hasty: bool
    """Whether the next request is typed before this one is answered."""

    @property
    def text(self) -> str:
        return f"{self.request} {self.topic}"


def make_plan(random: Random) -> list[PlannedTurn]:
    topics = random.sample(TOPICS, random.randint(MIN_TURNS, MAX_TURNS))
    turns: list[PlannedTurn] = []
    is_voice = False
    for place, topic in enumerate(topics):
        changes = random.random() < (0.7 if place == 0 else 0.1 if is_voice else 0.6)
        mode = ("text" if is_voice else "voice") if changes else None
        is_voice = is_voice is not changes
        turns.append(_plan_turn(random, topic, mode, is_voice=is_voice))
    return turns


def _plan_turn(random: Random, topic: str, mode: str | None, *, is_voice: bool) -> PlannedTurn:
    request = random.choices(list(Request), (45, 15, 28, 12))[0]
    count = random.choices((0, 1, 2), (10, 60, 30))[0] if is_voice else random.choices((0, 1), (30, 70))[0]
    return PlannedTurn(
        request=request,
        topic=topic,
        is_spoken=random.random() < 0.6,
        mode=mode,
        faults=tuple(fault for _ in range(count) for fault in _pick_fault(random, request, is_voice=is_voice)),
        barge_in=random.choice(list(BargeIn)) if is_voice and random.random() < 0.15 else None,
        approves=random.random() < 0.7,
        decides_in_words=random.random() < 0.5,
        is_hasty=random.random() < 0.1,
    )


def _pick_fault(random: Random, request: Request, *, is_voice: bool) -> Sequence[Fault]:
    faults = _FAULTS if is_voice else _TEXT_FAULTS
    make = random.choices(list(faults), list(faults.values()))[0]
    return make(random, request)


def _moment(random: Random, request: Request, action: Action) -> Fault:
    """Some moment of a turn: at a time, in mid-sentence, or at a tool call."""
    chances: list[Callable[[], Fault]] = [
        lambda: Timed(round(random.uniform(0.0, 5.0), 2), action),
        lambda: Armed(Trigger(Occasion.AUDIO_CHUNK, random.randint(1, 6)), action),
    ]
    if request is not Request.TELL:
        chances += [
            lambda: Armed(Trigger(Occasion.SERVER_MESSAGE, "tool_call"), action),
            lambda: Armed(Trigger(Occasion.CLIENT_MESSAGE, "tool_result"), action),
        ]
    return random.choice(chances)()


def _close(random: Random) -> Action:
    code, reason = random.choice(CLOSES)
    return actions.Close(code=code, reason=reason)


def _broken(random: Random) -> Action:
    return random.choice((actions.Reset(), actions.HalfFrame(), _close(random)))


def _drop_client(random: Random) -> ClientDrop:
    away_s = random.choices((0.1, 1.0, 4.0, 20.0, 130.0), (30, 30, 20, 12, 8))[0]
    return ClientDrop(round(random.uniform(0.0, 5.0), 2), away_s, to_other_process=random.random() < 0.35)


def _fail_text(random: Random) -> TextFault:
    kind = random.choices(list(TextFaultKind), (40, 20, 40))[0]
    return TextFault(kind, after_events=random.randint(0, 12), retry_after_s=random.choice((None, 2, 30)))


def _reconnects(random: Random, request: Request, *others: Fault) -> Sequence[Fault]:
    """A fault that concerns the next connection, and the loss of this one."""
    return [*others, _moment(random, request, _broken(random))]


def _go_away(random: Random, request: Request) -> Sequence[Fault]:
    left_s, then = round(random.uniform(0.5, 5.0), 1), random.choice(list(actions.Then))
    return [_moment(random, request, actions.GoAway(seconds_left=left_s, then=then))]


def _refused(random: Random, request: Request) -> Sequence[Fault]:
    refusal = actions.Refuse(status=random.choice((429, 429, 500, 503)), retry_after_s=random.choice((None, 2, 30)))
    return _reconnects(random, request, Armed(Trigger(Occasion.CONNECT), refusal))


def _dead_handle(random: Random, request: Request) -> Sequence[Fault]:
    rejected = actions.RejectHandle(problem=random.choice(list(actions.HandleProblem)))
    return _reconnects(random, request, Armed(Trigger(Occasion.RESUME), rejected))


def _repeated_call(random: Random, request: Request) -> Sequence[Fault]:
    again = actions.DuplicateToolCall(new_id=random.random() < 0.5)
    if random.random() < 0.4:
        return [Armed(Trigger(Occasion.SERVER_MESSAGE, "tool_call"), again)]
    return _reconnects(random, request, Armed(Trigger(Occasion.RESUMED), again))


def _odd_call(random: Random, request: Request) -> Sequence[Fault]:
    odd = random.choice((actions.CancelToolCall(), actions.ToolCallWithoutId(), actions.SpeechAndToolCall()))
    return [Armed(Trigger(Occasion.SERVER_MESSAGE, "tool_call"), odd)]


def _slow(random: Random, request: Request) -> Sequence[Fault]:
    slow: Sequence[Action] = (
        actions.Stall(seconds=1.0),
        actions.Stall(seconds=round(random.uniform(0.2, 3.0), 1)),
        actions.SlowPongs(seconds=round(random.uniform(1, 25), 1)),
        actions.NoPongs(),
    )
    return [_moment(random, request, random.choice(slow))]


_FAULTS: Final[Mapping[Callable[[Random, Request], Sequence[Fault]], int]] = {
    _go_away: 16,
    lambda random, request: [_moment(random, request, _broken(random))]: 18,
    lambda random, request: [_moment(random, request, actions.Quota())]: 8,
    lambda random, request: [_moment(random, request, actions.Expire())]: 4,
    _refused: 9,
    _dead_handle: 8,
    _repeated_call: 8,
    _odd_call: 6,
    _slow: 8,
    lambda random, request: [_moment(random, request, actions.Malformed())]: 3,
    lambda random, request: [_moment(random, request, actions.Silence())]: 2,
    lambda random, request: _reconnects(random, request, Armed(Trigger(Occasion.RESUMED), actions.Greet())): 4,
    lambda random, request: _reconnects(random, request, Armed(Trigger(Occasion.RESUMED), actions.Replay())): 4,
    lambda random, request: [_drop_client(random)]: 18,
    lambda random, request: [Renewal(round(random.uniform(0.0, 5.0), 2))]: 4,
}
"""The faults of a call, and how often each is chosen."""

_TEXT_FAULTS: Final[Mapping[Callable[[Random, Request], Sequence[Fault]], int]] = {
    lambda random, request: [_drop_client(random)]: 50,
    lambda random, request: [_fail_text(random)]: 35,
    lambda random, request: [_drop_client(random), _fail_text(random)]: 10,
    lambda random, request: [Renewal(round(random.uniform(0.0, 2.0), 2))]: 5,
}
"""The faults of a typed conversation."""

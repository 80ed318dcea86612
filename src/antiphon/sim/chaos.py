"""Random faults, the same for the same seed: for tests of many conversations, each of which must survive."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from antiphon.sim import actions
from antiphon.sim.actions import Action
from antiphon.sim.script import Fault, Occasion, Trigger, Vocabulary

CALM_SHARE: Final = 0.3
"""The share of connections without a fault, so that a client that reconnects gets through."""
MAX_SECONDS: Final = 8.0
MAX_STALL_S: Final = 3.0
MAX_CHUNK: Final = 6
CLOSE_CODES: Final = ((1011, "Internal error encountered."), (1012, ""), (1001, ""), (1006, ""), (1000, ""))

_CHOICES: Final[Mapping[str, Callable[[Random], Action]]] = {
    "close": lambda random: _close(random),
    "expire": lambda random: actions.Expire(),
    "quota": lambda random: actions.Quota(),
    "go_away": lambda random: actions.GoAway(
        seconds_left=round(random.uniform(0.5, 5), 1), then=random.choice(list(actions.Then))
    ),
    "stall": lambda random: actions.Stall(seconds=round(random.uniform(0.2, MAX_STALL_S), 1)),
    "silence": lambda random: actions.Silence(),
    "reset": lambda random: actions.Reset(),
    "malformed": lambda random: actions.Malformed(),
    "half_frame": lambda random: actions.HalfFrame(),
    "no_pongs": lambda random: actions.NoPongs(),
    "slow_pongs": lambda random: actions.SlowPongs(seconds=round(random.uniform(1, 25), 1)),
    "tool_call_without_id": lambda random: actions.ToolCallWithoutId(),
    "duplicate_tool_call": lambda random: actions.DuplicateToolCall(new_id=random.random() < 0.5),
    "cancel_tool_call": lambda random: actions.CancelToolCall(),
    "speech_and_tool_call": lambda random: actions.SpeechAndToolCall(),
    "two_responses": lambda random: actions.TwoResponses(),
    "greet": lambda random: actions.Greet(),
    "replay": lambda random: actions.Replay(),
    "refuse": lambda random: actions.Refuse(status=random.choice((429, 500, 503))),
    "reject_handle": lambda random: actions.RejectHandle(problem=random.choice(list(actions.HandleProblem))),
    "error_line": lambda random: actions.ErrorLine(),
    "tool_call_as_text": lambda random: actions.ToolCallAsText(style=random.choice(list(actions.TextStyle))),
}


def make_chaos(seed: int, vocabulary: Vocabulary) -> Callable[[int], list[Fault]]:
    """Returns a function that picks the faults of a connection, by the seed and the connection's number alone."""
    names = [name for name in _CHOICES if name in vocabulary.actions]

    def pick(connection: int) -> list[Fault]:
        random = Random(f"{seed}/{connection}")
        if random.random() < CALM_SHARE:
            return []
        action = _CHOICES[random.choice(names)](random)
        return [Fault(_pick_trigger(action, random, vocabulary), (action,), connection=connection)]

    return pick


def _pick_trigger(action: Action, random: Random, vocabulary: Vocabulary) -> Trigger:
    if isinstance(action, actions.Refuse):
        return Trigger(Occasion.CONNECT)
    if isinstance(action, actions.RejectHandle):
        return Trigger(Occasion.RESUME)
    if isinstance(action, actions.DuplicateToolCall):
        return Trigger(Occasion.SERVER_MESSAGE, "tool_call")
    if isinstance(action, actions.Greet | actions.Replay) and Occasion.RESUMED in vocabulary.occasions:
        return Trigger(Occasion.RESUMED)
    triggers = [
        Trigger(Occasion.SECONDS, round(random.uniform(0, MAX_SECONDS), 1)),
        Trigger(Occasion.SERVER_MESSAGES, random.randint(2, 30)),
        Trigger(Occasion.AUDIO_CHUNK, random.randint(1, MAX_CHUNK)),
        Trigger(Occasion.CLIENT_MESSAGES, random.randint(2, 200)),
    ]
    return random.choice([each for each in triggers if each.occasion in vocabulary.occasions])


def _close(random: Random) -> Action:
    code, reason = random.choice(CLOSE_CODES)
    # 1006 means that no close frame came, so it cannot be sent: the connection is cut instead.
    return actions.Reset() if code == 1006 else actions.Close(code=code, reason=reason)

"""What is left to do for a request that was completed after its first words were acted on: "set a timer for ten
minutes" … "called pasta"."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.models.builtin.context import DoneCall
from antiphon.models.builtin.understood import PlannedCall
from antiphon.models.builtin.undoing import can_follow, covers, undo
from antiphon.words.numbers import write_digits


@dataclass(frozen=True, slots=True)
class Plan:
    calls: tuple[PlannedCall, ...]
    """What is left to do: what was done too early is undone first."""
    kept: tuple[DoneCall, ...] = ()
    """What was done too early and cannot be undone."""
    is_blocked: bool = False
    """Whether nothing more is done for that reason: it would be done twice."""
    repeated: tuple[DoneCall, ...] = ()
    """What was done already and is wanted."""


def plan(
    wanted: Sequence[PlannedCall],
    done: Sequence[DoneCall],
    writes: Callable[[str], bool],
    earlier: Sequence[DoneCall] = (),
) -> Plan:
    """Returns what is left to do for the wanted calls after what was done for the first words.

    `earlier` is what was done before them. It stays, and what has undone it does, too.
    """
    left = tuple(call for call in wanted if not any(_is_same(each, call) for each in done))
    undoing, kept = list[PlannedCall](), list[DoneCall]()
    undoings = [found for call in (*earlier, *done) if (found := undo(call, corrects=True)) is not None]
    for early in _early((*wanted, *undoings), done, writes):
        found = undo(early, corrects=True)
        if found is not None:
            undoing.append(found)
        elif any(can_follow(call, early) for call in wanted):
            kept.append(early)
        else:
            return Plan((), (early,), is_blocked=True)
    repeated = tuple(each for each in done if any(_is_same(each, call) for call in wanted))
    return Plan((*undoing, *left), tuple(kept), repeated=repeated)


def resume(
    wanted: Sequence[PlannedCall],
    before: Sequence[DoneCall],
    batches: Sequence[Sequence[DoneCall]],
    writes: Callable[[str], bool],
    earlier: Sequence[DoneCall] = (),
) -> tuple[Plan, bool]:
    """Returns what the last of the batches, the calls made since the user spoke, was made for, and True; or what is
    left to do, and False. The first batches may have been made for the first words of the request. `before` are the
    calls of an answer that had begun when the user completed the request."""
    done = list(before)
    current, is_carried_out = plan(wanted, done, writes, earlier), False
    for batch in batches:
        made = [(call.tool_id, call.args) for call in batch]
        is_carried_out = made == [(call.tool_id, call.args) for call in current.calls]
        done += batch
        if not is_carried_out:
            current = plan(wanted, done, writes, earlier)
    return current, is_carried_out


def _early(
    wanted: Sequence[PlannedCall], done: Sequence[DoneCall], writes: Callable[[str], bool]
) -> Iterator[DoneCall]:
    """Yields what was done although it is not wanted, and was not undone since."""
    for call in done:
        found = undo(call, corrects=True)
        is_undone = found is not None and any(_is_same(each, found) for each in done)
        is_wanted = any(_is_same(call, each) or covers(each, call) for each in wanted)
        if writes(call.tool_id) and call.may_have_acted and not is_undone and not is_wanted:
            yield call


def _is_same(done: DoneCall, planned: PlannedCall) -> bool:
    return done.tool_id == planned.tool_id and _plain(done.args) == _plain(planned.args)


def _plain(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as they can be compared: "ten minutes" are 10 minutes."""
    return {name: write_digits(value.lower()) if isinstance(value, str) else value for name, value in args.items()}

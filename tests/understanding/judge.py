"""Judges how the offline assistant understands an evaluation set. Nobody looks at the sentences and failures of the set
"blind" while the assistant is being improved; the other sets have been read.

python -m tests.understanding.judge [--set NAME] [--failures FILE] [--only requests|no_requests|dialogues]
"""

import argparse
import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import permutations
from pathlib import Path
from typing import Any, Final

import yaml

from antiphon.telemetry import log
from antiphon.tools.spec import Mode
from tests.understanding.meaning import has_number, matches, misses
from tests.understanding.world import Conversation, Ran, Turn

FOLDER: Final = Path(__file__).parent
SETS: Final = {name: FOLDER / name for name in ("first", "second", "third", "blind")}
FILES: Final = ("requests", "no_requests", "dialogues")
ANSWERS: Final = "answers"
"""The group of requests.yaml in which any tool that writes nothing may be called."""
SEVERAL: Final = "several"
NOT_UNDERSTOOD: Final = r"\bi don't know (?:that|how to do that)\b|\bdid you mean\b|\bi (?:didn't|don't) understand\b"
"""Replies that match a loose pattern only by chance, by what they suggest."""
ASKS: Final = r"\bdid you mean\b"


class Verdict(StrEnum):
    RIGHT = "right"
    WRONG_TOOL = "wrong tool"
    WRONG_ARGUMENTS = "wrong arguments"
    NOTHING = "nothing"
    ASKED = "asked whether it was meant"


@dataclass(frozen=True, slots=True)
class Expected:
    """What one utterance must lead to."""

    calls: tuple[tuple[tuple[str, ...], Mapping[str, Any]], ...] = ()
    """The calls, each as the tools of which one must run, and what it must be like."""
    may_read: bool = False
    """Whether tools that write nothing may run, too."""
    may_ask: bool = False
    """Whether a call may be made that does nothing, such as one that is refused for what is missing."""
    may: tuple[str, ...] = ()
    """Tools that may run beside them, such as one that undoes what is corrected."""
    answer: str | None = None
    """What the reply must match."""
    result: float | None = None
    """A number that the reply must have."""


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation, of which some utterances are judged."""

    file: str
    group: str
    turns: tuple[tuple[str, Expected | None], ...]
    mode: Mode


@dataclass(frozen=True, slots=True)
class Judged:
    case: Case
    turn: Turn
    verdict: Verdict
    is_wrong_action: bool
    why: str = ""

    def to_json(self) -> str:
        ran = [[each.name, each.call.args, each.result.ok] for each in self.turn.ran]
        before = [said for said, _ in self.case.turns]
        return json.dumps(
            {
                "file": self.case.file,
                "group": self.case.group,
                "verdict": "WRONG ACTION" if self.is_wrong_action else self.verdict,
                "say": self.turn.said if len(before) == 1 else before[: before.index(self.turn.said) + 1],
                "why": self.why,
                "ran": ran,
                "reply": self.turn.reply,
            },
            ensure_ascii=False,
        )


def read_cases(only: str | None = None, folder: Path = SETS["first"]) -> list[Case]:
    readers: Mapping[str, Callable[[Any], Iterator[Case]]] = {
        "requests": _requests,
        "no_requests": _no_requests,
        "dialogues": _dialogues,
    }
    return [case for name in FILES if only in (None, name) for case in readers[name](_load(folder, name))]


async def judge(case: Case) -> list[Judged]:
    """Holds a conversation, and judges its utterances as far as something is expected of them."""
    judged = []
    async with Conversation(case.mode) as conversation:
        for said, expected in case.turns:
            turn = await conversation.say(said)
            if expected is not None:
                verdict, why = verdict_on(expected, turn)
                judged.append(Judged(case, turn, verdict, is_wrong_action(expected, turn), why))
    return judged


async def judge_all(cases: Sequence[Case]) -> list[Judged]:
    return [each for case in cases for each in await judge(case)]


def share_right(judged: Sequence[Judged]) -> float:
    return sum(each.verdict is Verdict.RIGHT for each in judged) / max(1, len(judged))


def share_wrong_actions(judged: Sequence[Judged]) -> float:
    return sum(each.is_wrong_action for each in judged) / max(1, len(judged))


def write_failures(judged: Sequence[Judged], path: Path) -> None:
    failed = [each.to_json() for each in judged if each.verdict is not Verdict.RIGHT or each.is_wrong_action]
    path.write_text("".join(f"{line}\n" for line in failed), encoding="utf-8")


def summarize(judged: Sequence[Judged]) -> str:
    """A table by file and group."""
    by: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    for each in judged:
        by[each.case.file, ""].append(each)
        by[each.case.file, each.case.group].append(each)
    lines = [_row(f"{file}/{group}" if group else file.upper(), some) for (file, group), some in by.items()]
    return "\n".join([*lines, _row("ALL", judged)])


def _row(name: str, judged: Sequence[Judged]) -> str:
    count = Counter(each.verdict for each in judged)
    wrong = sum(each.is_wrong_action for each in judged)
    others = [verdict for verdict in Verdict if verdict is not Verdict.RIGHT and count[verdict]]
    rest = ", ".join(f"{count[verdict]} {verdict}" for verdict in others)
    right = f"{count[Verdict.RIGHT]:>3} of {len(judged):<3} right ({share_right(judged):6.1%})"
    return f"{name:<36} {right}, {wrong} wrong action{'' if wrong == 1 else 's'}{f'; {rest}' if rest else ''}"


def verdict_on(expected: Expected, turn: Turn) -> tuple[Verdict, str]:
    if not turn.reply:
        return Verdict.NOTHING, "there is no answer"
    writes = [ran for ran in turn.ran if ran.writes and ran.name not in expected.may]
    if not expected.calls:
        unwanted = writes if expected.may_read else [ran for ran in turn.ran if ran.name not in expected.may]
        unwanted = [ran for ran in unwanted if ran.result.ok or not expected.may_ask]
        if unwanted:
            return Verdict.WRONG_TOOL, f"{unwanted[0].name} was called"
        return _verdict_by_reply(expected, turn)
    pairs, missed = _pair(expected, turn)
    if not missed and len(pairs) == len(expected.calls):
        unwanted = [ran for ran in writes if ran not in [pair[1] for pair in pairs]]
        if not unwanted:
            return Verdict.RIGHT, ""
        return Verdict.WRONG_TOOL, f"{unwanted[0].name} was called, too"
    if missed:
        return Verdict.WRONG_ARGUMENTS, f"{', '.join(missed)} differ"
    wanted = " and ".join("/".join(tools) for tools, _ in expected.calls)
    if turn.ran:
        return Verdict.WRONG_TOOL, f"{wanted} expected"
    return Verdict.ASKED if matches(ASKS, turn.reply) else Verdict.NOTHING, f"{wanted} expected"


def _verdict_by_reply(expected: Expected, turn: Turn) -> tuple[Verdict, str]:
    pattern, number = expected.answer, expected.result
    if (pattern is None or pattern == ".") and number is None:
        return Verdict.RIGHT, ""
    if matches(NOT_UNDERSTOOD, turn.reply):
        return Verdict.ASKED if matches(ASKS, turn.reply) else Verdict.NOTHING, f"{pattern or number} expected"
    if pattern is not None and not matches(pattern, turn.reply):
        return Verdict.WRONG_ARGUMENTS if turn.ran else Verdict.NOTHING, f"the reply does not match {pattern}"
    if number is not None and not has_number(number, [turn.reply]):
        return Verdict.WRONG_ARGUMENTS if turn.ran else Verdict.NOTHING, f"the reply does not have {number}"
    return Verdict.RIGHT, ""


def _pair(expected: Expected, turn: Turn) -> tuple[list[tuple[int, Ran]], list[str]]:
    """Pairs what is expected with calls of these tools, in whichever way misses least; and what is missed then."""
    best: tuple[list[tuple[int, Ran]], list[str]] = ([], [])
    # A call that was corrected is the last one.
    ran = list(reversed(turn.ran))
    for order in permutations(range(len(ran)), min(len(ran), len(expected.calls))):
        pairs, missed = [], []
        for place, index in zip(range(len(expected.calls)), order, strict=False):
            tools, want = expected.calls[place]
            if ran[index].name in tools:
                pairs.append((place, ran[index]))
                missed += misses(want, ran[index], turn.reply)
        if (len(pairs), -len(missed)) > (len(best[0]), -len(best[1])):
            best = pairs, missed
    return best


def is_wrong_action(expected: Expected, turn: Turn) -> bool:
    """Whether something was changed that nobody asked for, or otherwise than it was asked for."""
    done = [ran for ran in turn.ran if ran.did_something and ran.name not in expected.may]
    pairs, _ = _pair(expected, turn)
    right = [ran for place, ran in pairs if not misses(expected.calls[place][1], ran, turn.reply)]
    return any(ran not in right for ran in done)


def _load(folder: Path, name: str) -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8"))
    return loaded


def _requests(groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Case]:
    for group, requests in groups.items():
        for each in requests:
            if group == ANSWERS:
                expected = _expect_reply(each.get("want", {}), may_read=True)
            elif group == SEVERAL:
                expected = _expect_calls(each)
            else:
                expected = _expect_calls({"tool": group, **each})
            yield Case("requests", group, ((each["say"], expected),), _mode(each))


def _no_requests(kinds: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> Iterator[Case]:
    for kind, groups in kinds.items():
        for group, utterances in groups.items():
            for each in utterances:
                may = tuple(each.get("may", ()))
                expected = Expected(may_read=kind == "no_writing", may=may, answer=each.get("answer"))
                yield Case("no_requests", f"{kind}/{group}", ((each["say"], expected),), _mode(each))


def _dialogues(groups: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]]) -> Iterator[Case]:
    for group, dialogues in groups.items():
        for turns in dialogues:
            said = tuple((each["say"], _expect_turn(each)) for each in turns)
            yield Case("dialogues", group, said, _mode(turns[0]))


def _expect_turn(turn: Mapping[str, Any]) -> Expected | None:
    tool = turn.get("tool")
    if tool in ("none", "any", "asks"):
        want = turn.get("want", {})
        answer = turn.get("setting", want.get("answer"))
        return _expect_reply({**want, "answer": answer}, may_read=tool == "any", may_ask=tool == "asks")
    return _expect_calls(turn) if turn.keys() & {"tool", "tools", "calls"} else None


def _expect_reply(want: Mapping[str, Any], *, may_read: bool, may_ask: bool = False) -> Expected:
    return Expected(may_read=may_read, may_ask=may_ask, answer=want.get("answer"), result=want.get("result"))


def _expect_calls(each: Mapping[str, Any]) -> Expected:
    calls = each.get("calls", [each])
    tools = [tuple(call.get("tools") or [call["tool"]]) for call in calls]
    wants = [call.get("want", {}) for call in calls]
    return Expected(calls=tuple(zip(tools, wants, strict=True)), may=tuple(each.get("may", ())))


def _mode(each: Mapping[str, Any]) -> Mode:
    return Mode(each.get("mode", Mode.TEXT))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=SETS, default="first", help="the evaluation set (default: %(default)s)")
    parser.add_argument("--failures", type=Path, help="write what is not right to this file, one JSON object a line")
    parser.add_argument("--only", choices=FILES, help="judge this file of it alone")
    options = parser.parse_args()
    log.configure(json=False, level="warning")
    judged = asyncio.run(judge_all(read_cases(options.only, SETS[options.set])))
    print(summarize(judged))
    if options.failures is not None:
        write_failures(judged, options.failures)


if __name__ == "__main__":
    main()

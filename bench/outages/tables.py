"""The figures as tables."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from bench.outages.judging import Verdict
from bench.outages.repeats import Repeat, percentile


def tabulate_calls(verdicts: Mapping[str, Sequence[Verdict]]) -> Table:
    """One row per question, and the sums."""
    table = Table("", *verdicts, title="What was heard of each answer, and the seconds of silence")
    for row in zip(*verdicts.values(), strict=True):
        table.add_row(row[0].name, *map(describe, row))
    table.add_section()
    for heading, cells in add_up(list(verdicts.values())).items():
        table.add_row(heading, *cells)
    return table


def describe(verdict: Verdict) -> str:
    told = f"{verdict.outcome} {verdict.silence_s:.1f}"
    told += ", said twice" if verdict.repeated else ""
    told += ", greeted" if verdict.greeted else ""
    return told + (f", {verdict.orders} runs" if verdict.orders > 1 else "")


def add_up(calls: Sequence[Sequence[Verdict]]) -> dict[str, list[str]]:
    return {
        "answers lost": [str(sum(each.outcome == "lost" for each in call)) for call in calls],
        "answers cut off": [str(sum(each.outcome == "cut" for each in call)) for call in calls],
        "answers said twice": [str(sum(each.repeated for each in call)) for call in calls],
        "tool calls run again": [str(sum(max(0, each.orders - 1) for each in call)) for call in calls],
        "greetings repeated": [str(sum(each.greeted for each in call)) for call in calls],
        "seconds of silence": [f"{sum(each.silence_s for each in call):.1f}" for call in calls],
    }


def tabulate_repeats(repeats: Sequence[Repeat], repeated: Mapping[str, Sequence[Verdict]]) -> Table:
    columns = ("times", "whole", "said twice", "p50 s", "p95 s", "longest s", "p95 wanted")
    table = Table("", *columns, title="The same fault again and again, with our server")
    for repeat in repeats:
        verdicts = repeated.get(repeat.name, ())
        seconds = [each for verdict in verdicts if (each := repeat.seconds(verdict)) is not None]
        whole = sum(verdict.outcome == "whole" for verdict in verdicts)
        cells = [str(len(verdicts)), str(whole), str(sum(verdict.repeated for verdict in verdicts))]
        cells += [f"{percentile(seconds, share):.2f}" if seconds else "" for share in (0.5, 0.95, 1.0)]
        table.add_row(repeat.name, *cells, judge_target(repeat, seconds))
    return table


def judge_target(repeat: Repeat, seconds: Sequence[float]) -> str:
    if repeat.p95_s is None or not seconds:
        return ""
    is_met = percentile(seconds, 0.95) <= repeat.p95_s
    return f"{repeat.p95_s:.1f} s, {'[green]met[/]' if is_met else '[red]missed[/]'}"

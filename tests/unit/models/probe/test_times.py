"""How the times of a model are judged."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from antiphon.models.base import Event, MessageComplete, Prompt, StopReason, TextDelta, TextProfile, TokensUsed
from antiphon.models.probe.report import Report
from antiphon.models.probe.text import TextProbe
from antiphon.models.providers.facts import ServerFacts
from antiphon.tools.spec import Mode
from antiphon.transcript import UserMessage

CHARACTERS_PER_S = 100
"""How fast a small model on a CPU reads."""


class SlowReader:
    """A model that reads slowly. With a prefix cache, it reads a prompt only once."""

    profile = TextProfile("slow", needs_network=False)

    def __init__(self, *, caches: bool) -> None:
        self._caches = caches
        self._read = ""

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        is_known = self._caches and self._read == prompt.system
        self._read = prompt.system
        await asyncio.sleep(0.1 if is_known else len(prompt.system) / CHARACTERS_PER_S)
        yield TextDelta("It is 21:47. ")
        await asyncio.sleep(1)
        yield TextDelta("Bye.")
        yield TokensUsed(100, 8)
        yield MessageComplete(StopReason.DONE)


async def probe(*, caches: bool, limit_s: float = 300) -> Report:
    prompt = Prompt("x" * 5_000, (UserMessage("Hello."),), (), Mode.TEXT)
    model = SlowReader(caches=caches)
    return await TextProbe(
        model, ServerFacts(), lambda text: prompt, tell=lambda step: None, limit_s=limit_s, nonce="0"
    ).run()


def seconds(report: Report, check: str) -> float:
    [value] = [finding.value for finding in report.findings if finding.check == check]
    assert value is not None
    return value / 1_000


async def test_the_first_reading_of_the_prompt_and_the_next_are_measured() -> None:
    report = await probe(caches=True)
    assert seconds(report, "all tools, first time") == pytest.approx(50, abs=1)
    assert seconds(report, "all tools, again") == pytest.approx(0.1, abs=0.01)
    assert [finding.value for finding in report.findings if finding.check == "speed"] == [8.0]


@pytest.mark.parametrize("caches", [True, False])
async def test_what_to_set_depends_on_the_prefix_cache(caches: bool) -> None:
    report = await probe(caches=caches)
    assert any("tools_per_turn" in sentence for sentence in report.advice)
    assert any("prefix cache" in sentence for sentence in report.advice) is not caches


async def test_a_step_that_takes_too_long_is_reported_and_the_rest_is_kept() -> None:
    report = await probe(caches=False, limit_s=20)
    assert report.ok
    assert report.findings[-1].check == "prompt with all tools"
    assert "did not finish an answer within 20 seconds" in report.findings[-1].text

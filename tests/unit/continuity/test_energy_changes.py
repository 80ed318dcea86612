"""How a continuous model walks down its ladder: by rate limits, by other failures, and by hand."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from antiphon.continuity.energy import COOL_DOWN_S, EnergyChange, EnergyReason
from antiphon.continuity.events import ConnectFailed
from antiphon.models.base import FailureKind, ModelError
from antiphon.models.live import Closed, CloseKind, UpstreamError
from antiphon.tools.spec import Mode
from tests.fakes.continuous import BEGUN, HISTORY, LONG, LOST, Provider, Talk, ask, ends, talking
from tests.fakes.scripted_live import PROFILE, Fail, HangUp, Hear, Pause, Resumable, Say, ScriptedLive, Step

BEST, GOOD, LOCAL = (replace(PROFILE, name=name) for name in ("best", "good", "local"))
LIMITED = UpstreamError("Too many.", CloseKind.QUOTA, retry_after_s=40)


def ladder(*scripts: Any, resumes: bool = False) -> tuple[Provider, Provider, Provider]:
    """Three models, with the script of the first connection to each."""
    profiles = (replace(BEST, resumes=resumes), replace(GOOD, resumes=resumes), LOCAL)
    given = [*scripts, *[None] * 3]
    best, good, local = (
        Provider(*([] if script is None else [script]), profile=profile)
        for profile, script in zip(profiles, given, strict=False)
    )
    return best, good, local


LIMITS = pytest.mark.parametrize(
    "limited",
    [
        [Pause(100), HangUp("quota", CloseKind.QUOTA, 40)],
        [Pause(100), Fail("Too many.", rate_limited=True, retry_after_s=40, kind=FailureKind.RATE_LIMITED)],
    ],
    ids=["close", "turn"],
)


@LIMITS
async def test_a_rate_limit_costs_one_level_and_the_next_model_answers(limited: list[Step]) -> None:
    best, good, local = ladder(limited, [Say(LONG)])
    async with talking(best, good, local) as talk:
        await ask(talk)
        assert talk.energy == [(3, 2)]
        assert talk.notices == ["model_switched"]
        assert (talk.text("t1"), ends(talk, "t1")) == (LONG, (1, 0))
        assert good.last.texts == ["hi"]
        assert local.made == []


async def test_a_rate_limit_at_connecting_costs_one_level() -> None:
    best, good, local = ladder(LIMITED)
    async with talking(best, good, local) as talk:
        assert talk.energy == [(3, 2)]
        assert talk.model.level == 2
        assert len(good.made) == 1
        assert local.made == []


async def test_an_energy_change_says_what_it_means() -> None:
    best, good, local = ladder(LIMITED, LIMITED, resumes=True)
    async with talking(best, good, local) as talk:
        first, second = talk.of(EnergyChange)
        assert first.again_in_s == pytest.approx(40, abs=0.1)
        assert structs.replace(first, again_in_s=40) == EnergyChange(
            mode=Mode.VOICE,
            level=2,
            previous=3,
            max=3,
            reason=EnergyReason.RATE_LIMITED,
            model="good",
            resumable=True,
            requires_fallback=False,
            again_in_s=40,
        )
        assert (second.level, second.model, second.resumable, second.requires_fallback) == (1, "local", False, True)


async def test_levels_fall_one_by_one_to_none() -> None:
    async with talking(*ladder(LIMITED, LIMITED, LIMITED)) as talk:
        assert talk.energy == [(3, 2), (2, 1), (1, 0)]
        assert talk.notices == ["model_switched", "model_switched", "energy_exhausted"]
        (failed,) = talk.of(ConnectFailed)
        assert failed.error.rate_limited
        assert "try again in 40 s" in str(failed.error)


async def test_a_call_that_runs_out_of_energy_is_over() -> None:
    quota: list[Step] = [Pause(100), HangUp("quota", CloseKind.QUOTA, 40)]
    async with talking(*ladder(quota, quota, quota)) as talk:
        await ask(talk)
        assert talk.energy == [(3, 2), (2, 1), (1, 0)]
        closed = talk.posted[-1]
        assert isinstance(closed, Closed)
        assert closed.kind is CloseKind.QUOTA
        await asyncio.sleep(120)
        assert talk.posted[-1] is closed


async def test_the_fallback_continues_from_a_summary() -> None:
    best, good, local = ladder(LIMITED, LIMITED)
    async with talking(best, good, local, history=HISTORY) as talk:
        assert talk.context.plans == [("best", False, False), ("good", False, False), ("local", True, False)]
        assert local.last.context is not None
        assert local.last.context.system == "A summary."


async def test_a_handle_is_tried_one_level_lower_and_not_on_the_fallback() -> None:
    quota: list[Step] = [Resumable("h1"), HangUp("quota", CloseKind.QUOTA)]
    best, good, local = ladder(quota, [HangUp("quota", CloseKind.QUOTA)], resumes=True)
    async with talking(best, good, local) as talk:
        await asyncio.sleep(1)
        assert good.last.resumed_with == "h1"
        assert local.last.resumed_with is None
        assert talk.model.handle is None


async def test_a_handle_that_is_refused_one_level_lower_is_replaced_by_the_conversation() -> None:
    best, good, local = ladder([Resumable("h1"), HangUp("quota", CloseKind.QUOTA)], resumes=True)
    good.then(UpstreamError("No such session.", CloseKind.DEAD_HANDLE))
    async with talking(best, good, local, history=HISTORY) as talk:
        await asyncio.sleep(1)
        assert talk.notices == ["model_switched", "could_not_resume"]
        assert talk.energy == [(3, 2)]
        assert len(good.made) == 2
        assert good.last.resumed_with is None


async def test_an_answer_cut_by_a_rate_limit_is_finished_by_the_next_model() -> None:
    cut: list[Step] = [Say(BEGUN, goes_on=True, audio_ms=1_000), HangUp("quota", CloseKind.QUOTA)]
    best, good, local = ladder(cut, [Say(LONG, audio_ms=7_600)])
    async with talking(best, good, local) as talk:
        await ask(talk)
        assert (talk.text("t1"), talk.voiced("t1")) == (LONG, LONG)


async def test_a_model_cools_down_for_all_sessions_of_the_process() -> None:
    best, good, local = ladder(LIMITED)
    async with talking(best, good, local) as talk:
        assert talk.pool.ladder.rungs[3].cooling_s() == pytest.approx(40, abs=0.1)
        assert talk.pool.ladder.best_level() == 2
        await asyncio.sleep(41)
        assert talk.pool.ladder.best_level() == 3
        change = talk.pool.reset()
        assert change is not None
        assert (change.previous, change.level, change.reason) == (2, 3, EnergyReason.RESET)


async def test_a_limit_without_a_time_cools_the_model_down_for_a_minute() -> None:
    best, good, local = ladder(UpstreamError("Too many.", CloseKind.QUOTA))
    async with talking(best, good, local) as talk:
        assert talk.pool.ladder.rungs[3].cooling_s() == pytest.approx(COOL_DOWN_S, abs=0.1)


# Other failures.


async def test_other_failures_cost_no_energy_but_another_model_is_used() -> None:
    best, good, local = ladder(LOST)
    async with talking(best, good, local) as talk:
        assert talk.energy == []
        assert talk.pool.level == 3
        assert talk.model.level == 2
        assert talk.notices == ["local_model"]


async def test_a_lost_model_is_tried_three_times_before_another_is_used() -> None:
    best, good, local = ladder(ScriptedLive(profile=BEST))
    best.then(*[LOST] * 10)
    async with talking(best, good, local) as talk:
        await asyncio.sleep(6)
        best.made[0]._hang_up(Closed("gone"))
        await asyncio.sleep(10)
        assert len(best.made) == 4
        assert talk.model.level == 2
        assert talk.energy == []
        assert talk.notices == ["reconnecting", "local_model", "reconnected"]


async def test_an_answer_that_another_model_finishes_is_joined_by_its_words() -> None:
    best, good, local = ladder(ScriptedLive([Say(BEGUN, goes_on=True, audio_ms=1_000), HangUp()], profile=BEST))
    best.then(*[LOST] * 10)
    good.then([Say(LONG, audio_ms=15_200)])
    async with talking(best, good, local) as talk:
        await ask(talk, seconds=20)
        assert (talk.text("t1"), talk.voiced("t1")) == (LONG, LONG)
        # The slower voice says the rest in four times the time.
        assert len(talk.pcm("t1")) / 2 / 22_050 == pytest.approx(1 + 15.2 * (1 - len(BEGUN) / len(LONG)), abs=0.5)


async def test_a_configuration_error_in_the_middle_passes_over_to_another_model() -> None:
    best, good, local = ladder([Pause(100), HangUp("The key is wrong.", CloseKind.CONFIGURATION)], [Say(LONG)])
    async with talking(best, good, local) as talk:
        await ask(talk)
        assert (talk.text("t1"), talk.energy) == (LONG, [])


async def test_a_configuration_error_without_another_model_ends_the_model() -> None:
    provider = Provider([HangUp("The key is wrong.", CloseKind.CONFIGURATION)])
    async with talking(provider) as talk:
        await asyncio.sleep(1)
        assert talk.posted[-1] == Closed("The key is wrong.", CloseKind.CONFIGURATION)
        assert len(provider.made) == 1


async def test_a_first_model_that_refuses_gives_way_to_the_next() -> None:
    best, good, local = ladder(ModelError("The key is wrong.", retryable=False, kind=FailureKind.REFUSED))
    async with talking(best, good, local) as talk:
        assert talk.model.profile.name == "good"
        assert talk.energy == []


# One model for all levels.


async def test_with_one_model_the_user_is_not_told_of_another() -> None:
    provider = Provider(LIMITED, LIMITED, LIMITED)
    talk = Talk(provider)
    await asyncio.sleep(3)
    assert talk.energy == [(3, 2), (2, 1), (1, 0)]
    assert talk.notices == ["energy_exhausted"]
    await talk.close()


async def test_one_model_is_not_asked_again_at_once_after_a_rate_limit() -> None:
    provider = Provider(LIMITED)
    talk = Talk(provider)
    await asyncio.sleep(3)
    assert provider.made_at_s[1] - provider.made_at_s[0] >= 0.27
    await talk.close()


# By hand.


async def test_a_level_chosen_by_hand_is_used_after_the_turn() -> None:
    best, good, local = ladder([Pause(0), Say(LONG, audio_ms=5_000)])
    async with talking(best, good, local) as talk:
        await ask(talk, seconds=0.5)
        talk.model.set_level(1)
        assert [change.reason for change in talk.of(EnergyChange)] == [EnergyReason.MANUAL]
        assert local.made == []
        await asyncio.sleep(5)
        assert talk.text("t1") == LONG
        assert talk.model.profile.name == "local"
        assert best.made[0].closed


async def test_a_level_chosen_while_connecting_is_used() -> None:
    best, good, local = ladder(ScriptedLive(profile=BEST, connect_s=5))
    async with talking(best, good, local) as talk:
        talk.model.set_level(2)
        await asyncio.sleep(1)
        assert talk.model.profile.name == "good"
        assert best.made[0].closed


async def test_level_zero_ends_the_model() -> None:
    async with talking(*ladder([Hear("hi"), Say(LONG)])) as talk:
        talk.model.set_level(0)
        await asyncio.sleep(1)
        closed = talk.posted[-1]
        assert isinstance(closed, Closed)
        assert "rate limit" not in closed.reason

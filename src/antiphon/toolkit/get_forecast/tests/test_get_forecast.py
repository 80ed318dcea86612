from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from antiphon.authoring.testing import load_module, make_context
from antiphon.tools.capabilities.weather import CurrentWeather, DayWeather, Place, Sky, Units, WeatherReport
from antiphon.tools.result import ToolResult

handler = load_module(Path(__file__).parents[1])

TODAY = date(2026, 1, 1)
SUN, RAIN = Sky("sunny", "sunshine"), Sky("raining", "rain")


class FakeWeather:
    def __init__(self, chances: Sequence[int | None]) -> None:
        self.chances = chances

    async def report(self, location: str | None) -> WeatherReport:
        days = tuple(
            DayWeather(
                day=TODAY + timedelta(days=number),
                low=float(number),
                high=10.0 + number,
                rain_chance_percent=chance,
                precipitation=0.0,
                wind_speed=10.0,
                sky=RAIN if chance is None or chance >= 50 else SUN,
                wet=chance is None or chance >= 50,
            )
            for number, chance in enumerate(self.chances)
        )
        now = CurrentWeather(datetime.fromisoformat("2026-01-01T13:00"), 11.8, 9.9, 71, 9.4, SUN)
        return WeatherReport(Place("Oslo", "", "Norway", 1.0, 2.0), Units.METRIC, now, days)


async def ask(days: int, chances: Sequence[int | None] = (0,) * 7) -> ToolResult:
    context = make_context(granted={"weather": FakeWeather(chances)})
    result: ToolResult = await handler.execute({"location": "Oslo", "days": days}, context)
    return result


@pytest.mark.parametrize(
    ("days", "chances", "spoken"),
    [
        (1, [0] * 7, "In Oslo, expect sunshine and 0 to 10 degrees today."),
        (2, [0, 80] * 3, "In Oslo, expect sunshine and 0 to 10 degrees today and rain and 1 to 11 tomorrow."),
        (
            3,
            [0, 80, 0],
            "In Oslo, expect sunshine and 0 to 10 degrees today, rain and 1 to 11 tomorrow, "
            "and sunshine and 2 to 12 on Saturday.",
        ),
        (7, [0] * 7, "Over the next 7 days in Oslo, expect 0 to 16 degrees. It should stay dry."),
        (7, [90] * 7, "Over the next 7 days in Oslo, expect 0 to 16 degrees. Rain is likely every day."),
        (
            5,
            [0, None, 0, 60, 0],
            "Over the next 5 days in Oslo, expect 0 to 14 degrees. Rain is likely tomorrow and on Sunday.",
        ),
    ],
)
async def test_few_days_are_told_one_by_one_and_many_are_summed_up(
    days: int, chances: list[int | None], spoken: str
) -> None:
    assert (await ask(days, chances)).spoken == spoken


async def test_the_data_has_as_many_days_as_were_asked_for() -> None:
    assert [day["weekday"] for day in (await ask(3)).data["days"]] == ["Thursday", "Friday", "Saturday"]


async def test_fewer_days_than_were_asked_for_are_no_failure() -> None:
    assert len((await ask(7, [0, 0])).data["days"]) == 2

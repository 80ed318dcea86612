"""Asking for states: what is on, open or locked, and how warm it is."""

from typing import Any

import pytest

from antiphon.clock import SystemClock
from antiphon.config import Home
from antiphon.services.home import TOKEN_VARIABLE, open_home
from antiphon.tools.errors import ErrorType
from antiphon.tools.spec import Mode
from tests.fakes.gates import Gate
from tests.fakes.home_assistant import entity
from tests.fakes.local_http import Reply
from tests.fakes.toolkit import built_in
from tests.unit.services.home.conftest import AtHome, failed

pytestmark = pytest.mark.real_time


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(
    ("args", "spoken"),
    [
        ({"entity": "front door", "expected": "locked"}, "Yes, the Front Door is locked."),
        ({"entity": "front door", "expected": "unlocked"}, "No, the Front Door is locked."),
        ({"entity": "kitchen light", "expected": "on"}, "No, the Kitchen Light is off."),
        ({"entity": "sofa lamp", "expected": "on"}, "Yes, the Sofa Lamp is on at 50 percent."),
        ({"entity": "tv", "expected": "on"}, "Yes, the TV is playing."),
        ({"entity": "garage door", "expected": "open"}, "No, the Garage Door is closed."),
        ({"entity": "bathroom window", "expected": "open"}, "Yes, the Bathroom Window is open."),
        ({"entity": "front door contact", "expected": "closed"}, "Yes, the Front Door Contact is closed."),
        ({"entity": "attic light", "expected": "on"}, "I can't tell: the Attic Light is not responding."),
        ({"entity": "blinds"}, "The Living Room Blinds is 60 percent open."),
        ({"entity": "thermostat"}, "The Thermostat is set to 20 degrees, and it is 19.5 degrees there."),
        ({"entity": "living room lights", "expected": "on"}, "2 of 3 are on: Sofa Lamp and Shelf Lamp."),
        ({"entity": "lights", "area": "bedroom", "expected": "off"}, "No, the Bedside Lamp is on at 100 percent."),
        ({"area": "bedroom", "about": "temperature"}, "The temperature in the Bedroom is 18.25 degrees."),
        ({"area": "hall", "about": "temperature"}, "The temperature in the Hall is 19.5 degrees."),
        ({"area": "bedroom", "about": "humidity"}, "The humidity in the Bedroom is 44 percent."),
        ({"area": "garage"}, "Everything in the garage is off."),
    ],
)
async def test_a_question_gets_an_answer_in_words(
    at_home: AtHome, args: dict[str, Any], spoken: str, mode: Mode
) -> None:
    result = await at_home.state(mode, **args)
    assert result.ok, result.error
    assert result.spoken == spoken


async def test_a_room_is_described_by_what_is_on(at_home: AtHome) -> None:
    result = await at_home.state(area="living room")
    assert result.spoken is not None
    assert result.spoken.startswith("In the living room, the Sofa Lamp is on at 50 percent, ")
    assert "Ceiling" not in result.spoken


async def test_the_data_has_states_in_words(at_home: AtHome) -> None:
    result = await at_home.state(entity="bathroom window")
    assert result.data == {
        "devices": [{"id": "binary_sensor.window", "name": "Bathroom Window", "area": "Bathroom", "state": "open"}]
    }


@pytest.mark.parametrize(
    ("args", "kind", "told"),
    [
        ({}, ErrorType.VALIDATION, "Which device or which room"),
        ({"entity": "dragon"}, ErrorType.NOT_FOUND, "I don't know a device called dragon."),
        ({"area": "dungeon"}, ErrorType.NOT_FOUND, "I don't know a room called dungeon."),
        ({"area": "kitchen", "about": "temperature"}, ErrorType.NOT_FOUND, "measures the temperature in the kitchen"),
        ({"entity": "front door", "expected": "purple"}, ErrorType.VALIDATION, "Invalid arguments"),
    ],
)
async def test_what_is_not_known_is_said(at_home: AtHome, args: dict[str, Any], kind: ErrorType, told: str) -> None:
    failure = failed(await at_home.state(**args))
    assert failure.type is kind
    assert told in failure.message


async def test_rooms_with_similar_names_are_asked_about(at_home: AtHome) -> None:
    at_home.home.entities = [entity("light.a", "A", "on", "Bedroom 1"), entity("light.b", "B", "on", "Bedroom 2")]
    failure = failed(await at_home.state(area="bedroom"))
    assert failure.message == "Which room do you mean: Bedroom 1 or Bedroom 2?"


async def test_a_state_is_fresh_after_a_change(at_home: AtHome) -> None:
    await at_home.state(entity="kitchen light")
    await at_home.control("on", entity="kitchen light")
    at_home.gate.next_turn()
    assert (await at_home.state(entity="kitchen light")).spoken == "The Kitchen Light is on."


async def test_the_areas_are_not_asked_for_every_time(at_home: AtHome) -> None:
    for name in ("kitchen light", "sofa lamp", "tv"):
        await at_home.state(entity=name)
    assert at_home.home.server.paths.count("/api/template") == 1


async def test_a_slow_home_is_given_up_in_voice(at_home: AtHome) -> None:
    at_home.home.replies["/api/states"] = Reply([], delay_s=10)
    result = await at_home.state(Mode.VOICE, entity="kitchen light")
    assert failed(result).type is ErrorType.TRANSIENT
    assert result.spoken == "That took too long, so I stopped waiting for it."


async def test_a_look_at_the_home_does_not_make_the_turn_untrusted(at_home: AtHome) -> None:
    await at_home.state(entity="kitchen light")
    assert not at_home.gate.session.ledger.untrusted


@pytest.mark.parametrize(
    ("settings", "env", "told", "advice"),
    [
        (Home(), {}, "I'm not connected to your home yet.", "home.url"),
        (Home(), {TOKEN_VARIABLE: "x"}, "I'm not connected to your home yet.", "home.url"),
        (Home(url="http://127.0.0.1:1"), {}, "the access token is missing", TOKEN_VARIABLE),
        (Home(url="http://127.0.0.1:1"), {TOKEN_VARIABLE: "ü"}, "the access token is missing", "Set it again"),
    ],
)
@pytest.mark.parametrize("tool", ["ha_state", "ha_control"])
async def test_a_home_that_is_not_set_up_says_what_to_set(
    tool: str, settings: Home, env: dict[str, str], told: str, advice: str
) -> None:
    async with open_home(settings, SystemClock(), env) as home:
        gate = Gate(built_in()[tool], offers={"home": lambda session, tool: home})
        args = {"entity": "lamp"} if tool == "ha_state" else {"entity": "lamp", "action": "on"}
        failure = failed(await gate.call(tool, args))
        await gate.executor.aclose()
    assert failure.type is ErrorType.PERMANENT
    assert told in failure.message
    assert advice in (failure.suggestion or "")

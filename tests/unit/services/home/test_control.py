"""Changing devices: what the words mean, what is called, and what needs a yes."""

from typing import Any

import pytest

from antiphon.clock import SystemClock
from antiphon.config import Home
from antiphon.services.home import open_home
from antiphon.tools.errors import ErrorType
from antiphon.tools.spec import Mode
from tests.fakes.gates import Gate
from tests.fakes.home_assistant import entity
from tests.fakes.local_http import Reply
from tests.fakes.toolkit import built_in
from tests.unit.services.home.conftest import AtHome, failed

pytestmark = pytest.mark.real_time


@pytest.mark.parametrize("mode", list(Mode))
async def test_a_light_is_turned_on(at_home: AtHome, mode: Mode) -> None:
    result = await at_home.control("on", mode, entity="the kitchen light")
    assert result.ok
    assert at_home.home.calls == [("light.turn_on", {"entity_id": ["light.kitchen"]})]
    assert result.spoken == "I've turned on the Kitchen Light."
    assert at_home.home.state("light.kitchen") == "on"


@pytest.mark.parametrize(
    ("action", "args", "called"),
    [
        ("off", {"entity": "sofa lamp"}, ("light.turn_off", ["light.sofa"], {})),
        ("off", {"entity": "light.sofa"}, ("light.turn_off", ["light.sofa"], {})),
        ("off", {"entity": "sofa lam"}, ("light.turn_off", ["light.sofa"], {})),
        ("on", {"entity": "Coffee Machine"}, ("switch.turn_on", ["switch.coffee"], {})),
        ("toggle", {"entity": "coffee machine in the kitchen"}, ("switch.toggle", ["switch.coffee"], {})),
        ("on", {"entity": "light", "area": "kitchen"}, ("light.turn_on", ["light.kitchen"], {})),
        (
            "off",
            {"entity": "all the lights", "area": "living room"},
            ("light.turn_off", ["light.sofa", "light.shelf", "light.ceiling"], {}),
        ),
        (
            "off",
            {"entity": "living room lights"},
            ("light.turn_off", ["light.sofa", "light.shelf", "light.ceiling"], {}),
        ),
        ("off", {"area": "living room"}, ("light.turn_off", ["light.sofa", "light.shelf", "light.ceiling"], {})),
        ("dim", {"entity": "bedroom", "value": 30}, ("light.turn_on", ["light.bed"], {"brightness_pct": 30})),
        ("dim", {"area": "the bed room", "value": 30}, ("light.turn_on", ["light.bed"], {"brightness_pct": 30})),
        ("dim", {"entity": "bedside lamp"}, ("light.turn_on", ["light.bed"], {"brightness_pct": 30})),
        (
            "set",
            {"entity": "thermostat", "value": 21},
            ("climate.set_temperature", ["climate.hall"], {"temperature": 21}),
        ),
        (
            "set",
            {"entity": "heating", "value": 21.5},
            ("climate.set_temperature", ["climate.hall"], {"temperature": 21.5}),
        ),
        ("set", {"entity": "bedroom fan", "value": 50}, ("fan.set_percentage", ["fan.bed"], {"percentage": 50})),
        (
            "set",
            {"entity": "tv", "value": 25},
            ("media_player.volume_set", ["media_player.tv"], {"volume_level": 0.25}),
        ),
        ("up", {"entity": "heating"}, ("climate.set_temperature", ["climate.hall"], {"temperature": 21})),
        ("down", {"entity": "thermostat"}, ("climate.set_temperature", ["climate.hall"], {"temperature": 19})),
        ("up", {"entity": "sofa lamp"}, ("light.turn_on", ["light.sofa"], {"brightness_pct": 70})),
        ("up", {"entity": "bedside lamp"}, ("light.turn_on", ["light.bed"], {"brightness_pct": 100})),
        ("down", {"entity": "kitchen light"}, ("light.turn_on", ["light.kitchen"], {"brightness_pct": 1})),
        ("up", {"entity": "bedroom fan"}, ("fan.set_percentage", ["fan.bed"], {"percentage": 20})),
        ("close", {"entity": "blinds"}, ("cover.close_cover", ["cover.blinds"], {})),
        ("set", {"entity": "blinds", "value": 50}, ("cover.set_cover_position", ["cover.blinds"], {"position": 50})),
        ("on", {"entity": "garage light"}, ("light.turn_on", ["light.garage"], {})),
    ],
)
async def test_the_words_lead_to_a_service_of_home_assistant(
    at_home: AtHome, action: str, args: dict[str, Any], called: tuple[str, list[str], dict[str, Any]]
) -> None:
    result = await at_home.control(action, **args)
    assert result.ok, result.error
    service, ids, data = called
    assert at_home.home.calls == [(service, {"entity_id": ids, **data})]


async def test_everything_in_a_room_leaves_out_what_is_guarded(at_home: AtHome) -> None:
    at_home.home.entities.append(entity("switch.door", "Kitchen Door Opener", "off", "Kitchen"))
    assert (await at_home.control("on", entity="everything", area="kitchen")).ok
    assert [data["entity_id"] for _, data in at_home.home.calls] == [["light.kitchen"], ["switch.coffee"]]


async def test_a_step_is_told_with_its_value(at_home: AtHome) -> None:
    assert (await at_home.control("up", entity="heating")).spoken == "I've turned up the Thermostat to 21 degrees."


async def test_lights_that_differ_keep_their_difference(at_home: AtHome) -> None:
    result = await at_home.control("down", entity="lights", area="bedroom")
    assert result.spoken == "I've turned down the Bedside Lamp to 80 percent."
    assert (await at_home.control("up", entity="living room lights")).spoken == (
        "I've turned up 3 lights in the Living Room."
    )


async def test_a_step_needs_to_know_the_value_before_it(at_home: AtHome) -> None:
    error = failed(await at_home.control("up", entity="tv"))
    assert error.message == "I don't know what the TV is set to now. To what should I set it?"
    assert at_home.home.calls == []


async def test_everything_in_the_whole_home_needs_a_yes(at_home: AtHome) -> None:
    asked = await at_home.control("off", entity="everything")
    assert at_home.home.calls == []
    done = await at_home.approve(asked)
    assert done.ok, done.error
    changed = {id for _, data in at_home.home.calls for id in data["entity_id"]}
    assert "light.sofa" in changed
    assert "lock.front" not in changed


GUARDED: list[tuple[str, dict[str, Any], str]] = [
    ("unlock", {"entity": "front door"}, "lock.front"),
    ("lock", {"entity": "front door"}, "lock.front"),
    ("unlock", {"entity": "Fort Knox"}, "lock.knox"),
    ("open", {"entity": "garage"}, "cover.garage"),
    ("open", {"entity": "the garage door"}, "cover.garage"),
    ("open", {"entity": "Big Bertha", "security": True}, "cover.bertha"),
    ("open", {"entity": "gate big bertha"}, "cover.bertha"),
    ("arm", {"entity": "alarm"}, "alarm_control_panel.home"),
    ("disarm", {"entity": "house alarm"}, "alarm_control_panel.home"),
    ("on", {"entity": "gate relay"}, "switch.gate_relay"),
    ("on", {"entity": "movie night scene"}, "scene.movie"),
    ("on", {"entity": "script leaving"}, "script.leave"),
]


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(("action", "args", "id"), GUARDED)
async def test_what_guards_a_house_moves_only_after_a_yes(
    at_home: AtHome, action: str, args: dict[str, Any], id: str, mode: Mode
) -> None:
    asked = await at_home.control(action, mode, **args)
    assert failed(asked).type is ErrorType.CONFIRMATION_REQUIRED
    assert at_home.home.calls == []
    done = await at_home.approve(asked)
    assert done.ok, done.error
    assert [data["entity_id"] for _, data in at_home.home.calls] == [[id]]


@pytest.mark.parametrize(
    ("action", "args"),
    [
        ("open", {"entity": "Big Bertha"}),
        ("open", {"entity": "cover.bertha"}),
        ("toggle", {"entity": "Bertha Big"}),
        ("set", {"entity": "Big Bertha", "value": 100}),
        ("open", {"area": "garden"}),
        ("on", {"entity": "Movie Night"}),
        ("on", {"entity": "Leaving"}),
        ("on", {"entity": "leavin"}),
    ],
)
async def test_a_guarded_device_by_a_harmless_name_is_not_moved(
    at_home: AtHome, action: str, args: dict[str, Any]
) -> None:
    failure = failed(await at_home.control(action, **args))
    assert failure.type is ErrorType.VALIDATION
    assert "ask you first" in failure.message
    assert at_home.home.calls == []


@pytest.mark.parametrize(
    "id", ["lock.x", "alarm_control_panel.x", "script.x", "scene.x", "automation.x", "group.x", "button.x"]
)
@pytest.mark.parametrize("action", ["on", "off", "toggle", "open", "close", "set", "dim", "stop"])
async def test_no_harmless_words_move_a_guarded_domain(at_home: AtHome, id: str, action: str) -> None:
    at_home.home.entities = [entity(id, "Nice Lamp", "off", "Kitchen")]
    words: list[dict[str, Any]] = [
        {"entity": "nice lamp"},
        {"entity": "everything"},
        {"area": "kitchen"},
        {"entity": "light"},
    ]
    for args in words:
        at_home.gate.next_turn()
        assert not (await at_home.control(action, value=50, **args)).ok
    assert at_home.home.calls == []


async def test_a_garage_door_that_is_called_a_roller_is_not_moved(at_home: AtHome) -> None:
    at_home.home.entities = [entity("cover.x", "Roller", "closed", "Kitchen", device_class="garage")]
    assert not (await at_home.control("open", entity="roller")).ok
    assert at_home.home.calls == []


@pytest.mark.parametrize("name", ["Garage-Door", "Gate (front)", "Front Door.", "The door's opener"])
async def test_punctuation_in_a_name_does_not_hide_a_guarded_device(at_home: AtHome, name: str) -> None:
    at_home.home.entities = [entity("cover.shelly1", name, "closed", "Kitchen")]
    assert not (await at_home.control("open", entity="cover.shelly1")).ok
    assert at_home.home.calls == []


async def test_a_group_with_a_guarded_device_in_it_is_not_moved(at_home: AtHome) -> None:
    at_home.home.entities = [
        entity("cover.x", "Roller", "closed", "Kitchen", device_class="garage"),
        entity("cover.y", "Blinds", "closed", "Kitchen", device_class="blind"),
        entity("cover.all", "All Covers", "closed", "Kitchen", entity_id=["cover.x", "cover.y"]),
    ]
    assert not (await at_home.control("open", entity="cover.all")).ok
    assert at_home.home.calls == []


async def test_a_group_of_harmless_devices_needs_no_yes(at_home: AtHome) -> None:
    at_home.home.entities = [
        entity("cover.y", "Left", "closed", "Kitchen", device_class="blind"),
        entity("cover.all", "Both Blinds", "closed", "Kitchen", entity_id=["cover.y"]),
    ]
    assert (await at_home.control("open", entity="cover.all")).ok


async def test_a_no_leaves_the_door_as_it_is(at_home: AtHome) -> None:
    asked = await at_home.control("unlock", entity="front door")
    request = failed(asked).confirmation_request
    assert request is not None
    assert request.preview == "Unlock the Front Door in the Hall?"
    await at_home.gate.executor.resolve(request.confirmation_token, False, at_home.gate.session)
    assert at_home.home.calls == []
    assert at_home.home.state("lock.front") == "locked"


async def ask(at_home: AtHome, action: str, **args: Any) -> str:
    request = failed(await at_home.control(action, **args)).confirmation_request
    assert request is not None
    return request.preview


@pytest.mark.parametrize(
    ("action", "args", "question"),
    [
        ("open", {"entity": "garage"}, "Open the Garage Door?"),
        ("open", {"entity": "big berta", "security": True}, "Open the Big Bertha gate in the Garden?"),
        ("on", {"entity": "movie night scene"}, "Turn on the Movie Night scene?"),
        ("lock", {"entity": "all locks"}, "Lock the Front Door in the Hall and the Fort Knox in the Study?"),
        ("set", {"entity": "gate big bertha", "value": 50}, "Set the Big Bertha gate in the Garden to 50 percent?"),
        ("on", {"entity": "light", "area": "garage", "security": True}, "Turn on the Garage Light?"),
    ],
)
async def test_the_question_names_what_was_found(
    at_home: AtHome, action: str, args: dict[str, Any], question: str
) -> None:
    assert await ask(at_home, action, **args) == question


async def test_a_question_about_many_devices_names_the_first(at_home: AtHome) -> None:
    at_home.home.entities = [entity(f"lock.n{number}", f"Number {number}", "locked") for number in range(1, 9)]
    question = await ask(at_home, "unlock", entity="all locks")
    assert question.startswith("Unlock the Number 1, the Number 2, ")
    assert question.endswith(" the Number 6, and 2 more?")


@pytest.mark.parametrize(
    ("action", "args", "kind"),
    [
        ("unlock", {"entity": "secret door"}, ErrorType.NOT_FOUND),
        ("lock", {"entity": "lock"}, ErrorType.VALIDATION),
        ("unlock", {"entity": "front door", "area": "dungeon"}, ErrorType.NOT_FOUND),
        ("unlock", {}, ErrorType.VALIDATION),
        ("unlock", {"ids": ["lock.front", "lock.gone"]}, ErrorType.NOT_FOUND),
    ],
)
async def test_nobody_is_asked_about_what_is_unknown_or_unclear(
    at_home: AtHome, action: str, args: dict[str, Any], kind: ErrorType
) -> None:
    assert failed(await at_home.control(action, **args)).type is kind


async def test_nobody_is_asked_where_no_home_is_configured() -> None:
    async with open_home(Home(), SystemClock(), {}) as home:
        gate = Gate(built_in()["ha_control"], offers={"home": lambda session, tool: home})
        failure = failed(await gate.call("ha_control", {"action": "unlock", "entity": "front door"}))
        await gate.executor.aclose()
    assert failure.type is ErrorType.PERMANENT
    assert failure.message == "I'm not connected to your home yet."


async def test_a_yes_is_for_the_device_that_the_question_named(
    at_home: AtHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.services.home.STATES_S", 0.0)
    asked = await at_home.control("open", entity="garage door")
    for each in at_home.home.entities:
        if each["entity_id"] == "cover.garage":
            each["attributes"]["friendly_name"] = "Old One"
    at_home.home.entities.append(entity("cover.other", "Garage Door", "closed", "Garage", device_class="garage"))
    assert (await at_home.approve(asked)).ok
    assert at_home.home.calls == [("cover.open_cover", {"entity_id": ["cover.garage"]})]


async def test_a_device_that_has_gone_since_the_question_is_not_replaced_by_another(
    at_home: AtHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.services.home.STATES_S", 0.0)
    asked = await at_home.control("unlock", entity="front door")
    at_home.home.entities = [each for each in at_home.home.entities if each["entity_id"] != "lock.front"]
    at_home.home.entities.append(entity("lock.other", "Front Door", "locked", "Hall"))
    assert failed(await at_home.approve(asked)).type is ErrorType.NOT_FOUND
    assert at_home.home.calls == []


async def test_after_a_web_page_a_yes_to_the_named_gate_opens_it_whatever_it_was_called(at_home: AtHome) -> None:
    await at_home.gate.call("read_page", {})
    asked = await at_home.control("open", entity="Big Bertha")
    assert "Big Bertha gate" in failed(asked).message
    assert (await at_home.approve(asked)).ok
    assert at_home.home.state("cover.bertha") == "open"


@pytest.mark.parametrize("ids", [["cover.bertha"], ["light.kitchen", "cover.bertha"], ["light.kitchen", "scene.movie"]])
async def test_ids_move_nothing_guarded_without_a_yes(at_home: AtHome, ids: list[str]) -> None:
    assert not (await at_home.control("toggle", ids=ids)).ok
    assert at_home.home.calls == []


async def test_after_a_web_page_even_a_light_needs_a_yes(at_home: AtHome) -> None:
    await at_home.gate.call("read_page", {})
    asked = await at_home.control("on", entity="kitchen light")
    assert failed(asked).type is ErrorType.CONFIRMATION_REQUIRED
    assert at_home.home.calls == []
    assert (await at_home.approve(asked)).ok


@pytest.mark.parametrize(
    ("action", "args", "kind", "told"),
    [
        ("on", {}, ErrorType.VALIDATION, "Which device or which room do you mean?"),
        ("on", {"entity": "lamp"}, ErrorType.VALIDATION, "Which one do you mean"),
        ("on", {"entity": "living room lamp"}, ErrorType.VALIDATION, "Which one do you mean"),
        ("on", {"entity": "flux capacitor"}, ErrorType.NOT_FOUND, "I don't know a device called flux capacitor."),
        ("on", {"entity": "light", "area": "dungeon"}, ErrorType.NOT_FOUND, "I don't know a room called dungeon."),
        ("open", {"entity": "kitchen light"}, ErrorType.NOT_FOUND, "I don't know a device called kitchen light."),
        ("set", {"entity": "thermostat", "value": 90}, ErrorType.VALIDATION, "only be set from 7 to 30"),
        ("set", {"entity": "thermostat"}, ErrorType.VALIDATION, "What should Thermostat be set to?"),
        ("dim", {"entity": "sofa lamp", "value": 101}, ErrorType.VALIDATION, "from 0 to 100 percent"),
        ("set", {"entity": "sofa lamp"}, ErrorType.VALIDATION, "To how many percent"),
        ("on", {"entity": "attic light"}, ErrorType.TRANSIENT, "Attic Light isn't responding at the moment."),
        ("explode", {"entity": "sofa lamp"}, ErrorType.VALIDATION, "Invalid arguments"),
    ],
)
async def test_what_cannot_be_done_is_said_and_changes_nothing(
    at_home: AtHome, action: str, args: dict[str, Any], kind: ErrorType, told: str
) -> None:
    failure = failed(await at_home.control(action, **args))
    assert failure.type is kind
    assert told in failure.message
    assert at_home.home.calls == []


async def test_a_question_names_what_could_be_meant(at_home: AtHome) -> None:
    failure = failed(await at_home.control("on", entity="living room lamp"))
    assert failure.message == "Which one do you mean: Ceiling, Shelf Lamp or Sofa Lamp?"
    assert failure.details is not None
    assert [each["id"] for each in failure.details["candidates"]] == ["light.ceiling", "light.shelf", "light.sofa"]


async def test_devices_of_the_same_name_are_told_apart_by_their_rooms(at_home: AtHome) -> None:
    at_home.home.entities += [entity("light.a", "Spot", "off", "Kitchen"), entity("light.b", "Spot", "off", "Hall")]
    failure = failed(await at_home.control("on", entity="spot"))
    assert failure.message == "Which one do you mean: Spot in the Kitchen or Spot in the Hall?"
    assert (await at_home.control("on", entity="spot", area="hall")).ok
    assert at_home.home.calls == [("light.turn_on", {"entity_id": ["light.b"]})]


SERVICE = "/api/services/light/turn_on"


@pytest.mark.parametrize(
    ("path", "reply", "kind", "partial"),
    [
        ("/api/states", Reply("401: Unauthorized", status=401), ErrorType.AUTH, False),
        ("/api/states", Reply("404: Not Found", status=404), ErrorType.PERMANENT, False),
        ("/api/states", Reply(status=500), ErrorType.TRANSIENT, False),
        ("/api/states", Reply("{broken"), ErrorType.TRANSIENT, False),
        ("/api/states", Reply({"not": "a list"}), ErrorType.TRANSIENT, False),
        ("/api/states", Reply(status=429, headers={"retry-after": "5"}), ErrorType.RATE_LIMIT, False),
        ("/api/template", Reply(status=500), ErrorType.TRANSIENT, False),
        (SERVICE, Reply("401: Unauthorized", status=401), ErrorType.AUTH, False),
        (SERVICE, Reply("400: Bad Request", status=400), ErrorType.PERMANENT, False),
        (SERVICE, Reply("500 Internal Server Error", status=500), ErrorType.TRANSIENT, True),
        (SERVICE, Reply(status=301, headers={"location": "https://home.example/"}), ErrorType.PERMANENT, False),
        (SERVICE, Reply(b"[", is_cut=True), ErrorType.TRANSIENT, True),
    ],
)
async def test_each_failure_of_home_assistant_has_its_type_and_a_sentence(
    at_home: AtHome, path: str, reply: Reply, kind: ErrorType, partial: bool
) -> None:
    at_home.home.replies[path] = reply
    result = await at_home.control("on", entity="kitchen light")
    failure = failed(result)
    assert (failure.type, failure.partial_side_effects) == (kind, partial)
    assert failure.message.endswith(".")
    assert at_home.home.state("light.kitchen") == "off"


async def test_a_home_that_is_not_reached_is_transient(at_home: AtHome) -> None:
    at_home.home.server.stop_listening()
    failure = failed(await at_home.control("on", entity="kitchen light"))
    assert failure.type is ErrorType.TRANSIENT
    assert failure.message == "I can't reach Home Assistant at the moment."


async def test_a_change_that_stops_half_way_says_so(at_home: AtHome) -> None:
    at_home.home.replies["/api/services/switch/turn_on"] = Reply("400: Bad Request", status=400)
    failure = failed(await at_home.control("on", entity="everything", area="kitchen"))
    assert failure.type is ErrorType.PERMANENT
    assert failure.partial_side_effects


async def test_an_action_may_take_longer_than_its_budget(at_home: AtHome) -> None:
    """It is not cut off in the middle of a write."""
    at_home.home.replies["/api/services/light/turn_on"] = Reply([], delay_s=1.0)
    assert (await at_home.control("on", Mode.VOICE, entity="kitchen light")).ok


async def test_without_the_rights_for_templates_names_still_work(at_home: AtHome) -> None:
    """Only administrators may render the template that lists the areas."""
    at_home.home.replies["/api/template"] = Reply("401: Unauthorized", status=401)
    assert (await at_home.control("on", entity="kitchen light")).ok
    assert failed(await at_home.control("on", area="kitchen")).type is ErrorType.NOT_FOUND


async def test_the_token_is_sent_and_never_told(at_home: AtHome) -> None:
    at_home.home.replies["/api/states"] = Reply("401: Unauthorized", status=401)
    failure = failed(await at_home.control("on", entity="kitchen light"))
    assert "HOME_ASSISTANT_TOKEN" in (failure.suggestion or "")
    assert "eyJ" not in str(failure)

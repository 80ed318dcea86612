"""States in words. Questions are tested with a home in tests/unit/services/home."""

from typing import Any

import pytest

from antiphon.toolkit.ha_state.states import describe, details_of, state_of
from antiphon.tools.capabilities.home import Device


def make_device(id: str, state: str, **attributes: Any) -> Device:
    return Device(id, "Thing", "", state, attributes)


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (make_device("light.a", "on"), "on"),
        (make_device("light.a", "on", brightness=128), "on at 50 percent"),
        (make_device("light.a", "off", brightness=None), "off"),
        (make_device("cover.a", "open", current_position=100), "open"),
        (make_device("cover.a", "open", current_position=30), "30 percent open"),
        (make_device("lock.a", "jammed"), "jammed"),
        (make_device("climate.a", "off", temperature=None, current_temperature=18), "off, and it is 18 degrees there"),
        (make_device("climate.a", "heat", temperature=21), "set to 21 degrees"),
        (make_device("sensor.a", "18.50", unit_of_measurement="°C"), "18.5 degrees"),
        (make_device("sensor.a", "44", unit_of_measurement="%"), "44 percent"),
        (make_device("sensor.a", "3.5", unit_of_measurement="kWh"), "3.5 kWh"),
        (make_device("sensor.a", "unknown", unit_of_measurement="°C"), "in an unknown state"),
        (make_device("binary_sensor.a", "on", device_class="motion"), "detecting motion"),
        (make_device("binary_sensor.a", "off", device_class="door"), "closed"),
        (make_device("binary_sensor.a", "on", device_class="lock"), "unlocked"),
        (make_device("binary_sensor.a", "unavailable", device_class="door"), "not responding"),
        (make_device("alarm_control_panel.a", "armed_away"), "armed"),
        (make_device("person.a", "not_home"), "away"),
        (make_device("weather.a", "partly_cloudy"), "partly cloudy"),
    ],
)
def test_a_state_is_said_as_people_say_it(device: Device, words: str) -> None:
    assert describe(device) == words


@pytest.mark.parametrize("brightness", ["bright", True, None, []])
def test_attributes_of_another_type_are_ignored(brightness: Any) -> None:
    assert details_of(make_device("light.a", "on", brightness=brightness)) == {}


def test_a_state_without_words_of_its_own_is_kept() -> None:
    assert state_of(make_device("vacuum.a", "docked")) == "docked"

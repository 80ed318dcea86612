from zoneinfo import ZoneInfo

import pytest

from antiphon.words.places import AMBIGUOUS, PLACES
from antiphon.words.zones import find_place, speak_zone


def key(name: str) -> str | None:
    place = find_place(name)
    return place.zone.key if place else None


@pytest.mark.parametrize("name", ["Asia/Tokyo", "asia/tokyo", "ASIA/TOKYO", " Asia/Tokyo "])
def test_an_iana_name_is_found_in_any_case(name: str) -> None:
    assert key(name) == "Asia/Tokyo"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Tokyo", "Asia/Tokyo"),
        ("New York", "America/New_York"),
        ("new york", "America/New_York"),
        ("Hong Kong", "Asia/Hong_Kong"),
        ("port au prince", "America/Port-au-Prince"),
        ("buenos aires", "America/Argentina/Buenos_Aires"),
    ],
)
def test_a_city_of_the_database_is_found_by_its_name_alone(name: str, expected: str) -> None:
    assert key(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("san francisco", "America/Los_Angeles"),
        ("Mumbai", "Asia/Kolkata"),
        ("Beijing", "Asia/Shanghai"),
        ("St. Louis", "America/Chicago"),
        ("Saint Louis", "America/Chicago"),
        ("Rio de Janeiro", "America/Sao_Paulo"),
        ("Washington, D.C.", "America/New_York"),
    ],
)
def test_a_well_known_city_needs_no_entry_in_the_database(name: str, expected: str) -> None:
    assert key(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Japan", "Asia/Tokyo"),
        ("Norway", "Europe/Oslo"),
        ("the UK", "Europe/London"),
        ("Germany", "Europe/Berlin"),
        ("China", "Asia/Shanghai"),
        ("Trinidad and Tobago", "America/Port_of_Spain"),
        ("California", "America/Los_Angeles"),
        ("Hawaii", "Pacific/Honolulu"),
    ],
)
def test_a_country_or_state_with_one_obvious_zone_is_found(name: str, expected: str) -> None:
    assert key(name) == expected


@pytest.mark.parametrize("name", AMBIGUOUS.split(", "))
def test_a_name_of_several_zones_is_not_guessed(name: str) -> None:
    assert find_place(name) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("UTC", "UTC"),
        ("utc", "UTC"),
        ("GMT", "GMT"),
        ("EST", "America/New_York"),
        ("pst", "America/Los_Angeles"),
        ("Eastern Time", "America/New_York"),
        ("UTC+2", "Etc/GMT-2"),
        ("GMT-5", "Etc/GMT+5"),
        ("UTC+00:00", "UTC"),
    ],
)
def test_abbreviations_and_offsets_are_understood(name: str, expected: str) -> None:
    assert key(name) == expected


def test_offsets_beyond_those_in_use_are_refused() -> None:
    assert find_place("UTC+15") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Tokyo, Japan", "Asia/Tokyo"),
        ("tokyo japan", "Asia/Tokyo"),
        ("Vancouver, Canada", "America/Vancouver"),
        ("atlanta georgia", "America/New_York"),
        ("Paris, Texas", "America/Chicago"),
        ("London, Ontario", "America/Toronto"),
        ("El Paso, Texas", "America/Denver"),
        ("Portland, Maine", "America/New_York"),
    ],
)
def test_a_city_may_be_said_with_its_country_or_state(name: str, expected: str) -> None:
    assert key(name) == expected


@pytest.mark.parametrize("name", ["in Tokyo", "the Netherlands", "over in Paris", "Tokyo time", "Tokyo right now"])
def test_words_around_a_place_do_not_matter(name: str) -> None:
    assert find_place(name) is not None


@pytest.mark.parametrize(
    ("name", "expected"),
    [("São Paulo", "America/Sao_Paulo"), ("Zürich", "Europe/Zurich"), ("Düsseldorf", "Europe/Berlin")],
)
def test_accents_do_not_matter(name: str, expected: str) -> None:
    assert key(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tokio", "Asia/Tokyo"),
        ("los angelos", "America/Los_Angeles"),
        ("phillidelphia", "America/New_York"),
        ("sidney", "Australia/Sydney"),
    ],
)
def test_a_misspelled_name_is_found_if_only_one_is_near(name: str, expected: str) -> None:
    assert key(name) == expected


@pytest.mark.parametrize(
    "name",
    ["", " ", "in", "the", ",", "banana", "Atlantis", "Narnia", "ten days", "../etc/passwd", "localtime", "x" * 101],
)
def test_an_unknown_place_is_not_found(name: str) -> None:
    assert find_place(name) is None


def test_a_country_with_several_zones_is_not_taken_for_one_with_a_similar_name() -> None:
    assert find_place("Australia") is None
    assert key("Austria") == "Europe/Vienna"


def test_a_place_keeps_the_name_it_was_asked_for_by() -> None:
    place = find_place("san francisco")
    assert place is not None
    assert (place.name, place.zone.key) == ("San Francisco", "America/Los_Angeles")


def test_every_place_in_the_table_is_found() -> None:
    missing = [name for zone, names in PLACES.items() for name in names.split(", ") if key(name) != zone]
    assert not missing


@pytest.mark.parametrize(
    ("zone", "spoken"),
    [
        ("Asia/Tokyo", "Tokyo"),
        ("America/New_York", "New York"),
        ("America/Argentina/Buenos_Aires", "Buenos Aires"),
        ("UTC", "UTC"),
        ("Etc/UTC", "UTC"),
        ("GMT", "GMT"),
        ("Etc/GMT-2", "UTC plus 2"),
        ("US/Eastern", "US Eastern"),
    ],
)
def test_a_zone_is_spoken_as_a_place(zone: str, spoken: str) -> None:
    assert speak_zone(ZoneInfo(zone)) == spoken

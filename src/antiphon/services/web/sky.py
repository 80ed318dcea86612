"""The weather codes of the World Meteorological Organization (table 4677), as far as Open-Meteo uses them, in words."""

from typing import Final

from antiphon.tools.capabilities.weather import Sky

UNKNOWN: Final = Sky("hard to tell", "mixed weather")
CLEAR_NIGHT: Final = {0: Sky("clear", "a clear sky"), 1: Sky("mostly clear", "a mostly clear sky")}
_WORDS: Final = {
    0: ("sunny", "sunshine"),
    1: ("mostly sunny", "mostly sunshine"),
    2: ("partly cloudy", "some clouds"),
    3: ("cloudy", "clouds"),
    45: ("foggy", "fog"),
    48: ("foggy, with frost", "freezing fog"),
    51: ("drizzling lightly", "light drizzle"),
    53: ("drizzling", "drizzle"),
    55: ("drizzling heavily", "heavy drizzle"),
    56: ("drizzling, and the rain freezes", "light freezing drizzle"),
    57: ("drizzling, and the rain freezes", "freezing drizzle"),
    61: ("raining lightly", "light rain"),
    63: ("raining", "rain"),
    65: ("raining heavily", "heavy rain"),
    66: ("raining lightly, and the rain freezes", "light freezing rain"),
    67: ("raining, and the rain freezes", "freezing rain"),
    71: ("snowing lightly", "light snow"),
    73: ("snowing", "snow"),
    75: ("snowing heavily", "heavy snow"),
    77: ("snowing in small grains", "snow grains"),
    80: ("raining in light showers", "light showers"),
    81: ("raining in showers", "showers"),
    82: ("raining in violent showers", "violent showers"),
    85: ("snowing in light showers", "light snow showers"),
    86: ("snowing in heavy showers", "heavy snow showers"),
    95: ("stormy, with thunder", "thunderstorms"),
    96: ("stormy, with thunder and some hail", "thunderstorms with some hail"),
    99: ("stormy, with thunder and hail", "thunderstorms with hail"),
}
_SKIES: Final = {code: Sky(now, expected) for code, (now, expected) in _WORDS.items()}
FIRST_WET: Final = 51
"""From this code on, something falls from the sky."""


def describe(code: int, *, is_day: bool = True) -> Sky:
    known = _SKIES.get(code, UNKNOWN)
    return known if is_day else CLEAR_NIGHT.get(code, known)


def is_wet(code: int) -> bool:
    return code >= FIRST_WET

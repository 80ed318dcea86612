"""The names of units, by their signs: one of it, and several."""

import re
from typing import Final

_SIGNS: Final = {
    "kilometer": "km",
    "meter": "m",
    "centimeter": "cm",
    "millimeter": "mm",
    "mile": "mi",
    "yard": "yd",
    "square kilometer": "km²|km2",
    "square meter": "m²|m2|sqm",
    "square centimeter": "cm²",
    "cubic meter": "m³|m3",
    "kilogram": "kg",
    "gram": "g",
    "milligram": "mg",
    "microgram": "µg|μg|mcg",
    "pound": "lb|lbs",
    "ounce": "oz",
    "liter": "l|L",
    "milliliter": "ml|mL",
    "kilometer per hour": "km/h|kmh|kph",
    "mile per hour": "mph",
    "meter per second": "m/s",
    "terabyte": "TB",
    "gigabyte": "GB|GiB",
    "megabyte": "MB|MiB",
    "kilobyte": "kB|KB|KiB",
    "gigabyte per second": "GB/s",
    "megabyte per second": "MB/s",
    "gigabit per second": "Gbps|Gbit/s|Gb/s",
    "megabit per second": "Mbps|Mbit/s|Mb/s",
    "kilowatt": "kW",
    "megawatt": "MW",
    "watt": "W",
    "kilowatt-hour": "kWh",
    "volt": "V",
    "milliampere-hour": "mAh",
    "decibel": "dB",
    "pixel": "px",
    "hour": "h|hr|hrs",
    "minute": "min|mins",
    "second": "s|sec|secs",
    "millisecond": "ms",
    "degree Celsius": "°C|° C|℃",
    "degree Fahrenheit": "°F|° F|℉",
    "degree": "°",
}
_IRREGULAR: Final = {
    "ft": ("foot", "feet"),
    "Hz": ("hertz", "hertz"),
    "kHz": ("kilohertz", "kilohertz"),
    "MHz": ("megahertz", "megahertz"),
    "GHz": ("gigahertz", "gigahertz"),
    "ppm": ("part per million", "parts per million"),
    "fps": ("frame per second", "frames per second"),
    "rpm": ("revolution per minute", "revolutions per minute"),
}


def _several(name: str) -> str:
    """The unit itself is what there are several of: "miles per hour", "degrees Celsius"."""
    head, *rest = name.split(" ")
    if head in ("square", "cubic"):
        return f"{name}s"
    return " ".join([f"{head}s", *rest])


UNITS: Final = _IRREGULAR | {
    sign: (name, _several(name)) for name, signs in _SIGNS.items() for sign in signs.split("|")
}
UNIT: Final = "|".join(map(re.escape, sorted(UNITS, key=len, reverse=True)))
"""A pattern for their signs, the longest first."""

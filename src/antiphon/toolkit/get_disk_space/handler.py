"""How much space is left on the disks."""

import asyncio
from typing import Final

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import Flyout, FlyoutType, ToolResult, fail, ok

from .disks import Disk, read_disks

BYTES_PER_GB: Final = 2**30
BOOT: Final = ("/boot", "/efi")
"""Small boot partitions, which are listed in the table but not mentioned aloud."""


async def execute(args: Args, context: Context) -> ToolResult:
    disks = await asyncio.to_thread(read_disks)
    if not disks:
        return fail(ErrorType.PERMANENT, "I can't read the disks of this computer.")
    return ok(
        {
            "disks": [
                {
                    "name": disk.name,
                    "total_gb": round(disk.total_bytes / BYTES_PER_GB, 1),
                    "free_gb": round(disk.free_bytes / BYTES_PER_GB, 1),
                    "used_percent": disk.used_percent,
                }
                for disk in disks
            ]
        },
        spoken=speak(disks),
        flyout=Flyout(FlyoutType.TERMINAL, report(disks), title="Disk space"),
    )


def speak(disks: list[Disk]) -> str:
    main, *others = [disk for n, disk in enumerate(disks) if n == 0 or not disk.path.startswith(BOOT)]
    match others:
        case []:
            return f"You have {speak_free(main)}."
        case [other]:
            return f"The main disk has {speak_free(main)}, and the other one {speak_free(other)}."
        case _:
            free = speak_size(sum(disk.free_bytes for disk in others))
            return f"The main disk has {speak_free(main)}, and the {len(others)} others have {free} free in all."


def speak_free(disk: Disk) -> str:
    free, total = speak_size(disk.free_bytes), speak_size(disk.total_bytes)
    number, _, unit = total.partition(" ")
    return f"{free} free of {number if free.endswith(unit) else total}"


def speak_size(size_bytes: int) -> str:
    """Returns a size with at most three digits: "53 gigabytes", "1.8 terabytes"."""
    gigabytes = size_bytes / BYTES_PER_GB
    # From 999.5 on it would be rounded to "1000 gigabytes".
    if gigabytes >= 999.5:
        number, unit = gigabytes / 1024, "terabyte"
    elif gigabytes >= 0.95:
        number, unit = gigabytes, "gigabyte"
    else:
        number, unit = gigabytes * 1024, "megabyte"
    shown = f"{number:.0f}" if number >= 9.95 else f"{number:.1f}".removesuffix(".0")
    return f"{shown} {unit}" if shown == "1" else f"{shown} {unit}s"


def report(disks: list[Disk]) -> str:
    rows = [(disk.name, _gb(disk.total_bytes), _gb(disk.free_bytes), f"{disk.used_percent:.0f} %") for disk in disks]
    table = [("Disk", "Size", "Free", "Used"), *rows]
    width = max(len(row[0]) for row in table)
    return "".join(f"{name:<{width}}  {size:>11}  {free:>11}  {used:>6}\n" for name, size, free, used in table)


def _gb(size_bytes: int) -> str:
    return f"{size_bytes / BYTES_PER_GB:,.1f} GB"

"""Tells how long the computer has been running."""

from datetime import datetime

import psutil

from antiphon.tools.context import Args, Context
from antiphon.tools.result import Flyout, FlyoutType, ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    # A clock that was set back since the start would make the uptime negative.
    now_s = context.clock.now_ms() // 1000
    uptime_s = max(0, now_s - int(psutil.boot_time()))
    booted = datetime.fromtimestamp(now_s - uptime_s, context.session.zone)
    pieces = split_duration(uptime_s)
    return ok(
        {
            "uptime_seconds": uptime_s,
            "uptime": join(pieces),
            "booted_at": booted.isoformat(),
        },
        # After a day, minutes no longer matter.
        spoken=f"This computer has been running for {join(pieces[:2])}.",
        flyout=Flyout(
            FlyoutType.TERMINAL,
            f"Up       {join(pieces)}\nStarted  {booted:%A, %d %B %Y, %H:%M} ({context.session.zone.key})\n",
            title="Uptime",
        ),
    )


def split_duration(seconds: int) -> list[str]:
    """Splits into days, hours and minutes without the zeros; "less than a minute" if all are zero."""
    minutes, hours, days = seconds // 60 % 60, seconds // 3600 % 24, seconds // 86_400
    counts = {"day": days, "hour": hours, "minute": minutes}
    return [f"{n} {unit}" if n == 1 else f"{n} {unit}s" for unit, n in counts.items() if n] or ["less than a minute"]


def join(pieces: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(pieces[:-1]), pieces[-1]]))

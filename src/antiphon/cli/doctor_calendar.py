"""The part of `antiphon doctor` that checks the calendar."""

import asyncio
import os
from typing import TYPE_CHECKING, Final

from antiphon.cli.findings import Finding, Findings

if TYPE_CHECKING:
    from antiphon.config import Settings

PATIENCE_S: Final = 15.0
ZOOM_VARIABLES: Final = ("ZOOM_ACCOUNT_ID", "ZOOM_CLIENT_ID", "ZOOM_CLIENT_SECRET")


def check_calendar(settings: "Settings") -> Findings:
    """Reads an account of another server, as a tool would, and says who may use it."""
    provider = settings.calendar.provider
    if provider == "local":
        yield Finding(True, "calendar: local, in the database")
    else:
        yield asyncio.run(_try_account(settings))
    missing = [name for name in ZOOM_VARIABLES if not os.environ.get(name)]
    if 0 < len(missing) < len(ZOOM_VARIABLES):
        yield Finding(
            False, f"meeting links: {missing[0]} is not set. Set all of {', '.join(ZOOM_VARIABLES)}, or none."
        )


async def _try_account(settings: "Settings") -> Finding:
    from datetime import UTC, timedelta
    from zoneinfo import ZoneInfo

    from antiphon.clock import SystemClock
    from antiphon.services.calendar import open_calendar
    from antiphon.storage.memory import MemoryDatabase
    from antiphon.tools.errors import ToolError

    chosen = settings.calendar
    clock = SystemClock()
    user = next((name for name in chosen.users), "")
    try:
        async with (
            asyncio.timeout(PATIENCE_S),
            open_calendar(chosen, MemoryDatabase().calendar, clock, os.environ) as calendars,
        ):
            calendar = calendars.calendar_of(user, ZoneInfo("UTC"))
            names = [each.name for each in await calendar.calendars()]
            now = clock.now(UTC)
            await calendar.busy(now, now + timedelta(minutes=1), names)
    except TimeoutError:
        return Finding(False, f"calendar: {chosen.provider} does not answer within {PATIENCE_S:.0f} s")
    except ToolError as error:
        return Finding(False, f"calendar: {chosen.provider}: {error.message} {error.suggestion or ''}".rstrip())
    is_plain = chosen.url.startswith("http://") and bool(chosen.username) and not _is_loopback(chosen.url)
    warning = " The password travels unencrypted: use https:// in calendar.url." if is_plain else ""
    users = "every user" if "*" in chosen.users else " and ".join(chosen.users)
    return Finding(not is_plain, f"calendar: {chosen.provider} ({', '.join(names)}), for {users}.{warning}")


def _is_loopback(url: str) -> bool:
    from urllib.parse import urlsplit

    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")

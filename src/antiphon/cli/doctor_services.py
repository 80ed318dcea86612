"""The checks of `antiphon doctor` for the web, a Home Assistant, and recordings."""

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING

from antiphon.cli.findings import Finding, Findings
from antiphon.clock import SystemClock

if TYPE_CHECKING:
    from antiphon.config import Home, Settings


def check_web(settings: "Settings") -> Findings:
    """Says where answers come from. The internet is not asked, since a doctor should work without it."""
    place = settings.weather.location or "no default place; set weather.location to have one"
    yield Finding(True, f"weather: {settings.weather.forecast_url} ({place})")
    if settings.web.searxng:
        yield _check_searxng(settings.web.searxng)
    elif find_spec("ddgs") is not None:
        yield Finding(True, "web search: DuckDuckGo")
    else:
        advice = "Set web.searxng, or run: pip install 'antiphon[search]'"
        yield Finding(True, f"web search: none. {advice}")


def _check_searxng(url: str) -> Finding:
    from antiphon.services.web import search_once
    from antiphon.tools.errors import ToolError

    try:
        asyncio.run(search_once(url, SystemClock()))
    except ToolError as error:
        return Finding(False, f"web search: {error.message} ({url}) {error.suggestion or ''}".rstrip())
    return Finding(True, f"web search: SearXNG at {url} answers")


def check_recording(settings: "Settings") -> Findings:
    from antiphon.services.recordings import RecordingError
    from antiphon.services.recordings.sound_file import load_library

    calls = settings.recording.calls
    if calls == "off":
        yield Finding(True, "recording: calls are not recorded, since recording.calls is off")
        return
    try:
        load_library()
    except RecordingError as error:
        yield Finding(False, f"recording: {error}")
    else:
        which = "every call" if calls == "always" else "calls that the user wants to have recorded"
        yield Finding(True, f"recording: {which}; into {settings.recordings_dir or 'a temporary folder'}")


def check_home(settings: "Settings") -> Findings:
    from antiphon.tools.errors import ToolError

    if not settings.home.url:
        yield Finding(True, "home: no Home Assistant; set home.url to control one")
        return
    try:
        devices, areas = asyncio.run(_count_devices(settings.home))
    except ToolError as error:
        yield Finding(False, f"home: {error.message} ({settings.home.url}) {error.suggestion or ''}".rstrip())
        return
    where = (
        f"in {areas} area{'' if areas == 1 else 's'}" if areas else "in no areas, which only administrators can list"
    )
    yield Finding(True, f"home: Home Assistant at {settings.home.url} answers, with {devices} devices {where}")


async def _count_devices(home: "Home") -> tuple[int, int]:
    from antiphon.services.home import open_home

    async with open_home(home, SystemClock()) as opened:
        devices = await opened.look(None, None)
    return len(devices), len({device.area for device in devices if device.area})
